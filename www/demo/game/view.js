// Draws a world on the canvas, sharp on every screen, in the colours of the
// style sheet.

import { FIELD_SIDE } from "./world.js";

const COLOURS = [
  "hill-far",
  "hill-near",
  "grass",
  "ink",
  "light",
  "glow",
  "body",
  "wing",
  "thistle",
  "thistle-core",
  "dust",
];
const FULL_TURN = Math.PI * 2;

/** @typedef {import("./world.js").World} World */
/** @typedef {import("./world.js").Place} Place */

export class View {
  /** The sparks of caught lights, which fade.
   * @type {(Place & { age: number, vx: number, vy: number, colour: string })[]} */
  #sparks = [];
  /** The numbers of points, which fade.
   * @type {(Place & { age: number, text: string })[]} */
  #texts = [];
  /** @type {(Place & { age: number })[]} */
  #trail = [];

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = drawing(canvas);
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", () => Object.assign(this, readColours()));
    const { colours, halo } = readColours();
    this.colours = colours;
    this.halo = halo;
    this.motes = Array.from({ length: 46 }, (_, index) => ({
      // These factors spread the motes without gaps or rows.
      x: (index * 0.618034) % 1,
      y: (index * 0.754878) % 1,
      size: 0.6 + ((index * 7) % 5) / 4,
    }));
    // CSS pixels per unit of the field, and screen pixels per CSS pixel: see
    // `fit`.
    this.scale = 1;
    this.density = 1;
    this.fit();
  }

  /** Adapts to the canvas's size on the page. Returns the field's size. */
  fit() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const density = Math.min(devicePixelRatio || 1, 3);
    this.canvas.width = Math.max(1, Math.round(width * density));
    this.canvas.height = Math.max(1, Math.round(height * density));
    // Every field has the same area.
    this.scale = Math.sqrt(Math.max(1, width * height)) / FIELD_SIDE;
    this.density = density;
    return { width: width / this.scale, height: height / this.scale };
  }

  /** Shows for a moment what happened in the world.
   * @param {import("./world.js").Happening[]} events */
  celebrate(events) {
    for (const { kind, x, y, points } of events) {
      if (points) this.#texts.push({ x, y: y - 14, text: `+${points}`, age: 0 });
      if (this.calm.matches) continue;
      const count = { light: 12, dash: 8, over: 30 }[kind];
      for (let index = 0; index < count; index += 1) {
        const angle = (index / count) * FULL_TURN + x;
        const speed = (kind === "over" ? 150 : 70) * (0.5 + ((index * 5) % 7) / 7);
        this.#sparks.push({
          x,
          y,
          age: 0,
          vx: Math.cos(angle) * speed,
          vy: Math.sin(angle) * speed,
          colour: kind === "over" ? "thistle" : "glow",
        });
      }
    }
  }

  /**
   * Draws one frame.
   * @param {World} world
   * @param {number} seconds since the last one
   * @param {import("./controls.js").Pointer | null} stick
   */
  draw(world, seconds, stick) {
    const { context, canvas } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    const unit = this.scale * this.density;
    context.setTransform(unit, 0, 0, unit, 0, 0);
    this.#meadow(world);
    this.#age(seconds);
    for (const light of world.lights) this.#light(light);
    if (!world.over) this.#firefly(world, seconds);
    for (const thistle of world.thistles) this.#thistle(thistle);
    this.#effects();
    if (stick) this.#stick(stick);
  }

  /** @param {World} world */
  #meadow({ width, height, time }) {
    const { context, colours } = this;
    const drift = this.calm.matches ? 0 : time;
    context.fillStyle = colours.dust;
    for (const mote of this.motes) {
      context.globalAlpha = this.calm.matches ? 0.4 : 0.35 + 0.25 * Math.sin(time + mote.x * 40);
      const x = ((mote.x + drift * 0.004 * mote.size) % 1) * width;
      disc(context, x, mote.y * height * 0.85, mote.size);
    }
    context.globalAlpha = 1;
    this.#hill(width, height, 96, 0.011, 0.4, colours["hill-far"]);
    this.#hill(width, height, 54, 0.017, 2.1, colours["hill-near"]);
    this.#grass(width, height, drift);
  }

  /**
   * @param {number} width
   * @param {number} height
   * @param {number} rise
   * @param {number} pitch
   * @param {number} shift
   * @param {string} colour
   */
  #hill(width, height, rise, pitch, shift, colour) {
    const { context } = this;
    context.fillStyle = colour;
    context.beginPath();
    context.moveTo(0, height);
    for (let x = 0; x <= width + 12; x += 12) {
      const wave = Math.sin(x * pitch + shift) + 0.5 * Math.sin(x * pitch * 2.3 + shift * 3);
      context.lineTo(x, height - rise - wave * rise * 0.28);
    }
    context.lineTo(width, height);
    context.fill();
  }

  /**
   * @param {number} width
   * @param {number} height
   * @param {number} drift
   */
  #grass(width, height, drift) {
    const { context } = this;
    context.fillStyle = this.colours.grass;
    context.beginPath();
    for (let x = -4; x < width + 4; x += 7) {
      const tall = 14 + 10 * Math.abs(Math.sin(x * 1.7)) + 5 * Math.sin(x * 0.31);
      const sway = 3 * Math.sin(drift * 1.4 + x * 0.05);
      context.moveTo(x - 4, height);
      context.quadraticCurveTo(x, height - tall * 0.6, x + sway, height - tall);
      context.quadraticCurveTo(x + 2, height - tall * 0.5, x + 5, height);
    }
    context.fill();
  }

  /** @param {import("./world.js").Light} light */
  #light({ x, y, age, phase }) {
    const { context, colours } = this;
    const grown = Math.min(1, age * 3);
    const breath = this.calm.matches ? 1 : 1 + 0.12 * Math.sin(age * 3 + phase);
    this.#glow(x, y, 26 * grown * breath, 0.75);
    context.fillStyle = colours.light;
    disc(context, x, y, 6 * grown * breath);
    context.fillStyle = "#fffbe8";
    disc(context, x - 1.5, y - 1.5, 2.4 * grown);
  }

  /**
   * @param {World} world
   * @param {number} seconds
   */
  #firefly({ fly, dash, time, chain }, seconds) {
    const { context, colours } = this;
    if (!this.calm.matches) {
      this.#trail.push({ x: fly.x, y: fly.y, age: 0 });
      for (const spot of this.#trail) {
        spot.age += seconds;
        this.#glow(spot.x, spot.y, 14 * (1 - spot.age / 0.4), 0.12);
      }
      this.#trail = this.#trail.filter((spot) => spot.age < 0.4);
    }
    this.#glow(fly.x, fly.y, 34 + chain * 3, dash.left > 0 ? 1 : 0.8);
    if (dash.rest > 0) {
      // The ring closes when the next dash is ready.
      context.strokeStyle = colours.light;
      context.lineWidth = 2;
      context.globalAlpha = 0.7;
      context.beginPath();
      context.arc(fly.x, fly.y, 19, -Math.PI / 2, -Math.PI / 2 + FULL_TURN * (1 - dash.rest / 1.1));
      context.stroke();
      context.globalAlpha = 1;
    }
    context.save();
    context.translate(fly.x, fly.y);
    context.rotate(fly.facing + Math.PI / 2);
    const beat = this.calm.matches ? 0.5 : 0.5 + 0.5 * Math.sin(time * 42);
    context.globalAlpha = 0.8;
    context.fillStyle = colours.wing;
    for (const side of [-1, 1]) {
      context.beginPath();
      context.ellipse(side * 8, -3, 9, 3 + 2 * beat, side * (0.45 + 0.3 * beat), 0, FULL_TURN);
      context.fill();
    }
    context.globalAlpha = 1;
    context.fillStyle = colours.light;
    ellipse(context, 0, 4, 5, 8.5);
    context.fillStyle = colours.body;
    ellipse(context, 0, -5, 4.2, 5);
    context.restore();
  }

  /** @param {import("./world.js").Thistle} thistle */
  #thistle({ x, y, radius, turn, age }) {
    const { context, colours } = this;
    const spikes = 11;
    context.save();
    context.translate(x, y);
    context.rotate(this.calm.matches ? 0 : turn);
    context.globalAlpha = Math.min(1, age * 4);
    context.fillStyle = colours.thistle;
    context.beginPath();
    for (let index = 0; index < spikes * 2; index += 1) {
      const angle = (index / (spikes * 2)) * FULL_TURN;
      const reach = index % 2 ? radius * 0.66 : radius * 1.25;
      context.lineTo(Math.cos(angle) * reach, Math.sin(angle) * reach);
    }
    context.fill();
    context.fillStyle = colours["thistle-core"];
    disc(context, 0, 0, radius * 0.5);
    context.restore();
  }

  /** @param {number} seconds */
  #age(seconds) {
    for (const effect of [...this.#sparks, ...this.#texts]) effect.age += seconds;
    for (const spark of this.#sparks) {
      spark.x += spark.vx * seconds;
      spark.y += spark.vy * seconds;
    }
    this.#sparks = this.#sparks.filter((spark) => spark.age < 0.6);
    this.#texts = this.#texts.filter((text) => text.age < 0.9);
  }

  #effects() {
    const { context, colours } = this;
    for (const { x, y, age, colour } of this.#sparks) {
      context.globalAlpha = 1 - age / 0.6;
      context.fillStyle = colours[colour];
      disc(context, x, y, 2.6);
    }
    context.font = "700 17px ui-rounded, system-ui, sans-serif";
    context.textAlign = "center";
    context.fillStyle = colours.ink;
    for (const { x, y, age, text } of this.#texts) {
      context.globalAlpha = Math.min(1, 2 * (1 - age / 0.9));
      context.fillText(text, x, y - (this.calm.matches ? 0 : age * 26));
    }
    context.globalAlpha = 1;
  }

  /** Draws, under the finger, where it began and how far it steers.
   * @param {import("./controls.js").Pointer} pointer */
  #stick({ fromX, fromY, x, y }) {
    const { context, colours, scale } = this;
    const length = Math.max(1, Math.hypot(x - fromX, y - fromY) / 52);
    context.globalAlpha = 0.28;
    context.strokeStyle = colours.ink;
    context.fillStyle = colours.ink;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(fromX / scale, fromY / scale, 52 / scale, 0, FULL_TURN);
    context.stroke();
    disc(
      context,
      (fromX + (x - fromX) / length) / scale,
      (fromY + (y - fromY) / length) / scale,
      20 / scale,
    );
    context.globalAlpha = 1;
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {number} radius
   * @param {number} strength
   */
  #glow(x, y, radius, strength) {
    if (radius <= 0) return;
    this.context.globalAlpha = strength;
    this.context.drawImage(this.halo, x - radius, y - radius, radius * 2, radius * 2);
    this.context.globalAlpha = 1;
  }
}

