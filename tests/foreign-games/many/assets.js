// A world of many files: a map and a picture for each of a thousand rooms.

import { mkdir, rm, writeFile } from "node:fs/promises";

export const ROOMS = 1000;

const map = (room) => JSON.stringify({ room, next: (room + 1) % ROOMS, stones: (room * 7) % 13 });

const picture = (room) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><rect width="8" height="8" fill="hsl(${room % 360} 60% 50%)"/></svg>`;

/** Writes them into `folder`, a hundred rooms a folder. */
export const writeAssets = async (folder) => {
  await rm(folder, { recursive: true, force: true });
  for (let room = 0; room < ROOMS; room += 1) {
    const wing = new URL(`rooms/${Math.floor(room / 100)}/`, folder);
    if (room % 100 === 0) await mkdir(wing, { recursive: true });
    await writeFile(new URL(`${room}.json`, wing), map(room));
    await writeFile(new URL(`${room}.svg`, wing), picture(room));
  }
};
