// The files of what was dropped or chosen: those of folders, or those of a zip. Their content stays
// where it is until it is sent.

/** @import { UploadModule, ZipFile } from "../types/upload_module.d.ts" */

/** Why something cannot be deployed; the message is a sentence for the developer. */
export class Unusable extends Error {}

/**
 * A file: where it is in what was dropped, and a function that opens its content.
 *
 * @typedef {object} Item
 * @property {string} path
 * @property {number} size
 * @property {() => Promise<ReadableStream<Uint8Array<ArrayBuffer>>>} open
 */

/**
 * What was dropped or chosen: the top entries of a drop, or files.
 *
 * @typedef {{ entries: FileSystemEntry[], files: File[] }} Given
 */

/** How many files a folder may have that is looked into. A deployment has fewer. */
const MOST = 80_000;
/** What files are called that do not come from one folder. */
const LOOSE = "This selection";

/** @param {Blob} blob */
const bytesOf = async (blob) => new Uint8Array(await blob.arrayBuffer());

/**
 * Returns a stream that fails if it does not have the size that was announced.
 *
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} stream
 * @param {number} size
 * @param {(piece: Uint8Array) => void} seen
 * @param {() => boolean} isWhole
 * @param {string} sentence
 */
const checked = (stream, size, seen, isWhole, sentence) => {
  let left = size;
  const reader = stream.getReader();
  return /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (
    new ReadableStream({
      async pull(controller) {
        let read;
        try {
          read = await reader.read();
        } catch {
          throw new Unusable(sentence);
        }
        if (read.done) {
          if (left !== 0 || !isWhole()) throw new Unusable(sentence);
          return controller.close();
        }
        left -= read.value.length;
        if (left < 0) {
          reader.cancel().catch(() => {});
          throw new Unusable(sentence);
        }
        seen(read.value);
        controller.enqueue(read.value);
      },
      cancel: (reason) => reader.cancel(reason),
    })
  );
};

/**
 * @param {string} path
 * @param {File} file
 * @returns {Item}
 */
const ofFile = (path, file) => ({
  path,
  size: file.size,
  open: async () =>
    checked(
      file.stream(),
      file.size,
      () => {},
      () => true,
      `The files cannot be packed: ${path}: the file changed while it was being read. Drop the folder again.`,
    ),
});

/**
 * Lists the files of a folder. Hidden folders and npm's are not looked into: they are not deployed.
 *
 * @param {FileSystemEntry} entry
 * @param {string} path
 * @param {Item[]} items
 */
const walk = async (entry, path, items) => {
  if (items.length > MOST) {
    throw new Unusable(
      "There are more files than a deployment may have: choose the folder with the built game.",
    );
  }
  const unread = new Unusable(
    `${path} cannot be read: check that it is still there and that you may read it.`,
  );
  if (entry.isFile) {
    const of = /** @type {FileSystemFileEntry} */ (entry);
    /** @type {File} */
    const file = await new Promise((resolve, reject) => of.file(resolve, () => reject(unread)));
    items.push(ofFile(path, file));
    return;
  }
  if (entry.name.startsWith(".") && entry.name !== ".well-known") return;
  if (entry.name === "node_modules" && path.split("/").length === 2) {
    // That it is there shows that these are sources.
    items.push(ofFile(`${path}/package.json`, new File([], "package.json")));
    return;
  }
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const some = await new Promise((resolve, reject) =>
      reader.readEntries(resolve, () => reject(unread)),
    );
    if (!some.length) return;
    for (const inner of some) await walk(inner, `${path}/${inner.name}`, items);
  }
};

/**
 * Opens a file of a zip.
 *
 * @param {UploadModule} module
 * @param {File} zip
 * @param {ZipFile} file
 */
const unpacked = async (module, zip, { path, size, packed, at, stored, crc32 }) => {
  const sentence = `${path} is damaged in ${zip.name}: make the zip again, or drop the folder itself.`;
  const length = module.local_header_length(await bytesOf(zip.slice(at, at + 30)));
  const start = at + (length ?? 0);
  const data = zip.slice(start, start + packed);
  if (length === undefined || data.size !== packed) throw new Unusable(sentence);
  const stream = stored
    ? data.stream()
    : data.stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const sum = new module.Checksum();
  return checked(
    stream,
    size,
    (piece) => sum.update(piece),
    () => {
      const isRight = sum.value() === crc32;
      sum.free();
      return isRight;
    },
    sentence,
  );
};

/**
 * @param {UploadModule} module
 * @param {File} zip
 * @returns {Promise<Item[]>}
 */
const ofZip = async (module, zip) => {
  const tail = await bytesOf(zip.slice(Math.max(0, zip.size - module.zip_tail())));
  return module
    .zip_files(zip.name, tail, zip.size)
    .map(({ path, size, packed, at, stored, crc32 }) => {
      const file = { path, size, packed, at, stored, crc32 };
      return { path, size, open: () => unpacked(module, zip, file) };
    });
};

/**
 * Lists the files of what was dropped or chosen, and returns how it is called.
 *
 * @param {UploadModule} module
 * @param {Given} given
 * @returns {Promise<{ name: string, items: Item[] }>}
 */
export const list = async (module, { entries, files }) => {
  const [zip] = files;
  if (files.length === 1 && /\.zip$/i.test(zip.name) && !entries[0]?.isDirectory) {
    return { name: zip.name.replace(/\.zip$/i, ""), items: await ofZip(module, zip) };
  }
  /** @type {Item[]} */
  const items = [];
  for (const entry of entries) await walk(entry, entry.name, items);
  if (!entries.length) {
    for (const file of files) items.push(ofFile(file.webkitRelativePath || file.name, file));
  }
  return { name: LOOSE, items };
};
