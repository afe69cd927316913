// The rules of the game, without a page, a canvas or a clock, so that they can
// be read, changed and tested alone.

/** The side of a square that has the area of every field, whatever its shape: a
 * phone's tall field is as hard as a wide one. */
export const FIELD_SIDE = 560;

const LIGHTS = 5;
const LIGHT_POINTS = 10;
const CHAIN_SECONDS = 2.5;
const LONGEST_CHAIN = 8;

const SPEED = 270;
const RESPONSE = 9;
const DASH_SPEED = 760;
const DASH_SECONDS = 0.2;
const DASH_REST_SECONDS = 1.1;

const FLY_RADIUS = 9;
const LIGHT_RADIUS = 20;
const HARDEST_AFTER_SECONDS = 100;

/** What happened in a step, and where.
 * @typedef {{ kind: "light" | "dash" | "over", x: number, y: number, points?: number }} Happening */

/** @typedef {{ x: number, y: number }} Place */
/** @typedef {Place & { age: number, phase: number }} Light */
/** @typedef {Place & { vx: number, vy: number, radius: number, turn: number, spin: number,
 *   age: number }} Thistle */

/** One round: a firefly, the lights that it gathers, and the thistles. */
export class World {
  /**
   * @param {number} width
   * @param {number} height
   * @param {() => number} random from 0 to below 1
   */
  constructor(width, height, random = Math.random) {
    this.random = random;
    this.width = width;
    this.height = height;
    this.fly = { x: width / 2, y: height / 2, vx: 0, vy: 0, facing: 0 };
    this.dash = { left: 0, rest: 0 };
    /** @type {Light[]} */
    this.lights = [];
    /** @type {Thistle[]} */
    this.thistles = [];
    this.time = 0;
    this.untilThistle = 1.2;
    this.score = 0;
    this.chain = 0;
    this.chainLeft = 0;
    this.over = false;
    while (this.lights.length < LIGHTS) this.#addLight();
  }

  /** Adapts to a new size of the field, for example when a phone is turned.
   * @param {number} width
   * @param {number} height */
  resize(width, height) {
    const across = width / this.width;
    const down = height / this.height;
    for (const thing of [this.fly, ...this.lights, ...this.thistles]) {
      thing.x *= across;
      thing.y *= down;
    }
    this.width = width;
    this.height = height;
  }

  /** How hard the round is: 0 at its beginning, and 1 at most. */
  get hardness() {
    return Math.min(1, this.time / HARDEST_AFTER_SECONDS);
  }

  /**
   * Lets `seconds` pass, and returns what happened meanwhile.
   * @param {number} seconds
   * @param {import("./controls.js").Steering} steering
   */
  step(seconds, steering) {
    /** @type {Happening[]} */
    const events = [];
    if (this.over) return events;
    this.time += seconds;
    this.#fly(seconds, steering, events);
    this.#gather(seconds, events);
    this.#drift(seconds);
    if (this.dash.left <= 0 && this.thistles.some((thistle) => this.#touches(thistle))) {
      this.over = true;
      events.push({ kind: "over", x: this.fly.x, y: this.fly.y });
    }
    return events;
  }

  /**
   * @param {number} seconds
   * @param {import("./controls.js").Steering} steering
   * @param {Happening[]} events
   */
  #fly(seconds, steering, events) {
    const { fly, dash } = this;
    dash.left = Math.max(0, dash.left - seconds);
    dash.rest = Math.max(0, dash.rest - seconds);
    if (steering.dash && dash.rest === 0) {
      const length = Math.hypot(steering.x, steering.y);
      const angle = length > 0.1 ? Math.atan2(steering.y, steering.x) : fly.facing;
      fly.vx = Math.cos(angle) * DASH_SPEED;
      fly.vy = Math.sin(angle) * DASH_SPEED;
      dash.left = DASH_SECONDS;
      dash.rest = DASH_REST_SECONDS;
      events.push({ kind: "dash", x: fly.x, y: fly.y });
    } else if (dash.left === 0) {
      // Exponential, so that the flight does not depend on the frame rate.
      const share = 1 - Math.exp(-RESPONSE * seconds);
      fly.vx += (steering.x * SPEED - fly.vx) * share;
      fly.vy += (steering.y * SPEED - fly.vy) * share;
    }
    fly.x = clamp(fly.x + fly.vx * seconds, FLY_RADIUS, this.width - FLY_RADIUS);
    fly.y = clamp(fly.y + fly.vy * seconds, FLY_RADIUS, this.height - FLY_RADIUS);
    if (Math.hypot(fly.vx, fly.vy) > 20) fly.facing = Math.atan2(fly.vy, fly.vx);
  }

