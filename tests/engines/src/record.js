// What a test reads from outside, the same for every engine:
//
// game.engine  which engine it is
// game.keys    the `key` of each key press that the engine passed on
// game.frames  milliseconds from one frame to the next, the last 600
// game.work    milliseconds that the engine worked on each of these frames

const KEPT = 600;

/** Puts `game` on the page and says hello. */
export const begin = (engine) => {
  const game = { engine, keys: [], frames: [], work: [] };
  globalThis.game = game;
  console.log(`${engine} says hello`);

  const keep = (list, value) => {
    if (list.length === KEPT) list.shift();
    list.push(value);
  };

  let began;
  let mustThrow = false;

  // Engines stop if their loops throw an error, but not if this does.
  let thrown = 0;
  const throwLater = () => {
    thrown += 1;
    throw new Error(`${engine} throws later: ${thrown}`);
  };

  return {
    /** The engine begins a frame. */
    frameBegins() {
      const now = performance.now();
      if (began !== undefined) keep(game.frames, now - began);
      began = now;
    },

    /** The engine has drawn it. */
    frameEnds() {
      keep(game.work, performance.now() - began);
    },

    /** The engine passed on a key press. */
    key(key) {
      game.keys.push(key);
      if (key === "e") mustThrow = true;
      if (key === "l") console.log(`${engine} logs a line`);
      if (key === "t") setTimeout(throwLater);
      if (key === "r") Promise.reject(new Error(`${engine} rejects a promise`));
    },

    /** Called from the engine's update loop. */
    update() {
      if (!mustThrow) return;
      mustThrow = false;
      throw new Error(`${engine} throws in its update loop`);
    },

    /** The line at the top of the scene. */
    get line() {
      return `${engine}: ${game.keys.slice(-20).join(" ")}`;
    },
  };
};

/**
 * Keeps the browser from acting on a press itself, as engines do so that a
 * drag selects nothing. A frame then does not get the keyboard by a click.
 */
export const cancelPresses = (canvas) => {
  for (const type of ["pointerdown", "mousedown"]) {
    canvas.addEventListener(type, (event) => event.preventDefault());
  }
};
