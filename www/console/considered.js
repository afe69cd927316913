// Controls that act on one press. The click that led to this page may be the first half of a
// double click, and its second half must not act. As on the pages of the auth service, a press
// counts only after the viewer had time to read the control.

/** How many milliseconds a control is shown before a press counts. */
const READING = 2000;

/**
 * A button or another control that is disabled while there was no time to read it, and while its
 * action runs.
 */
export class Considered {
  /** @type {HTMLButtonElement | HTMLInputElement} */
  #control;
  /** @type {number | undefined} */
  #timer;
  #isBusy = false;

  /** @param {HTMLButtonElement | HTMLInputElement} control */
  constructor(control) {
    this.#control = control;
    this.show();
    // Another window may have covered this one and closed between two clicks. A control that
    // has the keyboard focus is left as it is.
    addEventListener("focus", () => {
      if (document.activeElement !== control) this.show();
    });
  }

  /** Starts the time again, because the control is shown again, or for another question. */
  show() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#draw();
    }, READING);
    this.#draw();
  }

  /**
   * Whether its action is running.
   *
   * @param {boolean} isBusy
   */
  set isBusy(isBusy) {
    this.#isBusy = isBusy;
    this.#draw();
  }

  #draw() {
    this.#control.disabled = this.#isBusy || this.#timer !== undefined;
  }
}
