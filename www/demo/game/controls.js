// Turns the input of keyboard, mouse and touch into a direction and a dash.

/** @type {Record<string, [x: number, y: number]>} */
const DIRECTIONS = {
  ArrowLeft: [-1, 0],
  KeyA: [-1, 0],
  ArrowRight: [1, 0],
  KeyD: [1, 0],
  ArrowUp: [0, -1],
  KeyW: [0, -1],
  ArrowDown: [0, 1],
  KeyS: [0, 1],
};

/** How many CSS pixels a finger moves for full speed. */
const STICK_REACH = 52;
/** A shorter and quicker touch is a tap. */
const TAP_TRAVEL = 12;
const TAP_MS = 220;

/** What the player wants: a direction of length 1 at most, and whether to dash.
 * @typedef {{ x: number, y: number, dash: boolean }} Steering */

/** A held finger or mouse button: where it began and where it is.
 * @typedef {{ id: number, touch: boolean, fromX: number, fromY: number, x: number, y: number,
 *   at: number }} Pointer */

export class Controls {
  /** @type {Set<string>} */
  #held = new Set();
  #dash = false;
  /** @type {Pointer | null} */
  #pointer = null;

  /**
   * @param {HTMLElement} surface takes pointers
   * @param {() => { x: number, y: number }} flyOnSurface where the firefly is, in
   *   CSS pixels of the surface: a held mouse button calls it to the pointer
   */
  constructor(surface, flyOnSurface) {
    this.surface = surface;
    this.flyOnSurface = flyOnSurface;
    // `code`, not `key`: W A S D are at the same places on every keyboard
    // layout.
    addEventListener("keydown", (event) => this.#onKeyDown(event));
    addEventListener("keyup", (event) => this.#held.delete(event.code));
    surface.addEventListener("pointerdown", (event) => this.#onPointerDown(event));
    surface.addEventListener("pointermove", (event) => this.#onPointerMove(event));
    surface.addEventListener("pointerup", (event) => this.#onPointerUp(event));
    surface.addEventListener("pointercancel", (event) => this.#onPointerUp(event, true));
  }

  /** Only during a round: otherwise space presses buttons, and arrows scroll. */
  active = false;

  /** Returns what the player wants now. A dash is reported once.
   * @returns {Steering} */
  read() {
    let x = 0;
    let y = 0;
    for (const code of this.#held) {
      x += DIRECTIONS[code][0];
      y += DIRECTIONS[code][1];
    }
    if (x === 0 && y === 0 && this.#pointer) ({ x, y } = this.#directionOf(this.#pointer));
    const length = Math.max(1, Math.hypot(x, y));
    const dash = this.#dash;
    this.#dash = false;
    return { x: x / length, y: y / length, dash };
  }

  /** The finger that steers, for drawing, or null. */
  get stick() {
    return this.#pointer?.touch ? this.#pointer : null;
  }

  /** Releases everything: a key-up in another window never arrives here. */
  release() {
    this.#held.clear();
    this.#pointer = null;
    this.#dash = false;
  }

  /** @param {KeyboardEvent} event */
  #onKeyDown(event) {
    if (!this.active || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.code === "Space") {
      if (!event.repeat) this.#dash = true;
    } else if (event.code in DIRECTIONS) {
      this.#held.add(event.code);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** @param {PointerEvent} event */
  #onPointerDown(event) {
    if (!this.active || event.button > 0) return;
    if (this.#pointer) {
      // A second finger.
      this.#dash = true;
      return;
    }
    this.surface.setPointerCapture(event.pointerId);
    const { x, y } = this.#place(event);
    const touch = event.pointerType !== "mouse";
    this.#pointer = { id: event.pointerId, touch, fromX: x, fromY: y, x, y, at: event.timeStamp };
  }

  /** @param {PointerEvent} event */
  #onPointerMove(event) {
    const pointer = this.#pointer;
    if (pointer?.id === event.pointerId) Object.assign(pointer, this.#place(event));
  }

  /** @param {PointerEvent} event */
  #onPointerUp(event, cancelled = false) {
    const pointer = this.#pointer;
    if (!pointer || pointer.id !== event.pointerId) return;
    this.#pointer = null;
    const travel = Math.hypot(pointer.x - pointer.fromX, pointer.y - pointer.fromY);
    const quick = event.timeStamp - pointer.at < TAP_MS;
    if (!cancelled && quick && travel < TAP_TRAVEL) this.#dash = true;
  }

  /** Returns a pointer's direction. A finger steers like a joystick, so that it
   * need not cover the firefly. A mouse button calls the firefly to the
   * pointer.
   * @param {Pointer} pointer */
  #directionOf({ touch, fromX, fromY, x, y }) {
    const from = touch ? { x: fromX, y: fromY } : this.flyOnSurface();
    const reach = touch ? STICK_REACH : 30;
    const across = (x - from.x) / reach;
    const down = (y - from.y) / reach;
    const length = Math.max(1, Math.hypot(across, down));
    return { x: across / length, y: down / length };
  }

  /** @param {PointerEvent} event */
  #place(event) {
    const box = this.surface.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }
}
