// The types of the plugin, for vite.config.ts.

import type { Plugin } from "vite";

/** The plugin's options. */
export interface Options {
  /** The command-line tool, or its file. PLATFORM_CLI overrides it. */
  readonly cli?: string;
  /**
   * Names of this dev server besides `localhost`, names under it and IP addresses, without a port: under
   * any other name, the plugin answers 403. List only names that resolve nowhere but where you decide.
   */
  readonly hosts?: readonly string[];
}

/** Makes a game's dev server answer the paths of the platform's runtime, with test players. */
export default function platform(options?: Options): Plugin;