  /**
   * @param {number} seconds
   * @param {Happening[]} events
   */
  #gather(seconds, events) {
    this.chainLeft = Math.max(0, this.chainLeft - seconds);
    if (this.chainLeft === 0) this.chain = 0;
    for (const light of this.lights) light.age += seconds;
    const caught = this.lights.filter(
      (light) => distance(light, this.fly) < LIGHT_RADIUS + FLY_RADIUS,
    );
    for (const light of caught) {
      this.chain = Math.min(this.chain + 1, LONGEST_CHAIN);
      this.chainLeft = CHAIN_SECONDS;
      const points = LIGHT_POINTS * this.chain;
      this.score += points;
      events.push({ kind: "light", x: light.x, y: light.y, points });
    }
    this.lights = this.lights.filter((light) => !caught.includes(light));
    while (this.lights.length < LIGHTS) this.#addLight();
  }

  /** @param {number} seconds */
  #drift(seconds) {
    for (const thistle of this.thistles) {
      thistle.x += thistle.vx * seconds;
      thistle.y += thistle.vy * seconds;
      thistle.turn += thistle.spin * seconds;
      thistle.age += seconds;
    }
    const gone = (/** @type {Thistle} */ t) =>
      t.age > 2 && (t.x < -60 || t.y < -60 || t.x > this.width + 60 || t.y > this.height + 60);
    this.thistles = this.thistles.filter((thistle) => !gone(thistle));
    this.untilThistle -= seconds;
    if (this.untilThistle <= 0) {
      this.#addThistle();
      this.untilThistle = between(1.25, 0.36, this.hardness) * (0.7 + 0.6 * this.random());
    }
  }

  #addLight() {
    const margin = 40;
    const somewhere = () => ({
      x: margin + this.random() * (this.width - 2 * margin),
      y: margin + this.random() * (this.height - 2 * margin),
    });
    let place = somewhere();
    // A light beside the firefly would be too easy; a few tries are enough.
    for (let tries = 1; tries < 8 && distance(place, this.fly) <= 130; tries += 1) {
      place = somewhere();
    }
    this.lights.push({ ...place, age: 0, phase: this.random() * 6 });
  }

  /** Adds a thistle beyond an edge, which drifts roughly towards the firefly. */
  #addThistle() {
    const radius = 13 + this.random() * 13;
    const along = this.random();
    const [x, y] = [
      [along * this.width, -radius],
      [along * this.width, this.height + radius],
      [-radius, along * this.height],
      [this.width + radius, along * this.height],
    ][Math.floor(this.random() * 4)];
    const angle = Math.atan2(this.fly.y - y, this.fly.x - x) + (this.random() - 0.5) * 0.9;
    const speed = between(75, 190, this.hardness) * (0.75 + 0.5 * this.random());
    this.thistles.push({
      x,
      y,
      radius,
      vx: Math.cos(angle) * speed,
      vy: Math.sin(angle) * speed,
      turn: this.random() * 6,
      spin: (this.random() - 0.5) * 3,
      age: 0,
    });
  }

  /** @param {Thistle} thistle */
  #touches(thistle) {
    // Spikes are drawn beyond the radius: touching only them is a near miss.
    return distance(thistle, this.fly) < thistle.radius + FLY_RADIUS - 4;
  }
}

/** @type {(value: number, low: number, high: number) => number} */
const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
/** @type {(from: number, to: number, share: number) => number} */
const between = (from, to, share) => from + (to - from) * share;
/** @type {(a: Place, b: Place) => number} */
const distance = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);
