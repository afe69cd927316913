// Controls that act by one press. The click that led to this page may be the
// first half of a double click on another one, and the second half must not
// act: as on the pages of the auth service, a press counts once the control
// could be read.

/** Milliseconds that a control has to be there before a press of it counts. */
const READING = 2000;

/** A button, or another control, that is disabled until it could be read, and while it works. */
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
    // Another window may have covered this one, and have gone between two clicks. Who
    // is at the control already, by the keyboard, stays there.
    addEventListener("focus", () => {
      if (document.activeElement !== control) this.show();
    });
  }

  /** It is shown anew, or for another question. */
  show() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#draw();
    }, READING);
    this.#draw();
  }

  /**
   * Whether what it does is on its way.
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
