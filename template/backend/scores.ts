// The best scores, keyed on `sub`, in one JSON file. A game with more players
// needs a database; the two methods can stay the same.

import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

export class Scores {
  /** Writes run one after another, so that an older state never overwrites a
   * newer one. */
  #writing: Promise<void> = Promise.resolve();

  private constructor(
    private readonly file: string,
    private readonly scores: Map<string, number>,
  ) {}

  /** Reads the file. A missing file counts as empty. */
  static async open(file: string): Promise<Scores> {
    const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "{}";
      throw error;
    });
    await mkdir(dirname(file), { recursive: true });
    return new Scores(file, new Map(Object.entries(JSON.parse(text) as Record<string, number>)));
  }

  /** Returns the best score of this player; 0 before the first score. */
  best(sub: string): number {
    return this.scores.get(sub) ?? 0;
  }

  /** Saves the score if it is the player's best, and returns the best score.
   * Resolves when it is on the disk. */
  async raise(sub: string, score: number): Promise<number> {
    if (score > this.best(sub)) {
      this.scores.set(sub, score);
      const writing = this.#writing.then(() => this.#write());
      this.#writing = writing.catch(() => {});
      await writing;
    }
    return this.best(sub);
  }

  async #write(): Promise<void> {
    const text = JSON.stringify(Object.fromEntries(this.scores));
    await writeFile(`${this.file}.new`, text);
    await rename(`${this.file}.new`, this.file);
  }
}
