// The best scores, keyed on `sub`, in one JSON file. A game with more players
// wants a database; the two methods stay the same.

import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

export class Scores {
  /** Writes follow each other, so that an older state never comes last. */
  #writing: Promise<void> = Promise.resolve();

  private constructor(
    private readonly file: string,
    private readonly scores: Map<string, number>,
  ) {}

  /** Reads the file; one that is not there yet counts as empty. */
  static async open(file: string): Promise<Scores> {
    const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "{}";
      throw error;
    });
    await mkdir(dirname(file), { recursive: true });
    return new Scores(file, new Map(Object.entries(JSON.parse(text) as Record<string, number>)));
  }

  /** The best score of this player; 0 before the first. */
  best(sub: string): number {
    return this.scores.get(sub) ?? 0;
  }

  /** Raises the best score, unless it was higher; resolves when it is on disk. */
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
