// The module that prepares an upload, from `upload/src/exports.rs`. A refusal is thrown as a string.

/** A sentence that the developer should read. */
export interface Advice {
  readonly code: string;
  readonly message: string;
}

/** A file of a zip. */
export interface ZipFile {
  readonly path: string;
  readonly size: number;
  readonly packed: number;
  readonly at: number;
  readonly stored: boolean;
  readonly crc32: number;
}

/** The folder of a game that was dropped. */
export interface Folder {
  readonly name: string;
  readonly length: number;
  readonly bytes: number;
  readonly size: string;
  readonly page?: number;
  place(index: number): number | undefined;
  header(index: number): Uint8Array<ArrayBuffer>;
  padding(index: number): Uint8Array<ArrayBuffer>;
  advice(index_html: string): Advice[];
}

/** The checksum of what a file of a zip is unpacked to. */
export interface Checksum {
  update(bytes: Uint8Array): void;
  value(): number;
  free(): void;
}

/** What the module exports. */
export interface UploadModule {
  default(options: { module_or_path: URL }): Promise<unknown>;
  Folder: new (name: string, paths: string[], sizes: Float64Array) => Folder;
  Checksum: new () => Checksum;
  zip_tail(): number;
  zip_files(name: string, tail: Uint8Array, whole: number): ZipFile[];
  local_header_length(header: Uint8Array): number | undefined;
}
