// Builds a small game with real bundlers, in several versions and with other settings, lets each
// build fail in twenty ways in each of its areas, and prints the files and what a page would log. The
// output is one JSON object: builds, each with files and failures, each of cause, message and stack.
//
//   node errors.mjs https://game.example [areas] [versions]

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import vm from "node:vm";

import * as esbuild from "esbuild";
import { rollup } from "rollup";
import { build as vite } from "vite";
import webpack from "webpack";

const [, , origin = "https://game.example", areas = "1", versions = "2"] = process.argv;

/** The sources of an area in a version: with each one, code moves down and names are added. */
const sourcesOf = (version, area) => {
  const more = Array.from(
    { length: version * 7 },
    (_, at) => `export const added${at} = (value) => [value, ${at * version}];`,
  ).join("\n");
  const util = `${more}
export function assert(condition, message) {
  if (!condition) throw new Error(message);
}
export class LevelError extends Error {
  constructor(message) {
    super(message);
    this.name = "LevelError";
  }
}
export const pick = (list, at) => list[at];
export function parseSave(text) {
  return JSON.parse(text);
}
`;
  const board = `${more}
import { assert, pick } from "./util${area}.js";
export class Board {
  constructor(cells) {
    this.cells = cells;
  }
  cellAt(x, y) {
    return this.cells[y][x];
  }
  move(piece) {
    assert(piece, "there is no piece");
    assert(this.cells.length > 2, "the board is too small: " + this.cells.length);
    return piece.kind.toUpperCase();
  }
  neighbours(x) {
    return pick(this.cells, x).map((cell) => cell.owner.name);
  }
  grow(by) {
    return new Array(by);
  }
  flood(at) {
    return this.flood(at + 1) + 1;
  }
}
`;
  const network = `${more}
import { LevelError, parseSave } from "./util${area}.js";
export const loadLevel = async (name) => {
  await null;
  throw new LevelError(\`Level \${name} could not be loaded.\`);
};
export async function readSave(text) {
  await null;
  return parseSave(text);
}
export const sendScore = (score) => {
  if (score > 100) throw new Error("The score " + score + " is too high.");
  return fetchScore(score).then((answer) => answer.body.rank);
};
const fetchScore = async (score) => {
  if (score > 50) throw new Error(\`The server answered \${400 + score}.\`);
  return {};
};
`;
  const main = `${more}
import { Board } from "./board${area}.js";
import { loadLevel, readSave, sendScore } from "./network${area}.js";
const random = () => Math.floor(Math.random() * 1000);
const board = new Board([[1, 2], [3, 4]]);
const settings = undefined;
export const failures = [
  () => board.cellAt(0, 5),
  () => board.move(null),
  () => board.move({}),
  () => new Board([[{}], [{}], [{}]]).move({}),
  () => new Board([[{}]]).neighbours(0),
  () => board.neighbours(9),
  () => board.grow(-1 - random()),
  () => board.flood(0),
  () => loadLevel(["forest", "desert", "cave"][random() % 3]),
  () => readSave("{" + random()),
  () => sendScore(101 + random()),
  () => sendScore(51 + (random() % 40)),
  () => sendScore(3),
  () => settings.volume,
  () => board.draw(),
  () => undefinedFunction(1),
  () => BigInt(random()) + random(),
  () => [1, 2].reduce((sum, value) => sum + value.points.total, 0),
  () => new Promise((_, reject) => setTimeout(() => reject(new RangeError("No card " + random())), 1)),
  () => {
    throw new TypeError(\`The key \${["left", "right"][random() % 2]} is not bound.\`);
  },
];
`;
  const sources = { util, board, network, area: main };
  return Object.entries(sources).map(([name, text]) => [`${name}${area}.js`, text]);
};

/** Writes the sources of a version to a folder of their own. */
const folderOf = (version) => {
  const folder = mkdtempSync(join(tmpdir(), "errors-"));
  const numbers = Array.from({ length: Number(areas) }, (_, number) => number);
  for (const [name, text] of numbers.flatMap((area) => sourcesOf(version, area)))
    writeFileSync(join(folder, name), text);
  const all = numbers.map((area) => `import { failures as of${area} } from "./area${area}.js";\n`);
  const main = `${all.join("")}globalThis.failures = [${numbers.map((area) => `of${area}`)}].flat();\n`;
  writeFileSync(join(folder, "main.js"), main);
  return folder;
};

/** Each builds `main.js` of a folder into `out`, with a map. */
const tools = {
  "esbuild minified": (folder, out) =>
    esbuild.build({
      entryPoints: [join(folder, "main.js")],
      entryNames: "game-[hash]",
      bundle: true,
      minify: true,
      sourcemap: true,
      format: "iife",
      outdir: out,
      logLevel: "error",
    }),
  "esbuild with an inlined map": (folder, out) =>
    esbuild.build({
      entryPoints: [join(folder, "main.js")],
      bundle: true,
      minify: true,
      sourcemap: "inline",
      format: "iife",
      outdir: out,
      logLevel: "error",
    }),
  "vite minified": (folder, out) =>
    vite({
      configFile: false,
      root: folder,
      logLevel: "error",
      build: {
        outDir: out,
        emptyOutDir: true,
        sourcemap: true,
        modulePreload: false,
        rollupOptions: { input: join(folder, "main.js"), output: { format: "iife" } },
      },
    }),
  "rollup not minified": async (folder, out) => {
    const bundle = await rollup({ input: join(folder, "main.js"), logLevel: "silent" });
    await bundle.write({
      dir: out,
      format: "iife",
      sourcemap: true,
      entryFileNames: "game-[hash].js",
    });
  },
  "webpack minified": (folder, out) =>
    new Promise((resolve, reject) =>
      webpack(
        {
          mode: "production",
          context: folder,
          entry: "./main.js",
          devtool: "source-map",
          output: { path: out, filename: "main.[contenthash].js" },
        },
        (error, stats) =>
          error || stats.hasErrors() ? reject(error ?? stats.toString()) : resolve(),
      ),
    ),
};

/** The files below a folder, with their paths. */
const filesOf = (folder) =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => {
        const path = join(entry.parentPath, entry.name);
        return [path.slice(folder.length + 1), readFileSync(path, "utf8")];
      }),
  );

/** Lets a build fail in every way, and returns what the runtime would log. */
const failuresOf = async (files) => {
  const [path] = Object.keys(files).filter((name) => name.endsWith(".js"));
  const context = vm.createContext({ setTimeout, console });
  vm.runInContext(files[path], context, { filename: `${origin}/${path}` });
  const found = [];
  for (const [cause, fail] of context.failures.entries()) {
    let error;
    try {
      await fail();
    } catch (thrown) {
      error = thrown;
    }
    // The frames of this program are none of a page.
    const stack = error.stack
      .split("\n")
      .filter((line) => !/file:\/\/|node:/.test(line))
      .join("\n");
    found.push({ cause, message: `Uncaught ${error}`, stack });
  }
  return found;
};

const builds = [];
for (let version = 0; version < Number(versions); version += 1) {
  const folder = folderOf(version);
  for (const [name, tool] of Object.entries(tools)) {
    const out = mkdtempSync(join(tmpdir(), "errors-out-"));
    await tool(folder, out);
    const files = filesOf(out);
    builds.push({ name: `${name}, version ${version}`, files, failures: await failuresOf(files) });
    rmSync(out, { recursive: true });
  }
  rmSync(folder, { recursive: true });
}
process.stdout.write(JSON.stringify({ builds }));
