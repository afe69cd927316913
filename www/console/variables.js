// The variables that a game's backend needs, with buttons to copy them.

import { byId, make } from "./dom.js";

/** @import { Desk, Part } from "./project.js" */

/**
 * Copies a text, or selects the element that shows it, and says so. `told` is how screen readers
 * name the text.
 *
 * @param {HTMLButtonElement} button
 * @param {string} text
 * @param {Node} shown
 * @param {string} [told]
 */
export const copy = async (button, text, shown, told = text) => {
  const label = /** @type {Text} */ (button.firstChild);
  const before = label.data;
  try {
    await navigator.clipboard.writeText(text);
    label.data = "Copied";
  } catch {
    // The browser does not let the page copy.
    getSelection()?.selectAllChildren(shown);
    label.data = "Selected";
  }
  byId("news").textContent = `${label.data}: ${told}`;
  if (/^(Copied|Selected)$/.test(before)) return;
  setTimeout(() => (label.data = before), 2000);
};

/**
 * Shows a variable with its button, as an item of a list.
 *
 * @param {[name: string, value: string]} variable
 */
export const variable = ([name, value]) => {
  // A line breaks before the value, or before the path of an address.
  const parts = value.split(/(?<=[^/])(?=\/[^/])/);
  const code = make("code", {}, `${name}=`, ...parts.flatMap((part) => [make("wbr"), part]));
  const button = make(
    "button",
    { className: "button second small-button", type: "button" },
    "Copy",
    make("span", { className: "aside", textContent: ` ${name}` }),
  );
  button.onclick = () => copy(button, `${name}=${value}`, code);
  return make("li", {}, code, button);
};

/**
 * The section about the variables of an environment.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const variables = (desk) => ({
  open: () =>
    byId("variables").replaceChildren(...Object.entries(desk.now.variables).map(variable)),
});
