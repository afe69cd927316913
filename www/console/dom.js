// The elements that the console's pages are made of, and how numbers and times are written.
// Much of the text comes from players. So text is only ever set as text, never as an address, a
// style or markup, and each piece has its own direction of writing.

/**
 * Characters that are invisible, that turn, hide or move the text around them, or that control a
 * terminal. The one that turns a sign into an emoji is allowed after such a sign.
 * The table is that of `protocol/src/invisible.rs`, where a test compares both.
 */
const UNSEEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: This expression finds control characters.
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: It also finds marks that combine with others.
  /(?<!\p{Extended_Pictographic})\ufe0f|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu;

/**
 * Returns the text, with a visible sign in place of each invisible character.
 *
 * @param {unknown} text
 */
export const plain = (text) =>
  String(text)
    .replace(/\r\n/g, "\n")
    .replace(UNSEEN, (char) => {
      const code = /** @type {number} */ (char.codePointAt(0));
      return code < 32
        ? String.fromCodePoint(0x2400 + code)
        : `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
    });

/** @typedef {Node | string} Inside What can be in an element. */

/**
 * Returns the element with this id, which the page always has.
 *
 * @template {keyof PageElements} Id
 * @param {Id} id
 * @returns {PageElements[Id]}
 */
export const byId = (id) => /** @type {any} */ (document.getElementById(id));

/**
 * Returns the elements with these ids, which the page always has.
 *
 * @template {(keyof PageElements)[]} Ids
 * @param {Ids} ids
 * @returns {{ [At in keyof Ids]: PageElements[Ids[At]] }}
 */
export const allById = (...ids) => /** @type {any} */ (ids.map((id) => byId(id)));

/**
 * Reads a value that the page's template has written into the page, as a `data-…` attribute of the
 * element `inside`.
 *
 * @param {string} name
 */
export const pageData = (name) => byId("inside").dataset[name] ?? "";

/**
 * Makes an element with these properties and this content.
 *
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Partial<HTMLElementTagNameMap[Name]>} properties
 * @param {...Inside} inside
 */
export const make = (name, properties = {}, ...inside) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...inside);
  return element;
};

/**
 * Replaces what is in an element, unless it says the same already: a link in it may have the focus.
 *
 * @param {HTMLElement} element
 * @param {...Inside} inside
 */
export const refill = (element, ...inside) => {
  const filled = make("span", {}, ...inside);
  if (filled.textContent !== element.textContent) element.replaceChildren(...filled.childNodes);
};

/**
 * Shows text that somebody else wrote, isolated from the direction of the text around it.
 *
 * @param {unknown} text
 */
export const userText = (text, className = "") =>
  make("bdi", { className, textContent: plain(text) });

/** The form of all times: in the reader's language and time zone, with the zone's name. */
const days = new Intl.DateTimeFormat(undefined, {
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "short",
});
const hours = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/**
 * Returns a time in milliseconds since 1970 as text.
 *
 * @param {number} millis
 */
export const momentText = (millis) => days.format(millis);

/**
 * Shows a time (RFC 3339), with or without its day.
 *
 * @param {string} text
 * @param {boolean} [withDay]
 */
export const moment = (text, withDay = true) =>
  make("time", {
    dateTime: text,
    title: text,
    textContent: (withDay ? days : hours).format(new Date(text)),
  });

const decimal = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const hundredth = new Intl.NumberFormat(undefined, { maximumFractionDigits: 2 });

/**
 * Returns a mean value as text. `most` is the greatest of the values: a mean above zero is not
 * shown as zero.
 *
 * @param {number} number
 * @param {number} most
 */
export const mean = (number, most) => {
  if (!most || number >= 0.1) return decimal.format(number);
  return number < 0.01 ? `under ${hundredth.format(0.01)}` : hundredth.format(number);
};

/**
 * Returns a size as text, in the units of the platform's settings and limits.
 *
 * @param {number} bytes
 */
export const size = (bytes) => {
  if (bytes < 1024) return `${bytes} B`;
  const [unit, power] = bytes < 1024 ** 2 ? ["KiB", 1] : ["MiB", 2];
  return `${decimal.format(bytes / 1024 ** power)} ${unit}`;
};

/**
 * Returns a number with its noun, in the singular or plural.
 *
 * @param {number} number
 * @param {string} one
 * @param {string} more
 */
export const count = (number, one, more) => `${number} ${number === 1 ? one : more}`;

/**
 * Returns how many play now, in words. The platform may not know it.
 *
 * @param {number | null} players
 */
export const playersNow = (players) =>
  players === null ? "players now: unknown" : `${count(players, "player", "players")} now`;

/**
 * Returns the sum of two numbers; null if one of them is not known.
 *
 * @param {number | null} one
 * @param {number | null} other
 */
export const sum = (one, other) => (one === null || other === null ? null : one + other);
