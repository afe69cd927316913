// What the parts of runtime.js use and do not declare themselves. The loader puts them into one
// function, together with page.js, in src/bind.rs.

import type * as Page from "../runtime-wasm/src/web/page.js";

declare global {
  // What the function is called with: the module as a string, the number that undoes its masking,
  // and what the server wrote into the file.
  const PAYLOAD: string;
  const MASK: number;
  // The last one begins a trace in the headers of a call; the server gives it to games that want it.
  const SETTINGS: [
    authUrl: string,
    platformOrigin: string,
    heartbeatSeconds: number,
    trace?: (headers: Headers) => void,
  ];
  // Placeholders in the text, which are replaced.
  const VERSION: string;
  const IMPORTS: WebAssembly.Imports;

  // page.js.
  const become: typeof Page.become;
  const call: typeof Page.call;
  const claims: typeof Page.claims;
  const connect: typeof Page.connect;
  const follow: typeof Page.follow;
  const getAccessToken: typeof Page.getAccessToken;
  const hasMinted: typeof Page.hasMinted;
  const heldToken: typeof Page.heldToken;
  const tokenToPlay: typeof Page.tokenToPlay;
  const isEmbedded: typeof Page.isEmbedded;
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
  const signOut: typeof Page.signOut;
  const stopListening: typeof Page.stopListening;
  const useModule: typeof Page.useModule;
  const wasm: typeof Page.wasm;

  // What TypeScript's own declarations do not have.
  interface Console {
    // biome-ignore lint/suspicious/noExplicitAny: Each method is replaced, whatever it takes.
    [method: string]: any;
  }
  interface Document {
    readonly prerendering?: boolean;
  }
}
