// The canvas. The colours are in the style sheet, so a theme is one block.

import { RINGS, SIZE, type Thing, type World } from "./world.ts";

const COLOURS = ["ring", "planet", "planet-shade", "moon", "spark", "rock", "star", "ink"] as const;
type Colours = Record<(typeof COLOURS)[number], string>;
interface Mote {
  x: number;
  y: number;
  vx: number;
  vy: number;
  left: number;
  colour: string;
}

export class View {
  readonly #context: CanvasRenderingContext2D;
  #colours!: Colours;
  #width = 0;
  #height = 0;
  #motes: Mote[] = [];
  #trail: { angle: number; radius: number }[] = [];
  #stars = Array.from({ length: 90 }, () => [Math.random(), Math.random(), Math.random()] as const);
  #calm = matchMedia("(prefers-reduced-motion: reduce)");

  constructor(private readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext("2d");
    if (!context) throw new Error("this browser has no canvas");
    this.#context = context;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", () => this.#readColours());
    this.#readColours();
    new ResizeObserver(() => this.#fit()).observe(canvas);
    this.#fit();
  }

  #readColours(): void {
    const style = getComputedStyle(this.canvas);
    const read = COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]);
    this.#colours = Object.fromEntries(read) as Colours;
  }

  #fit(): void {
    const sharpness = Math.min(devicePixelRatio, 2);
    this.#width = this.canvas.clientWidth;
    this.#height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.#width * sharpness);
    this.canvas.height = Math.round(this.#height * sharpness);
    this.#context.setTransform(sharpness, 0, 0, sharpness, 0, 0);
  }

  /** The radius of the outer ring in pixels. */
  get #unit(): number {
    return Math.min(this.#width, this.#height) * 0.4;
  }

  #at(angle: number, radius: number): [number, number] {
    const length = radius * this.#unit;
    return [
      this.#width / 2 + Math.cos(angle) * length,
      this.#height / 2 + Math.sin(angle) * length,
    ];
  }

  /** Shows sparks where the moon met something. */
  celebrate(met: Thing[]): void {
    if (this.#calm.matches) return;
    for (const thing of met) {
      const [x, y] = this.#at(thing.angle, RINGS[thing.ring]);
      for (let i = 0; i < (thing.kind === "rock" ? 28 : 10); i += 1) {
        const way = Math.random() * Math.PI * 2;
        const speed = 30 + Math.random() * 90;
        const colour = this.#colours[thing.kind];
        this.#motes.push({
          x,
          y,
          vx: Math.cos(way) * speed,
          vy: Math.sin(way) * speed,
          left: 0.6,
          colour,
        });
      }
    }
  }

  draw(world: World, seconds: number): void {
    const context = this.#context;
    context.clearRect(0, 0, this.#width, this.#height);
    this.#drawSky();
    for (const thing of world.things) this.#drawThing(thing);
    this.#drawMoon(world);
    for (const mote of this.#motes) mote.left -= seconds;
    this.#motes = this.#motes.filter((mote) => mote.left > 0);
    for (const mote of this.#motes) {
      mote.x += mote.vx * seconds;
      mote.y += mote.vy * seconds;
      this.#disc(mote.x, mote.y, 2.4, mote.colour, mote.left / 0.6);
    }
    context.globalAlpha = 1;
    context.fillStyle = "#fff";
    context.font = `600 ${this.#unit * 0.3}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(String(world.score), this.#width / 2, this.#height / 2 + this.#unit * 0.015);
  }

  #drawSky(): void {
    const context = this.#context;
    for (const [x, y, size] of this.#stars) {
      this.#disc(
        x * this.#width,
        y * this.#height,
        0.5 + size,
        this.#colours.star,
        0.25 + size * 0.6,
      );
    }
    context.globalAlpha = 1;
    context.strokeStyle = this.#colours.ring;
    context.lineWidth = 2;
    for (const ring of RINGS) {
      context.beginPath();
      context.arc(this.#width / 2, this.#height / 2, ring * this.#unit, 0, Math.PI * 2);
      context.stroke();
    }
    const [x, y] = [this.#width / 2, this.#height / 2];
    const radius = 0.36 * this.#unit;
    const light = context.createRadialGradient(
      x - radius * 0.4,
      y - radius * 0.5,
      radius * 0.1,
      x,
      y,
      radius,
    );
    light.addColorStop(0, this.#colours.planet);
    light.addColorStop(1, this.#colours["planet-shade"]);
    context.fillStyle = light;
    context.beginPath();
    context.arc(x, y, radius, 0, Math.PI * 2);
    context.fill();
  }

  #drawThing({ kind, ring, angle, age }: Thing): void {
    const context = this.#context;
    const [x, y] = this.#at(angle, RINGS[ring]);
    const size = SIZE[kind] * this.#unit * Math.min(1, age * 4);
    context.globalAlpha = Math.min(1, age * 4);
    context.fillStyle = this.#colours[kind];
    context.beginPath();
    const corners = kind === "spark" ? 8 : 7;
    for (let i = 0; i < corners; i += 1) {
      // A spark is a star with four rays; each rock has its own uneven shape.
      const uneven = 0.85 + 0.3 * Math.abs(Math.sin(angle * 7 + i * 2.4));
      const reach = kind === "spark" ? (i % 2 ? 0.42 : 1.25) : uneven;
      const way = (i / corners) * Math.PI * 2 + (kind === "spark" ? 0 : angle);
      context.lineTo(x + Math.cos(way) * size * reach, y + Math.sin(way) * size * reach);
    }
    context.closePath();
    context.fill();
  }

  #drawMoon(world: World): void {
    this.#trail.push({ angle: world.angle, radius: world.radius });
    if (this.#trail.length > 22) this.#trail.shift();
    const size = SIZE.moon * this.#unit;
    this.#trail.forEach(({ angle, radius }, index) => {
      const part = index / this.#trail.length;
      const [x, y] = this.#at(angle, radius);
      this.#disc(x, y, size * part, this.#colours.moon, part * 0.25);
    });
    const [x, y] = this.#at(world.angle, world.radius);
    this.#disc(x, y, size, world.over ? this.#colours.rock : this.#colours.moon, 1);
  }

  #disc(x: number, y: number, radius: number, colour: string, alpha: number): void {
    const context = this.#context;
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    context.beginPath();
    context.arc(x, y, radius, 0, Math.PI * 2);
    context.fill();
  }
}
