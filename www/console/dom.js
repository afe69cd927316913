// What the console's pages are made of. Text comes from players, so it is only
// ever set as text, each piece turned for itself alone, and nothing of it is
// ever an address, a style or markup.

/**
 * Characters that turn, hide or move the text around them, that are not to be seen
 * themselves, or that command a terminal. What makes a picture of a sign may stay.
 */
const UNSEEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Control characters are looked for.
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: So are marks that combine with others.
  /(?<!\p{Extended_Pictographic})\ufe0f|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu;

/**
 * The text with everything in it to be seen.
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
 * The element of this id, which the page always has.
 *
 * @template {keyof PageElements} Id
 * @param {Id} id
 * @returns {PageElements[Id]}
 */
export const byId = (id) => /** @type {any} */ (document.getElementById(id));

/**
 * The elements of these ids, which the page always has.
 *
 * @template {(keyof PageElements)[]} Ids
 * @param {Ids} ids
 * @returns {{ [At in keyof Ids]: PageElements[Ids[At]] }}
 */
export const allById = (...ids) => /** @type {any} */ (ids.map((id) => byId(id)));

/**
 * What the page's template says of the page: an attribute `data-…` of the element `inside`.
 *
 * @param {string} name
 */
export const given = (name) => byId("inside").dataset[name] ?? "";

/**
 * An element with properties and what is in it: elements, or text.
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
 * Somebody else's text, isolated from what is around it.
 *
 * @param {unknown} text
 */
export const said = (text, className = "") => make("bdi", { className, textContent: plain(text) });

/** The one form of moments: in the reader's language and time zone, which is named. */
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
 * A moment in milliseconds as a reader here would write it, as text.
 *
 * @param {number} millis
 */
export const momentText = (millis) => days.format(millis);

/**
 * The same as an element; without the day for what is of today.
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
 * The mean of what was `most` at most, as a person reads it: what is above nothing is not called nothing.
 *
 * @param {number} number
 * @param {number} most
 */
export const mean = (number, most) => {
  if (!most || number >= 0.1) return decimal.format(number);
  return number < 0.01 ? `under ${hundredth.format(0.01)}` : hundredth.format(number);
};

/**
 * Bytes as a person reads them, in the units of the platform's settings and limits.
 *
 * @param {number} bytes
 */
export const size = (bytes) => {
  if (bytes < 1024) return `${bytes} B`;
  const [unit, power] = bytes < 1024 ** 2 ? ["KiB", 1] : ["MiB", 2];
  return `${decimal.format(bytes / 1024 ** power)} ${unit}`;
};

/**
 * A number with the word that belongs to it.
 *
 * @param {number} number
 * @param {string} one
 * @param {string} more
 */
export const count = (number, one, more) => `${number} ${number === 1 ? one : more}`;
