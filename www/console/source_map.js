// Finds the original places and names of bundled code, by the source maps beside a deployment's
// scripts or in them (ECMA-426). A map comes from the game: its contents are only shown.

import { Refusal } from "./session.js";

/** @import { Frame } from "./frames.js" */
/** @import { Session } from "./session.js" */

/**
 * A segment of mappings (ECMA-426, "Mappings structure"): where it begins in the script, and its
 * original place, all counted from 0.
 *
 * @typedef {object} Segment
 * @property {number} row
 * @property {number} begin the column in the script
 * @property {number} source
 * @property {number} line
 * @property {number} column
 * @property {number} name
 * @property {boolean} [known] whether it has a source
 * @property {boolean} [named] whether it has a name
 */

/** @typedef {Segment & { at: number }} Start A place in the text of mappings, to read on from. */
/** @typedef {{ from: Start, place: Segment }} Step */

/**
 * A part of a map: where it begins in the script, and its content.
 *
 * @typedef {object} Part
 * @property {number} line
 * @property {number} column
 * @property {string} mappings
 * @property {unknown[]} sources
 * @property {unknown[]} [names]
 * @property {Step[]} [steps] places in the mappings, once they were looked for
 */

/** @typedef {{ file: string, line: number, column: number, name: string }} Original */
/** @typedef {(url: string) => Promise<string>} Read */

/**
 * How to read the files of kept deployments that are not shown: the session that asks, the
 * environment's path in the project API, and which deployments there are.
 *
 * @typedef {object} Kept
 * @property {Session} session
 * @property {string} environment
 * @property {(id: string) => boolean} has
 */

/** How many bytes of a script or a map are read, counted after decompression. */
const LARGEST = 10_000_000;
/** Milliseconds after which a script or a map counts as missing. */
const PATIENCE = 30_000;
/** How many maps are kept; the one that was not used for longest is removed. */
const KEPT = 8;
/** How many maps are fetched at the same time. */
const AT_ONCE = 2;
/** How many characters of mappings lie between two remembered places. */
const STRIDE = 4096;
const COMMENT = "sourceMappingURL=";
const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const VALUES = new Uint8Array(128);
for (const [value, digit] of [...DIGITS].entries()) VALUES[digit.charCodeAt(0)] = value;
const [COMMA, SEMICOLON] = [",", ";"].map((sign) => sign.charCodeAt(0));

/**
 * Calls `take` with each segment of mappings after a place in them, until it returns true.
 *
 * @param {string} mappings
 * @param {Start} from
 * @param {(place: Segment, from: Start) => boolean | void} take
 */
const walk = (mappings, from, take) => {
  let { at, row, begin, source, line, column, name } = from;
  while (at < mappings.length) {
    const sign = mappings.charCodeAt(at);
    if (sign === SEMICOLON) {
      [row, begin] = [row + 1, 0];
      at++;
      continue;
    }
    if (sign === COMMA) {
      at++;
      continue;
    }
    const start = { at, row, begin, source, line, column, name };
    // Base64 VLQ: a digit has five bits, and a sixth one if more digits follow.
    let [field, value, shift] = [0, 0, 0];
    for (; at < mappings.length; at++) {
      const digit = mappings.charCodeAt(at);
      if (digit === COMMA || digit === SEMICOLON) break;
      const bits = VALUES[digit] ?? 0;
      value |= (bits & 31) << shift;
      shift += 5;
      if (bits & 32) continue;
      const change = value & 1 ? -(value >>> 1) : value >>> 1;
      if (field === 0) begin += change;
      else if (field === 1) source += change;
      else if (field === 2) line += change;
      else if (field === 3) column += change;
      else if (field === 4) name += change;
      field++;
      [value, shift] = [0, 0];
    }
    if (take({ row, begin, source, line, column, name, known: field > 3, named: field > 4 }, start))
      return;
  }
};

/**
 * Returns some places in mappings, in order, from which reading can start.
 *
 * @param {string} mappings
 * @returns {Step[]}
 */
const stepsOf = (mappings) => {
  const first = { at: 0, row: 0, begin: 0, source: 0, line: 0, column: 0, name: 0 };
  /** @type {Step[]} */
  const steps = [{ from: first, place: first }];
  let next = STRIDE;
  walk(mappings, first, (place, from) => {
    if (from.at < next) return;
    steps.push({ from, place });
    next = from.at + STRIDE;
  });
  return steps;
};

