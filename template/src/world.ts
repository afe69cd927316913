// The rules, independent of the page: a moon on one of two rings around a
// planet. The unit of length is the radius of the outer ring. Angles are in
// radians and only increase.

/** The radii of the inner and the outer ring. */
export const RINGS = [0.66, 1] as const;

/** The radii of the things on the rings. */
export const SIZE = { moon: 0.055, spark: 0.04, rock: 0.06 } as const;

/** How far ahead of the moon things appear: most of a turn. */
const HORIZON = 5;
/** The angle between two things: enough for a hop. */
const GAP = 0.52;
/** How many seconds a hop from one ring to the other takes. */
const HOP_SECONDS = 0.16;
/** Speeds in radians per second: at the start, gain per spark, maximum. */
const SPEED = { start: 1.15, gain: 0.018, most: 2.6 } as const;

export type Ring = 0 | 1;
export type Kind = "spark" | "rock";
export interface Thing {
  readonly kind: Kind;
  readonly ring: Ring;
  readonly angle: number;
  /** Seconds since the thing appeared. */
  age: number;
}

export class World {
  /** The moon's angle. */
  angle = -Math.PI / 2;
  ring: Ring = 1;
  /** The moon's distance from the planet, which changes during a hop. */
  radius: number = RINGS[1];
  score = 0;
  over = false;
  things: Thing[] = [];
  /** The angle of the next thing. */
  #next: number;

  /** `random` returns numbers from 0 to 1, as `Math.random` does. */
  constructor(private readonly random: () => number) {
    this.#next = this.angle + 0.7;
    // The first sparks are on the moon's ring: they need no hop.
    for (let i = 0; i < 3; i += 1) this.#place("spark", 1);
    this.#fill();
  }

  get speed(): number {
    return Math.min(SPEED.start + this.score * SPEED.gain, SPEED.most);
  }

  /** Starts a hop to the other ring. */
  hop(): void {
    if (!this.over) this.ring = this.ring === 0 ? 1 : 0;
  }

  /** Lets time pass. Returns what the moon met. */
  step(seconds: number): Thing[] {
    if (this.over) return [];
    this.angle += this.speed * seconds;
    const way = RINGS[this.ring] - this.radius;
    const most = ((RINGS[1] - RINGS[0]) / HOP_SECONDS) * seconds;
    this.radius += Math.sign(way) * Math.min(Math.abs(way), most);

    const met = this.things.filter((thing) => this.#touches(thing));
    for (const thing of met) {
      if (thing.kind === "rock") this.over = true;
      else this.score += 1;
    }
    for (const thing of this.things) thing.age += seconds;
    this.things = this.things.filter(
      (thing) => !met.includes(thing) && thing.angle > this.angle - 0.6,
    );
    this.#fill();
    return met;
  }

  #touches({ kind, ring, angle }: Thing): boolean {
    const apart = Math.hypot((angle - this.angle) * RINGS[ring], RINGS[ring] - this.radius);
    return apart < (SIZE[kind] + SIZE.moon) * 0.9;
  }

  #fill(): void {
    while (this.#next < this.angle + HORIZON) {
      const ring: Ring = this.random() < 0.5 ? 0 : 1;
      // Two rocks are never side by side, so there is always a way through.
      this.#place(this.random() < 0.55 ? "rock" : "spark", ring);
    }
  }

  #place(kind: Kind, ring: Ring): void {
    this.things.push({ kind, ring, angle: this.#next, age: this.angle > -Math.PI / 2 ? 0 : 1 });
    this.#next += GAP * (1 + this.random() * 0.5);
  }
}
