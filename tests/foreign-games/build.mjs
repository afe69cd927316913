// Builds each game into dist/<game>/ with the usual tools of its kind: Vite,
// Vite into a single file, wasm-bindgen. None of them knows the platform: the
// test adds the tag to the page afterwards.
//
//   node build.mjs [game …]

import { spawnSync } from "node:child_process";
import { copyFile, mkdir, writeFile } from "node:fs/promises";

import { build } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

import { ink } from "./story/vite-plugin-ink.js";
import { writeAssets } from "./many/assets.js";

const here = (path) => new URL(path, import.meta.url);
const folder = (path) => here(path).pathname;

const vite = (game, plugins = []) =>
  build({
    configFile: false,
    root: folder(game),
    publicDir: game === "many" ? folder("dist/.assets") : "public",
    // Other hosts publish below a path, so the links are relative.
    base: "./",
    logLevel: "warn",
    plugins,
    worker: { format: "es" },
    build: { outDir: folder(`dist/${game}`), emptyOutDir: true, chunkSizeWarningLimit: 4096 },
  });

const run = (program, args) => {
  const { status, error } = spawnSync(program, args, {
    cwd: folder("wasm"),
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (status !== 0) throw error ?? new Error(`${program} ended with ${status}`);
};

const GAMES = {
  phaser: () => vite("phaser"),
  three: () => vite("three"),
  story: () => vite("story", [ink(), viteSingleFile()]),
  async many() {
    await writeAssets(here("dist/.assets/"));
    await vite("many");
  },
  // Cargo compiles it, and wasm-bindgen makes the module's glue.
  async wasm() {
    const target = process.env.STONE_DROP_TARGET || folder("../../target");
    const module = `${target}/wasm32-unknown-unknown/release/stone_drop.wasm`;
    run("cargo", [
      "build",
      "--release",
      "--quiet",
      "--package",
      "stone-drop",
      "--target",
      "wasm32-unknown-unknown",
      "--target-dir",
      target,
    ]);
    run(process.env.WASM_BINDGEN || "wasm-bindgen", [
      "--target",
      "web",
      "--no-typescript",
      "--out-dir",
      folder("dist/wasm/pkg"),
      module,
    ]);
    await copyFile(here("wasm/index.html"), here("dist/wasm/index.html"));
  },
};

const wanted = process.argv.slice(2);
for (const game of wanted.length ? wanted : Object.keys(GAMES)) {
  await mkdir(here(`dist/${game}`), { recursive: true });
  await GAMES[game]();
  await writeFile(here(`dist/.built-${game}`), "");
}
