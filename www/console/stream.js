// Server-sent events by `fetch` (HTML, "Server-sent events"): `EventSource`
// cannot send a token.

import { isFinal } from "./gate.js";
import { Refusal } from "./session.js";

/** Milliseconds until the next attempt, longer each time. */
const PAUSES = [500, 1000, 2000, 5000, 10000];
/** Milliseconds from which on a stream that broke off was a good one. */
const LASTING = 5000;
/** The server says every 15 s that it is there; who hears nothing for so long is cut off. */
const SILENCE = 45000;

/**
 * Splits a stream of text into events, which are handed to `take`. It is read
 * without a `TextDecoderStream` between, which would lose what it holds when
 * the connection breaks off.
 */
const readEvents = async (body, take, heard) => {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let event = {};
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    heard();
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line) {
        if (event.data !== undefined) take(event);
        event = {};
        continue;
      }
      const at = line.indexOf(":");
      if (at > 0) event[line.slice(0, at)] = line.slice(at + 1).replace(/^ /, "");
    }
  }
};

/**
 * Follows an environment's log behind the record `last`, for as long as the
 * page is there. `record` is handed each record, `dropped` how many were left
 * out, `state` whether it is followed just now, and if not, what the platform
 * says to that; `end` is handed why it is for good not.
 */
export const follow = async (session, path, last, { record, dropped, state, end }) => {
  for (let failures = 0; ; ) {
    const controller = new AbortController();
    let watchdog;
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => controller.abort(), SILENCE);
    };
    let reason;
    let words;
    let opened;
    let took = false;
    try {
      heard();
      const headers = { Accept: "text/event-stream", "Last-Event-ID": last };
      const { body } = await session.open(path, { headers, signal: controller.signal });
      state(true);
      opened = performance.now();
      const take = ({ event, id, data }) => {
        const told = JSON.parse(data);
        took = true;
        // Not before, so that a record that was cut off is asked for again.
        last = id ?? last;
        if (event === "dropped") dropped(told.records);
        else if (event === "end") reason = told.reason;
        else if (event === undefined) record(told);
      };
      await readEvents(body, take, heard);
      if (reason === "token-expired") await session.token(true);
    } catch (refusal) {
      if (refusal.status && isFinal(refusal)) return end(refusal);
      if (refusal instanceof Refusal) words = refusal.message;
    } finally {
      clearTimeout(watchdog);
    }
    // A stream that soon ends and told nothing is no better than one that does not open.
    failures = took || performance.now() - opened > LASTING ? 0 : failures + 1;
    state(false, words);
    const pause = PAUSES[Math.min(failures, PAUSES.length - 1)];
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
};
