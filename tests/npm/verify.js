// Verifies a game token with somebody else's library, as a game's backend on
// Node would. Reads one JSON object from standard input:
//   { token, issuer, audience, jwksUrl, address }
// `address` is where the platform listens: Node asks the system for
// `*.localhost`, which may not know it, so connections go there and only the
// Host header has the name. Prints { claims, header } or { refused: code }.

import { request } from "node:http";
import { text } from "node:stream/consumers";
import { createRemoteJWKSet, customFetch, jwtVerify } from "jose";

const { token, issuer, audience, jwksUrl, address } = JSON.parse(await text(process.stdin));

/** The part of `fetch` that jose uses, with connections to `address`. */
async function fetchThere(url, options) {
  const { host, pathname, search } = new URL(url);
  const [hostname, port] = address.split(":");
  const headers = { ...Object.fromEntries(new Headers(options.headers)), host };
  return new Promise((resolve, reject) => {
    const outgoing = request({
      hostname,
      port,
      path: pathname + search,
      headers,
      signal: options.signal,
    });
    outgoing.on("error", reject);
    outgoing.on("response", async (incoming) => {
      resolve(new Response(await text(incoming), { status: incoming.statusCode }));
    });
    outgoing.end();
  });
}

const keys = createRemoteJWKSet(new URL(jwksUrl), { [customFetch]: fetchThere });
try {
  const { payload, protectedHeader } = await jwtVerify(token, keys, {
    issuer,
    audience,
    algorithms: ["ES256"],
    typ: "JWT",
  });
  console.log(JSON.stringify({ claims: payload, header: protectedHeader }));
} catch (error) {
  if (!error.code?.startsWith("ERR_JW")) throw error;
  console.log(JSON.stringify({ refused: error.code, claim: error.claim }));
}
