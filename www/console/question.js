// A question before an action: a dialog with a button that confirms and one that cancels.

import { Considered } from "./considered.js";
import { Refusal } from "./session.js";

/** A dialog that asks, one question at a time. A new question replaces the one before. */
export class Question {
  #dialog;
  #error;
  #yes;
  /** How many questions were asked so far. */
  #turn = 0;

  /**
   * @param {HTMLDialogElement} dialog
   * @param {HTMLButtonElement} yes
   * @param {HTMLButtonElement} no
   * @param {HTMLElement} error where it is shown why an action was refused
   */
  constructor(dialog, yes, no, error) {
    this.#dialog = dialog;
    this.#error = error;
    this.#yes = new Considered(yes);
    no.onclick = () => dialog.close();
  }

  /** Opens the dialog for the next question. */
  ask() {
    this.#turn += 1;
    this.#error.textContent = "";
    this.#yes.isBusy = false;
    this.#yes.show();
    this.#dialog.showModal();
  }

  /**
   * Runs the action of the question, which the viewer has confirmed. The dialog closes when the
   * action is done, and shows the reason if it is refused, unless it asks another question by then.
   *
   * @param {() => Promise<void>} act
   * @returns {Promise<boolean>} whether it is done
   */
  async confirm(act) {
    const turn = this.#turn;
    this.#yes.isBusy = true;
    try {
      await act();
      if (turn === this.#turn) this.#dialog.close();
      return true;
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      if (turn === this.#turn) this.#error.textContent = refusal.message;
      return false;
    } finally {
      if (turn === this.#turn) this.#yes.isBusy = false;
    }
  }
}