/** Returns the colours of the style sheet, which has others for dark mode. */
function readColours() {
  const styles = getComputedStyle(document.documentElement);
  const colours = Object.fromEntries(
    COLOURS.map((name) => [name, styles.getPropertyValue(`--${name}`).trim()]),
  );
  return { colours, halo: haloOf(colours.glow) };
}

/** @param {HTMLCanvasElement} canvas */
function drawing(canvas) {
  // It is null only for a canvas that has a context of another kind.
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}

/** Returns a halo, which is drawn once and then copied: a gradient for each
 * light in each frame would be the most expensive thing on the page.
 * @param {string} colour */
function haloOf(colour) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 128;
  const context = drawing(canvas);
  const gradient = context.createRadialGradient(64, 64, 0, 64, 64, 64);
  gradient.addColorStop(0, `${colour}cc`);
  gradient.addColorStop(0.35, `${colour}55`);
  gradient.addColorStop(1, `${colour}00`);
  context.fillStyle = gradient;
  context.fillRect(0, 0, 128, 128);
  return canvas;
}

/** @type {(context: CanvasRenderingContext2D, x: number, y: number, radius: number) => void} */
function disc(context, x, y, radius) {
  ellipse(context, x, y, radius, radius);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {number} across
 * @param {number} down
 */
function ellipse(context, x, y, across, down) {
  context.beginPath();
  context.ellipse(x, y, Math.max(0, across), Math.max(0, down), 0, 0, FULL_TURN);
  context.fill();
}
