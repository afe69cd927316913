// What an upload consists of: it is loaded when something was dropped or chosen, with the module of the
// same checks that the command line makes.

import { pack } from "./upload_archive.js";
import { list, Unusable } from "./upload_files.js";

/** @import { Advice, UploadModule } from "../types/upload_module.d.ts" */
/** @import { Given } from "./upload_files.js" */

export { Unusable } from "./upload_files.js";
export { send } from "./upload_send.js";

/** A larger start page is not read, as on the command line. */
const PAGE = 64 * 1024 * 1024;

/** @type {Promise<UploadModule> | undefined} */
let loading;

/** Loads the module, once. */
const load = async () => {
  const script = "./upload_module.js";
  const module = /** @type {UploadModule} */ (await import(script));
  await module.default({ module_or_path: new URL("upload_module_bg.wasm", import.meta.url) });
  return module;
};

/**
 * Runs what the module may refuse.
 *
 * @template T
 * @param {() => T | Promise<T>} work
 */
const attempt = async (work) => {
  try {
    return await work();
  } catch (error) {
    throw typeof error === "string" ? new Unusable(error) : error;
  }
};

/**
 * Reads a stream as text. A `Response` would not say why it failed.
 *
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} stream
 */
const textOf = async (stream) => {
  const [reader, decoder] = [stream.getReader(), new TextDecoder()];
  for (let text = ""; ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
  }
};

/**
 * A folder that can be deployed.
 *
 * @typedef {object} Prepared
 * @property {string} name
 * @property {number} files
 * @property {number} bytes
 * @property {string} size
 * @property {Advice[]} advice
 * @property {(told: (bytes: number) => void, signal: AbortSignal) => Promise<Blob>} pack
 */

/**
 * Looks at what was dropped or chosen.
 *
 * @param {Given} given
 * @returns {Promise<Prepared>}
 */
export const prepare = async (given) => {
  if (!("CompressionStream" in window)) {
    throw new Unusable("This browser cannot compress files: update it, or use the command line.");
  }
  loading ??= load();
  const module = await loading.catch((error) => {
    loading = undefined;
    throw error;
  });
  return attempt(async () => {
    const { name, items } = await list(module, given);
    const paths = items.map(({ path }) => path);
    const sizes = Float64Array.from(items, ({ size }) => size);
    const folder = new module.Folder(name, paths, sizes);
    const page = items[folder.page ?? 0];
    if (page.size > PAGE) {
      throw new Unusable(`${page.path} cannot be read: it is too large for a page.`);
    }
    const advice = folder
      .advice(await textOf(await page.open()))
      .map(({ code, message }) => ({ code, message }));
    return {
      name: folder.name,
      files: folder.length,
      bytes: folder.bytes,
      size: folder.size,
      advice,
      pack: (told, signal) => attempt(() => pack(folder, items, told, signal)),
    };
  });
};