/**
 * Returns a source's name without the prefixes of bundlers.
 *
 * @param {unknown} source
 */
const nameOf = (source) =>
  String(source ?? "")
    .replace(/^webpack:\/\/[^/]*\//, "")
    .replace(/^(\.{1,2}\/)+/, "");

/**
 * Returns the parts of a map, one for each section. Mappings stay text: the decoded mappings of a
 * large map would fill the memory.
 *
 * @param {any} map what somebody wrote as JSON
 * @returns {Part[]}
 */
const partsOf = ({ sections, ...whole }) =>
  /** @type {any[]} */ (sections ?? [{ offset: { line: 0, column: 0 }, map: whole }]).map(
    ({ offset: { line, column }, map: { mappings, sources, names } }) => ({
      line,
      column,
      mappings,
      sources,
      names,
    }),
  );

/**
 * Returns the original place of a line and column, both counted from 1.
 *
 * @param {Part[]} parts
 * @param {number} line
 * @param {number} column
 * @returns {Original | undefined}
 */
const original = (parts, line, column) => {
  const [row, at] = [line - 1, column - 1];
  // The last part at or before the place counts, and in it the last segment at or before the place.
  const part = parts.findLast((one) => one.line < row || (one.line === row && one.column <= at));
  if (!part) return undefined;
  const [down, within] = [row - part.line, row === part.line ? at - part.column : at];
  /** @param {Segment} place */
  const isBehind = (place) => place.row > down || (place.row === down && place.begin > within);
  part.steps ??= stepsOf(part.mappings);
  const step = part.steps.findLast(({ place }, index) => !index || !isBehind(place));
  // There is always one: the first counts, wherever it is.
  const { from } = /** @type {Step} */ (step);
  let place = /** @type {Segment | undefined} */ (undefined);
  walk(part.mappings, from, (one) => {
    if (isBehind(one)) return true;
    if (one.row === down) place = one;
  });
  if (!place?.known) return undefined;
  const file = nameOf(part.sources[place.source]);
  if (!file) return undefined;
  const name = place.named && part.names?.[place.name];
  return {
    file,
    line: place.line + 1,
    column: place.column + 1,
    name: typeof name === "string" ? name : "",
  };
};

/**
 * Returns what the last comment of a script names: an address, or the map itself.
 *
 * @param {string} script
 */
const namedBy = (script) => {
  const at = script.lastIndexOf(COMMENT);
  const name = script.slice(at + COMMENT.length).trim();
  return at < 0 || /\s/.test(name) || !/\/\/[#@] $/.test(script.slice(Math.max(0, at - 4), at))
    ? ""
    : name;
};

/**
 * Returns the text of a `data:` address (RFC 2397), if it is one.
 *
 * @param {string} name
 */
const inlined = (name) => {
  const head = /^data:application\/json(;[a-z]+=[\w-]+)*(;base64)?,/i.exec(name);
  if (!head) return undefined;
  const data = decodeURIComponent(name.slice(head[0].length));
  return head[2]
    ? new TextDecoder().decode(Uint8Array.from(atob(data), (char) => char.charCodeAt(0)))
    : data;
};

/**
 * Returns the text of a response. It is empty if the text is too long; then the rest is not read.
 *
 * @param {Response} response
 */
const textOf = async (response) => {
  if (response.status > 499) throw new Error("not now");
  if (!response.body) return "";
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let [whole, bytes] = ["", 0];
  while (response.ok) {
    const { value, done } = await reader.read();
    if (done) return whole + decoder.decode();
    bytes += value.length;
    if (bytes > LARGEST) break;
    whole += decoder.decode(value, { stream: true });
  }
  await reader.cancel();
  return "";
};

/**
 * Reads a file of the deployment that the game's address shows now.
 *
 * @param {string} url
 */
const shownFile = async (url) =>
  textOf(
    await fetch(url, {
      credentials: "omit",
      cache: "no-store",
      signal: AbortSignal.timeout(PATIENCE),
    }),
  );

/** The source maps of the deployments that an environment keeps. */
export class Sources {
  #game;
  #shown;
  #kept;
  /** @type {Map<string, { parts?: Promise<Part[] | undefined> }>} */
  #maps = new Map();
  #reading = 0;
  /** @type {((value?: unknown) => void)[]} */
  #queue = [];

  /**
   * `game` is the game's address, `shown` returns the id of the deployment that it shows now.
   *
   * @param {string} game
   * @param {() => string | undefined} shown
   * @param {Kept} kept
   */
  constructor(game, shown, kept) {
    this.#game = game;
    this.#shown = shown;
    this.#kept = kept;
  }

  /**
   * Finds the original place and name of a place in a deployment's script, if there is a map and
   * the deployment is kept. With `isBehind`, the column is the one after the expression, which may
   * already belong to another expression.
   *
   * @param {Pick<Frame, "file" | "line" | "column" | "isBehind">} place
   * @param {string | null} deployment
   * @returns {Promise<Original | undefined>}
   */
  async find({ file, line, column, isBehind }, deployment) {
    try {
      const script = line > 0 && column > 0 && this.#scriptOf(file);
      if (!script || !deployment) return undefined;
      const isShown = deployment === this.#shown();
      if (!isShown && !this.#kept.has(deployment)) return undefined;
      const read = isShown
        ? shownFile
        : (/** @type {string} */ url) => this.#keptFile(url, deployment);
      const parts = await this.#map(script, deployment, read);
      // If the game was deployed meanwhile, this may be the map of the new deployment.
      if (isShown && deployment !== this.#shown()) {
        this.#maps.delete(`${deployment} ${script}`);
        return undefined;
      }
      return parts && original(parts, line, isBehind ? Math.max(1, column - 1) : column);
    } catch {
      // A map that cannot be read counts as missing.
      return undefined;
    }
  }

  /**
   * Returns the address of a script of the game in its normal form: players can log the same
   * address in many spellings.
   *
   * @param {string} file
   */
  #scriptOf(file) {
    if (!file.startsWith(this.#game)) return undefined;
    const path = decodeURIComponent(new URL(file).pathname);
    // Inline and evaluated scripts have no file of their own.
    if (/\s/.test(file) || !/\.[cm]?js$/.test(path) || path.startsWith("/__platform/"))
      return undefined;
    return new URL(path.slice(1).split("/").map(encodeURIComponent).join("/"), this.#game).href;
  }

  /**
   * Reads a file of an earlier deployment.
   *
   * @param {string} url
   * @param {string} deployment
   */
  async #keptFile(url, deployment) {
    const { session, environment } = this.#kept;
    const path = decodeURIComponent(new URL(url).pathname.slice(1));
    const query = new URLSearchParams({ path });
    try {
      const signal = AbortSignal.timeout(PATIENCE);
      return await textOf(
        await session.open(
          `${environment}/deployments/${encodeURIComponent(deployment)}/file?${query}`,
          { signal },
        ),
      );
    } catch (error) {
      // The deployment is not kept any more, so there is no need to ask again.
      if (error instanceof Refusal && error.status === 404) return "";
      throw error;
    }
  }

  /**
   * Returns the parts of a script's map. Each map is read once.
   *
   * @param {string} script
   * @param {string} deployment
   * @param {Read} read
   */
  #map(script, deployment, read) {
    const key = `${deployment} ${script}`;
    const map = this.#maps.get(key) ?? {};
    this.#maps.delete(key);
    this.#maps.set(key, map);
    const [oldest] = this.#maps.keys();
    if (this.#maps.size > KEPT) this.#maps.delete(oldest);
    // If the map was removed before its turn, it is not fetched.
    if (!map.parts) {
      map.parts = this.#inTurn(() =>
        this.#maps.get(key) === map ? this.#read(script, read) : undefined,
      );
      // After a failure the next caller tries again.
      map.parts.catch(() => this.#maps.get(key) === map && this.#maps.delete(key));
    }
    return map.parts;
  }

  /**
   * @template T
   * @param {() => T | Promise<T>} read
   */
  async #inTurn(read) {
    while (this.#reading >= AT_ONCE) await new Promise((resolve) => this.#queue.push(resolve));
    this.#reading++;
    try {
      return await read();
    } finally {
      this.#reading--;
      this.#queue.shift()?.();
    }
  }

  /**
   * Reads the map that the last comment of a script names.
   *
   * @param {string} script
   * @param {Read} read
   */
  async #read(script, read) {
    const name = namedBy(await read(script));
    if (!name) return undefined;
    const url = new URL(name, script).href;
    const map = inlined(name) ?? (url.startsWith(this.#game) && (await read(url)));
    return map ? partsOf(JSON.parse(map)) : undefined;
  }
}
