// Numbers as small bars.

import { make } from "./dom.js";

/** The height of the least number above zero, in percent of the highest. */
const LEAST = 8;

/**
 * Shows numbers as bars. The least number above zero can be seen.
 *
 * @param {number[]} numbers
 * @param {string} words what they are, for who does not see them
 */
export const chart = (numbers, words) => {
  const most = Math.max(...numbers, 1);
  const total = numbers.reduce((sum, number) => sum + number, 0);
  const bars = numbers.map((number) => {
    const bar = make("span", { className: number ? "some" : "none" });
    bar.style.height = `${number ? Math.max(LEAST, (number / most) * 100) : LEAST / 2}%`;
    return bar;
  });
  const ariaLabel = `${words}: ${total.toLocaleString()}, at most ${Math.max(...numbers, 0).toLocaleString()}`;
  return make("div", { className: "spark", role: "img", ariaLabel }, ...bars);
};
