// Frontend logs: what the page logs and what fails in it, as records of a bounded size. The module
// decides which of them are kept and sent.

const ARGUMENT = 2048;
const MESSAGE = 8192;
const ADDRESS = 2048;
const DEPTH = 3;
const MEMBERS = 30;
const ALL_MEMBERS = 100;
/** Milliseconds that the first record of a batch waits for others in a preview. */
const PREVIEW = 200;

const encoder = new TextEncoder();
const buffer = new Uint8Array(MESSAGE);

/**
 * Cuts the text to this many bytes of UTF-8, and removes half a character that the cut left.
 *
 * @param {string} text
 */
const cut = (text, limit = MESSAGE) => {
  const short = text.slice(
    0,
    encoder.encodeInto(text.slice(0, limit), buffer.subarray(0, limit)).read,
  );
  return short.toWellFormed?.() ?? short;
};

/**
 * How many members may still be described in this record.
 *
 * @type {number}
 */
let room;

/**
 * Describes a value. Keeps no reference to it and never throws.
 *
 * @param {any} value
 * @param {number} depth how far it is inside of another value
 * @param {object[]} above the values that it is inside of
 * @returns {string}
 */
const describe = (value, depth = 0, above = []) => {
  try {
    const type = typeof value;
    if (type == "string") {
      const text = value.slice(0, ARGUMENT);
      return depth ? JSON.stringify(text) : text;
    }
    if (type == "bigint") return value + "n";
    if (type == "function") return `[Function ${value.name}]`;
    if (type != "object" || !value) return String(value);
    if (value instanceof Error) return stackOf(value) || String(value);
    if (value.nodeType) return `<${value.nodeName.toLowerCase()}>`;
    const name = value.constructor?.name ?? "Object";
    if (ArrayBuffer.isView(value))
      return `[${name} ${/** @type {any} */ (value).length ?? value.byteLength}]`;
    if (above.includes(value)) return "[Circular]";
    if (depth >= DEPTH) return `[${name}]`;
    const list = Array.isArray(value);
    const inside = [...above, value];
    /** @type {string[]} */
    const members = [];
    /** @param {string | number} key */
    const add = (key) => {
      if (members.length >= MEMBERS || room-- <= 0) return members.push("…");
      const member = read(value, key, depth + 1, inside);
      members.push(list ? member : key + ": " + member);
    };
    // Not all keys of a long list are read.
    if (list) for (let at = 0; at < value.length && at <= MEMBERS; at++) add(at);
    else {
      for (const key in value) {
        if (members.length > MEMBERS || room < 0) break;
        add(key);
      }
    }
    const text = members.join(", ").slice(0, ARGUMENT);
    return list ? `[${text}]` : (name == "Object" ? "" : name + " ") + `{${text}}`;
  } catch {
    return "[unreadable]";
  }
};

/**
 * Describes a member. If its getter throws, only this member is unreadable.
 *
 * @param {any} value
 * @param {string | number} key
 * @param {number} depth
 * @param {object[]} above
 */
const read = (value, key, depth, above) => {
  try {
    return describe(value[key], depth, above);
  } catch {
    return "[unreadable]";
  }
};

/**
 * Returns an error's stack, which then begins with the message in every engine.
 *
 * @param {Error} error
 */
const stackOf = (error) => {
  const { stack } = error;
  if (typeof stack != "string" || !stack) return "";
  const title = String(error);
  return cut(stack.startsWith(title) ? stack : title + "\n" + stack);
};

/**
 * A record, in the form that the server accepts.
 *
 * @typedef {object} LogRecord
 * @property {number} time
 * @property {string} level
 * @property {string} source
 * @property {string} message
 * @property {number} [count]
 * @property {string} [stack]
 * @property {string} [url]
 * @property {number} [line]
 * @property {number} [column]
 * @property {unknown} [metadata]
 */

/**
 * The records that wait to be sent. The module keeps account of them.
 *
 * @type {LogRecord[]}
 */
const records = [];

/**
 * Sends the waiting records if they are due, or at once. The request outlives the page.
 *
 * @param {boolean} [atOnce]
 */
const sendLog = async (atOnce) => {
  const size = wasm?.takeBatch(!!atOnce);
  if (!size) return;
  const batch = records.splice(0);
  const leftOut = wasm.takeLeftOut();
  const last = {
    time: Date.now(),
    level: "warn",
    source: "console",
    message: leftOut + " more records were left out",
  };
  const sent = leftOut ? [...batch, last] : batch;
  let pause = -1;
  try {
    const { status, headers } = await report(
      "/__platform/logs",
      // Half a surrogate pair is not valid text elsewhere.
      JSON.stringify({ page, records: sent }, (_key, value) => value?.toWellFormed?.() ?? value),
      heldToken(),
      size > 0,
    );
    pause =
      status == 429 || status > 499
        ? /** @type {any} */ (headers.get("Retry-After")) * 1000 || -1
        : 0;
  } catch {
    // No response arrived.
  }
  if (wasm.endBatch(size, sent.length, pause)) records.unshift(...sent);
};

let busy = false;

