// Prints names of built files, as many of each kind as the first argument says. The
// tools' own functions or the tools themselves make them. The output is one JSON
// object, from each kind to a list of paths.
//
//   node names.mjs 10000

import { createHash as nodeHash } from "node:crypto";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

import * as esbuild from "esbuild";
import { build as viteBuild } from "vite";

const require = createRequire(import.meta.url);
const count = Number(process.argv[2] ?? 100);
const numbers = Array.from({ length: count }, (_, index) => index);

/** Rollup's own, which is not among its exports. */
const { xxhashBase64Url, xxhashBase36, xxhashBase16 } = require(
  join(dirname(require.resolve("rollup")), "native.js"),
);

/** Returns webpack's hash of a content: `output.hashFunction` is md4,
 * `hashDigestLength` 20. */
const webpack = (digest, length) => {
  const createHash = require("webpack/lib/util/createHash");
  const nonNumericOnlyHash = require("webpack/lib/util/nonNumericOnlyHash");
  return (text) => {
    const hash = createHash("md4");
    hash.update(text);
    return nonNumericOnlyHash(hash.digest(digest), length);
  };
};

/** Parcel names files by the last eight of its hash, which is hexadecimal. */
const parcel = (text) => require("@parcel/rust").hashString(text).slice(-8);

/** Returns the names of a whole build's files: Vite's hashes cannot be computed alone. */
const vite = async () => {
  const id = "virtual:start";
  const made = await viteBuild({
    configFile: false,
    logLevel: "error",
    build: {
      write: false,
      assetsInlineLimit: 0,
      minify: false,
      rollupOptions: { input: id },
    },
    plugins: [
      {
        name: "many",
        resolveId: (asked) => (asked.startsWith("virtual:") ? asked : undefined),
        load: (asked) =>
          asked.startsWith("virtual:") ? `globalThis.made = ${JSON.stringify(asked)};` : undefined,
        buildStart() {
          for (const number of numbers) {
            if (number % 2)
              this.emitFile({ type: "asset", name: "tree.png", source: `picture ${number}` });
            else this.emitFile({ type: "chunk", id: `virtual:${number}`, name: "level" });
          }
        },
      },
    ],
  });
  return [made].flat().flatMap(({ output }) => output.map(({ fileName }) => fileName));
};

/** esbuild accepts any number of entries. */
const esbuilt = async () => {
  const made = await esbuild.build({
    entryPoints: numbers.map((number) => ({ in: `made:${number}`, out: `level${number % 7}` })),
    entryNames: "[name]-[hash]",
    bundle: true,
    write: false,
    outdir: "out",
    logLevel: "error",
    plugins: [
      {
        name: "many",
        setup(build) {
          build.onResolve({ filter: /^made:/ }, ({ path }) => ({ path, namespace: "made" }));
          build.onLoad({ filter: /.*/, namespace: "made" }, ({ path }) => ({
            contents: `console.log(${JSON.stringify(path)})`,
          }));
        },
      },
    ],
  });
  return made.outputFiles.map(({ path }) => path.split("/").at(-1));
};

const each = (make) => numbers.map((number) => make(`content ${number}`));
const names = {
  "rollup chunks": each(
    (text) => `assets/index-${xxhashBase64Url(Buffer.from(text)).slice(0, 8)}.js`,
  ),
  "rollup pictures": each(
    (text) => `assets/tree-${xxhashBase64Url(Buffer.from(text)).slice(0, 8)}.png`,
  ),
  "rollup base36": each((text) => `js/main-${xxhashBase36(Buffer.from(text)).slice(0, 8)}.js`),
  "rollup hexadecimal": each((text) => `js/main-${xxhashBase16(Buffer.from(text)).slice(0, 8)}.js`),
  webpack: each((text) => `main.${webpack("hex", 20)(text)}.js`),
  "webpack of eight": each((text) => `static/js/main.${webpack("hex", 8)(text)}.chunk.js`),
  "webpack base64url": each((text) => `main.${webpack("base64url", 20)(text)}.js`),
  parcel: each((text) => `index.${parcel(text)}.js`),
  // wasm-pack has no hashes; Trunk puts SeaHash, 64 bits in hexadecimal, before `_bg`.
  trunk: each(
    (text) =>
      `game-${BigInt(`0x${nodeHash("sha1").update(text).digest("hex").slice(0, 16)}`).toString(16)}_bg.wasm`,
  ),
  // Unity's "Name Files As Hashes" is MD5 of the file.
  unity: each((text) => `Build/${nodeHash("md5").update(text).digest("hex")}.framework.js.br`),
  vite: await vite(),
  esbuild: await esbuilt(),
};
process.stdout.write(JSON.stringify(names));
