// Deleting errors that nobody needs to see, such as those that a visitor made up.

import { allById, byId } from "./dom.js";
import { Question } from "./question.js";

/** @import { Inside } from "./dom.js" */

/**
 * Returns a function that asks before errors are deleted. Viewers, who may not delete any, do not
 * get to see its button.
 *
 * @returns {(words: Inside[], remove: () => Promise<void>) => void}
 */
export const errorRemoval = () => {
  const [dialog, yes, no, error] = allById(
    "error-removal",
    "error-removal-yes",
    "error-removal-no",
    "error-removal-error",
  );
  const question = new Question(dialog, yes, no, error);
  return (words, remove) => {
    byId("error-removal-words").replaceChildren(...words);
    yes.onclick = () => question.confirm(remove);
    question.ask();
  };
};
