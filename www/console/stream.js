// Server-sent events by `fetch` (HTML, "Server-sent events"): `EventSource`
// cannot send a token.

import { isFinal } from "./gate.js";
import { Refusal } from "./session.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Session } from "./session.js" */

/** @typedef {{ id?: string, event?: string, data: string }} StreamEvent */

/** Milliseconds before each attempt to connect again. */
const PAUSES = [500, 1000, 2000, 5000, 10000];
/** A stream that lasted this many milliseconds counts as a success. */
const LASTING = 5000;
/** Milliseconds of silence after which a stream counts as lost. The server is silent for 15 s at most. */
const SILENCE = 45000;

/**
 * Calls `take` with each event of a stream. A `TextDecoderStream` is not used: it would lose its
 * last part when the connection breaks.
 *
 * @param {ReadableStream<Uint8Array>} body
 * @param {(event: StreamEvent) => void} take
 * @param {() => void} heard
 */
const readEvents = async (body, take, heard) => {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  /** @type {Record<string, string> & Partial<StreamEvent>} */
  let event = {};
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    heard();
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!line) {
        const { data } = event;
        if (data !== undefined) take({ ...event, data });
        event = {};
        continue;
      }
      const at = line.indexOf(":");
      if (at > 0) event[line.slice(0, at)] = line.slice(at + 1).replace(/^ /, "");
    }
  }
};

/**
 * @typedef {object} Follower
 * @property {(record: Schemas["LogRecord"]) => void} record
 * @property {(number: number) => void} dropped
 * @property {(isLive: boolean, words?: string) => void} state
 * @property {(refusal: Refusal) => void} end
 */

/**
 * Follows an environment's log after the record `last`, as long as the page exists. It calls
 * `record` with each record, `dropped` with the number of records that the platform has left out,
 * `state` when the connection changes, and `end` with a refusal that is final. `until` ends it
 * earlier.
 *
 * @param {Session} session
 * @param {string} path
 * @param {string} last
 * @param {Follower} follower
 * @param {AbortSignal} [until]
 */
export const follow = async (session, path, last, { record, dropped, state, end }, until) => {
  for (let failures = 0; ; ) {
    const controller = new AbortController();
    const stop = () => controller.abort();
    until?.addEventListener("abort", stop);
    /** @type {number | undefined} */
    let watchdog;
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => controller.abort(), SILENCE);
    };
    /** @type {string | undefined} */
    let reason;
    /** @type {string | undefined} */
    let words;
    let opened = Number.POSITIVE_INFINITY;
    let took = false;
    try {
      heard();
      const headers = { Accept: "text/event-stream", "Last-Event-ID": last };
      const { body } = await session.open(path, { headers, signal: controller.signal });
      state(true);
      opened = performance.now();
      /** @param {StreamEvent} event */
      const take = ({ event, id, data }) => {
        const told = JSON.parse(data);
        took = true;
        // Only after the record was read: if it was cut off, it is requested again.
        last = id ?? last;
        if (event === "dropped") dropped(told.records);
        else if (event === "end") reason = told.reason;
        else if (event === undefined) record(told);
      };
      // The answer to GET has a body (Fetch, "null body status").
      await readEvents(/** @type {ReadableStream<Uint8Array>} */ (body), take, heard);
      if (reason === "token-expired") await session.token(true);
    } catch (refusal) {
      if (refusal instanceof Refusal) {
        if (refusal.status && isFinal(refusal)) return end(refusal);
        words = refusal.message;
      }
    } finally {
      clearTimeout(watchdog);
      until?.removeEventListener("abort", stop);
    }
    if (until?.aborted) return;
    // A stream that ends early and without an event counts as a failure.
    failures = took || performance.now() - opened > LASTING ? 0 : failures + 1;
    state(false, words);
    const pause = PAUSES[Math.min(failures, PAUSES.length - 1)];
    await new Promise((resolve) => setTimeout(resolve, pause));
    if (until?.aborted) return;
  }
};