/**
 * Makes a record. What the page's own getters log meanwhile is not recorded: that would never end.
 *
 * @param {string} level
 * @param {string} source
 * @param {() => Omit<LogRecord, "time" | "level" | "source"> | undefined} makeRecord
 */
const note = (level, source, makeRecord) => {
  if (busy || isLocal()) return;
  busy = true;
  room = ALL_MEMBERS;
  try {
    // Without a record this throws, which is intended.
    const { message, ...rest } = /** @type {Omit<LogRecord, "time" | "level" | "source">} */ (
      makeRecord()
    );
    // A failure of a browser extension does not belong to the game.
    const place = (rest.stack ?? "") + (rest.url ?? "");
    if (/-extension:\/\//.test(place) && !/https?:\/\//.test(place)) return;
    let made = { level, source, message: cut(message), ...rest };
    let text = JSON.stringify(made);
    if (text.length > 3 * MESSAGE) {
      made = { level, source, message: made.message.slice(0, 1000) };
      text = JSON.stringify(made);
    }
    const time = Date.now();
    let same = 0;
    let bytes = text.length;
    for (let at = text.length; at--; ) {
      const code = text.charCodeAt(at);
      same = (Math.imul(same, 31) + code) | 0;
      if (code > 127) bytes += code > 2047 ? 2 : 1;
    }
    // If the module never starts, nothing is recorded, without an error.
    started(() => {
      if (failure) return;
      const at = wasm.keepRecord(same, bytes + 30, source != "console");
      if (at >= 0) records[at].count = (records[at].count ?? 1) + 1;
      else if (at > -3) records.push({ time, ...made });
      if (at == -2) sendLog(true);
      // A framed dev environment: a developer follows its log while playing.
      else if (isPreview && at == -1 && records.length == 1) setTimeout(sendLog, PREVIEW, true);
    });
  } catch {
    // A log that breaks the game is worse than none.
  } finally {
    busy = false;
  }
};

/** @type {Record<string, string>} The level of each method of `console`. */
const LEVELS = {
  debug: "debug",
  trace: "debug",
  log: "info",
  info: "info",
  warn: "warn",
  error: "error",
  assert: "error",
};

const watchConsole = () => {
  for (const method in LEVELS) {
    const native = console[method];
    console[method] = (/** @type {unknown[]} */ ...values) => {
      native.apply(console, values);
      if (method == "assert" && values.shift()) return;
      note(LEVELS[method], "console", () => ({
        message:
          (method == "assert" ? "Assertion failed: " : "") +
          values.map((value) => describe(value)).join(" "),
      }));
    };
  }
};

/** Failures that `lookBack` found, whose events may still arrive. */
const early = new Set();

/** @type {(name: string, address: () => unknown) => void} */
const noteResource = (name, address) =>
  note("error", "resource", () => {
    const url = cut(String(address()), ADDRESS);
    // Returning nothing means no record.
    return early.delete(url) ? undefined : { message: `<${name}> failed to load ${url}`, url };
  });

/**
 * Records what failed to load before the listener was added, if the engine kept its status
 * (Resource Timing §responseStatus); the status is 0 for other origins. A preloaded file is listed
 * twice. Requests of scripts are not recorded.
 */
const lookBack = () => {
  for (const { name, initiatorType, responseStatus } of /** @type {PerformanceResourceTiming[]} */ (
    performance.getEntriesByType("resource")
  )) {
    if (responseStatus > 399 && !/^(fetch|xmlh|beacon)|\/__platform\//.test(initiatorType + name)) {
      noteResource(initiatorType, () => name);
      early.add(name);
    }
  }
};

const watchErrors = () => {
  addEventListener(
    "error",
    (event) => {
      const { target, message, filename, lineno, colno, error } =
        /** @type {ErrorEvent & { target: any }} */ (event);
      if (message != null) {
        note("error", "error", () => ({
          message,
          stack: error?.stack && stackOf(error),
          url: filename && cut(filename, ADDRESS),
          line: lineno,
          column: colno,
        }));
      } else if (target?.localName) {
        noteResource(
          target.localName,
          () => target.src || target.href?.baseVal || target.href || "",
        );
      }
    },
    true,
  );
  addEventListener("unhandledrejection", ({ reason }) => {
    note("error", "unhandledrejection", () => ({
      message: reason instanceof Error ? String(reason) : describe(reason),
      stack: reason instanceof Error ? stackOf(reason) : undefined,
      // Without the request's id, which would make every repetition a different record.
      metadata:
        reason instanceof PlatformError ? { status: reason.status, type: reason.type } : undefined,
    }));
  });
};

/**
 * `platform.reportError`: never throws, and never rejects.
 *
 * @param {string} message
 * @param {unknown} [metadata]
 */
const logError = async (message, metadata) => {
  note("error", "report", () => {
    try {
      message = String(message);
    } catch {
      message = describe(message);
    }
    let copy = metadata ?? undefined;
    try {
      const text = JSON.stringify(copy);
      copy = text?.length > MESSAGE ? describe(copy) : text && JSON.parse(text);
    } catch {
      copy = describe(copy);
    }
    return { message, stack: stackOf(new Error(message)), metadata: copy };
  });
};
