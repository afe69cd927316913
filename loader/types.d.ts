// What the parts of runtime.js use and do not declare themselves. The loader puts them into one
// function, together with page.js and with the glue that wasm-bindgen makes, in src/glue.rs.

import type * as Page from "../runtime-wasm/src/web/page.js";

declare global {
  // What the function is called with: the module as a string, the number that undoes its masking,
  // and what the server wrote into the file.
  const PAYLOAD: string;
  const MASK: number;
  const SETTINGS: [authUrl: string, platformOrigin: string, heartbeatSeconds: number];
  // Placeholders in the text, which are replaced.
  const VERSION: string;
  const IMPORTS: WebAssembly.Imports;

  // The glue. `wasm` has the exports of runtime-wasm/src/exports.rs.
  function __wbg_set_wasm(exports: WebAssembly.Exports): void;
  // It is undefined until the module has started, for all that can run before.
  const wasm: {
    __wbindgen_start(): void;
    settle(task: number, isFulfilled: boolean, value: unknown): void;
    wake(isRestored: boolean, isInDoubt?: boolean): void;
    heldToken(): string | undefined;
    look(isVisible: boolean, isUsed: boolean, interval: number): boolean;
    goAway(): boolean;
    keepRecord(hash: number, bytes: number, isUrgent: boolean): number;
    takeBatch(isAtOnce: boolean): number;
    takeLeftOut(): number;
    endBatch(size: number, records: number, pause: number): boolean;
    getAccessToken(isForced: boolean): Promise<string>;
    call(request: Request): Promise<Response>;
    signOut(redirect?: string | URL | null): Promise<void>;
  };

  // page.js.
  const become: typeof Page.become;
  const claims: typeof Page.claims;
  const connect: typeof Page.connect;
  const follow: typeof Page.follow;
  const hasMinted: typeof Page.hasMinted;
  const isLocal: typeof Page.isLocal;
  const isOwn: typeof Page.isOwn;
  const known: typeof Page.known;
  const listen: typeof Page.listen;
  const PlatformError: typeof Page.PlatformError;
  const mintEarly: typeof Page.mintEarly;
  const platformUrl: typeof Page.platformUrl;
  const play: typeof Page.play;
  const player: typeof Page.player;
  const report: typeof Page.report;
  const request: typeof Page.request;
  const resolve: typeof Page.resolve;
  const stopListening: typeof Page.stopListening;

  // What TypeScript's own declarations do not have.
  interface Console {
    // biome-ignore lint/suspicious/noExplicitAny: Each method is replaced, whatever it takes.
    [method: string]: any;
  }
  interface Document {
    readonly prerendering?: boolean;
  }
}
