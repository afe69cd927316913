// Bundles each game into dist/<engine>/: an index.html and one script, which
// is all that a deployment of it needs, and the script's source map. Nothing is
// loaded from elsewhere.

import { mkdir, readFile, rm, writeFile } from "node:fs/promises";

import { build } from "esbuild";

const ENGINES = ["excalibur", "phaser", "pixi"];

const here = (path) => new URL(path, import.meta.url);
const page = await readFile(here("page.html"), "utf8");

await rm(here("dist"), { recursive: true, force: true });
for (const engine of ENGINES) {
  await mkdir(here(`dist/${engine}`), { recursive: true });
  await writeFile(here(`dist/${engine}/index.html`), page.replaceAll("{{engine}}", engine));
  await build({
    absWorkingDir: import.meta.dirname,
    entryPoints: [`src/${engine}.js`],
    outfile: `dist/${engine}/game.js`,
    bundle: true,
    // As published games are: the engine's production build, minified.
    conditions: ["production"],
    define: { "process.env.NODE_ENV": '"production"' },
    minify: true,
    format: "iife",
    target: "es2022",
    legalComments: "none",
    // With a map beside it, and without the sources themselves.
    sourcemap: "linked",
    sourcesContent: false,
    logLevel: "warning",
  });
}
