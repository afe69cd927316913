// The types of the plugin, for vite.config.ts.

import type { Plugin } from "vite";

/** The plugin's options. */
export interface Options {
  /** The command-line tool, or its file. PLATFORM_CLI overrides it. */
  readonly cli?: string;
}

/** Makes a game's dev server answer the paths of the platform's runtime, with test players. */
export default function platform(options?: Options): Plugin;
