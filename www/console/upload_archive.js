// The archive of an upload: a tar file of the chosen files, compressed with gzip, as the command line
// makes it.

/** @import { Folder } from "../types/upload_module.d.ts" */
/** @import { Item } from "./upload_files.js" */

/** How many bytes of the archive are gathered before the browser may put them onto the disk. */
const BATCH = 8 * 1024 * 1024;
/** What ends a tar file: two empty blocks. */
const END = new Uint8Array(1024);

/**
 * Yields the tar file in pieces.
 *
 * @param {Folder} folder
 * @param {Item[]} items
 * @param {(bytes: number) => void} told
 */
async function* tar(folder, items, told) {
  for (let index = 0; index < folder.length; index++) {
    yield folder.header(index);
    const item = items[folder.place(index) ?? 0];
    const reader = (await item.open()).getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        told(value.length);
        yield value;
      }
    } finally {
      reader.cancel().catch(() => {});
    }
    const padding = folder.padding(index);
    if (padding.length) yield padding;
  }
  yield END;
}

/**
 * Packs the files. `told` is called with the number of bytes of each piece.
 *
 * @param {Folder} folder
 * @param {Item[]} items
 * @param {(bytes: number) => void} told
 * @param {AbortSignal} signal
 * @returns {Promise<Blob>}
 */
export const pack = async (folder, items, told, signal) => {
  const pieces = tar(folder, items, told);
  // A stream's reader may get another error than the one that its source threw.
  let fault;
  /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */
  const source = new ReadableStream({
    async pull(controller) {
      try {
        signal.throwIfAborted();
        const { done, value } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        fault = error;
        throw error;
      }
    },
    cancel: async () => void (await pieces.return(undefined)),
  });
  const reader = source.pipeThrough(new CompressionStream("gzip")).getReader();
  /** @type {Blob[]} */
  const blobs = [];
  /** @type {Uint8Array<ArrayBuffer>[]} */
  let batch = [];
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      batch.push(value);
      bytes += value.length;
      if (bytes < BATCH) continue;
      blobs.push(new Blob(batch));
      batch = [];
      bytes = 0;
    }
  } catch (error) {
    throw fault ?? error;
  }
  return new Blob([...blobs, ...batch], { type: "application/gzip" });
};
