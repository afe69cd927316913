// Builds each game into dist/<game>/ with the tools that its kind is built
// with: Vite, Vite into a single file, wasm-pack. None of them knows of the
// platform: the tag is put into the page afterwards, by the test.
//
//   node build.mjs [game …]

import { spawnSync } from "node:child_process";
import { copyFile, mkdir, rm, writeFile } from "node:fs/promises";

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
    // Others publish below a path, so their links are relative.
    base: "./",
    logLevel: "warn",
    plugins,
    worker: { format: "es" },
    build: { outDir: folder(`dist/${game}`), emptyOutDir: true, chunkSizeWarningLimit: 4096 },
  });

const GAMES = {
  phaser: () => vite("phaser"),
  three: () => vite("three"),
  story: () => vite("story", [ink(), viteSingleFile()]),
  async many() {
    await writeAssets(here("dist/.assets/"));
    await vite("many");
  },
  // wasm-pack runs cargo, and makes glue with the wasm-bindgen on the PATH.
  async wasm() {
    const options = ["--target", "web", "--no-pack", "--no-typescript", "--no-opt", "--mode", "no-install"];
    const { status, error } = spawnSync(
      process.env.WASM_PACK || "wasm-pack",
      ["build", folder("wasm"), "--out-dir", folder("dist/wasm/pkg"), ...options, "--quiet"],
      { stdio: ["ignore", "inherit", "inherit"] },
    );
    if (status !== 0) throw error ?? new Error(`wasm-pack ended with ${status}`);
    await copyFile(here("wasm/index.html"), here("dist/wasm/index.html"));
    await rm(here("dist/wasm/pkg/.gitignore"), { force: true });
  },
};

const wanted = process.argv.slice(2);
for (const game of wanted.length ? wanted : Object.keys(GAMES)) {
  await mkdir(here(`dist/${game}`), { recursive: true });
  await GAMES[game]();
  await writeFile(here(`dist/.built-${game}`), "");
}
