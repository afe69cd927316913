// Stacks as engines write them, in parts that can be shown.

/** Frames of one stack that are shown, at most. */
const FRAMES = 50;
/**
 * A frame of a stack. A line or a column that is not known is 0.
 *
 * @typedef {object} Frame
 * @property {string} call
 * @property {string} file
 * @property {number} line
 * @property {number} column
 * @property {boolean} isBehind whether the column is the one behind what failed
 * @property {boolean} isOurs whether it is of the platform's own script
 */

/** Characters of a line that are looked at. */
const LINE = 1000;

/** `at call (https://…:1:2)`, `at https://…:1:2` and `at async https://…:1:2`, as in Chromium. */
const AT = /^\s*at (?:(.*) \(|async )?(<anonymous>|[a-z-]+:[^\s()]+?)(?::(\d+))?(?::(\d+))?\)?$/;
/** `call@https://…:1:2`, as in Firefox and Safari. */
const MARK = /^([^@]*)@([a-z-]+:\S+?)(?::(\d+))?(?::(\d+))?$/;

/**
 * Whether the columns of an error are those behind what failed, as WebKit counts
 * them. Its stacks are like Firefox's, but do not end with a new line.
 *
 * @param {string | null | undefined} stack
 */
export const countsBehind = (stack) =>
  !!stack &&
  !stack.endsWith("\n") &&
  stack.split("\n").some((line) => line.length <= LINE && !AT.test(line) && MARK.test(line));

/**
 * A frame of a module behind one of the platform's script is the platform's too: a game's has its own script between.
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
 * Its frames: the call, the file, line and column where they are known, and
 * whether the platform's own script is there. What is no frame is left out.
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
 * A place in a file, short where the file is the game's own.
 *
 * @param {Pick<Frame, "file" | "line" | "column">} frame
 * @param {string} game
 */
export const place = ({ file, line, column }, game) => {
  const name = file.startsWith(game) ? file.slice(game.length) || "/" : file;
  return [name, line, column].filter(Boolean).join(":");
};

/** Characters of a name that a bundler made short. */
const SHORTENED = 3;

/**
 * What a frame's function was called, where `called` stands where its caller calls it; as
 * the engine says where that is no short name. A callback without a name keeps none.
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
