// Numbers as small bars.

const SVG = "http://www.w3.org/2000/svg";
/** Height of the chart, in the units of its own view. */
const HIGH = 24;
const WIDE = 4;

/**
 * Makes an element of a chart.
 *
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 */
const svg = (name, attributes) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  return element;
};

/**
 * Shows numbers as bars. The least number above zero can be seen.
 *
 * @param {number[]} numbers
 * @param {string} words what they are, for who does not see them
 */
export const chart = (numbers, words) => {
  const most = Math.max(...numbers, 1);
  const total = numbers.reduce((sum, number) => sum + number, 0);
  const picture = svg("svg", {
    viewBox: `0 0 ${numbers.length * WIDE} ${HIGH}`,
    preserveAspectRatio: "none",
    class: "spark",
    role: "img",
    "aria-label": `${words}: ${total.toLocaleString()}, at most ${Math.max(...numbers, 0).toLocaleString()}`,
  });
  for (const [at, number] of numbers.entries()) {
    const high = number ? Math.max(2, Math.round((number / most) * HIGH)) : 1;
    picture.append(
      svg("rect", {
        x: at * WIDE,
        y: HIGH - high,
        width: WIDE - 1,
        height: high,
        class: number ? "some" : "none",
      }),
    );
  }
  return picture;
};
