// Reads stacks, which each engine writes in its own form.

/** How many frames of a stack are shown. */
const FRAMES = 50;
/**
 * A frame of a stack. A line or a column that is not known is 0.
 *
 * @typedef {object} Frame
 * @property {string} call
 * @property {string} file
 * @property {number} line
 * @property {number} column
 * @property {boolean} isBehind whether the column is the one after the failed expression
 * @property {boolean} isOurs whether it is of the platform's own script
 */

/** A longer line is not a frame. */
const LINE = 1000;

/** `at call (https://…:1:2)`, `at https://…:1:2` and `at async https://…:1:2`, as in Chromium. */
const AT = /^\s*at (?:(.*) \(|async )?(<anonymous>|[a-z-]+:[^\s()]+?)(?::(\d+))?(?::(\d+))?\)?$/;
/** `call@https://…:1:2`, as in Firefox and Safari. */
const MARK = /^([^@]*)@([a-z-]+:\S+?)(?::(\d+))?(?::(\d+))?$/;

/**
 * Returns whether the columns of a stack are those after the failed expression, as in WebKit.
 * WebKit's stacks look like Firefox's, but do not end with a new line.
 *
 * @param {string | null | undefined} stack
 */
export const countsBehind = (stack) =>
  !!stack &&
  !stack.endsWith("\n") &&
  stack.split("\n").some((line) => line.length <= LINE && !AT.test(line) && MARK.test(line));

/**
 * Marks the frames of the platform's WebAssembly module: those that follow a frame of the
 * platform's script. A game's module has a frame of the game's script between.
 *
 * @param {Frame[]} frames
 */
const claim = (frames) => {
  let before = false;
  for (const frame of frames) {
    frame.isOurs ||= before && frame.file.startsWith("wasm:");
    before = frame.isOurs;
  }
};

/**
 * Reads the frames of a stack. Other lines are left out.
 *
 * @param {string} stack
 */
export const framesOf = (stack) => {
  /** @type {Frame[]} */
  const frames = [];
  const isBehind = countsBehind(stack);
  for (const line of stack.split("\n")) {
    const [, call, file, row, column] =
      (line.length <= LINE && (AT.exec(line) ?? MARK.exec(line))) || [];
    if (!file) continue;
    const isOurs = /\/__platform\/runtime\.js(\?|$)/.test(file);
    frames.push({
      call: call ?? "",
      file,
      line: Number(row) || 0,
      column: Number(column) || 0,
      isBehind,
      isOurs,
    });
    if (frames.length >= FRAMES) break;
  }
  claim(frames);
  claim(frames.toReversed());
  return frames;
};

/**
 * Returns a place as text, relative to the game's address for the game's own files.
 *
 * @param {Pick<Frame, "file" | "line" | "column">} frame
 * @param {string} game
 */
export const place = ({ file, line, column }, game) => {
  const name = file.startsWith(game) ? file.slice(game.length) || "/" : file;
  return [name, line, column].filter(Boolean).join(":");
};

/** A name of at most this many characters may have been shortened by a bundler. */
const SHORTENED = 3;

/**
 * Returns the original name of a frame's function. `called` is the name in the source where its
 * caller calls it; it replaces only names that look shortened.
 *
 * @param {string} call
 * @param {string | undefined} called
 */
export const renamed = (call, called) => {
  const parts = call.replace(/^(async|new) /, "").split(".");
  const last = parts.at(-1);
  if (!called || !last || last.length > SHORTENED || !/^[\w$]+$/.test(last)) return call;
  return call.slice(0, call.length - last.length) + called;
};
