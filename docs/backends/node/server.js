// A game's backend on Node, with jose.

import { createServer, get } from "node:http";
import { createRemoteJWKSet, customFetch, errors, jwtVerify } from "jose";

const { AUTH_ISSUER, AUTH_AUDIENCE, AUTH_JWKS_URL, PORT = 8788 } = process.env;
if (!AUTH_ISSUER || !AUTH_AUDIENCE || !AUTH_JWKS_URL) throw new Error("AUTH_* is not set");

const LEEWAY = 60; // seconds that two clocks may differ

const REFETCH = 30; // seconds between two fetches
const REFRESH = 600; // seconds after which keys are fetched again, and revoked ones forgotten
const LONGEST = 86_400; // seconds that a token may live
const LARGEST = 65_536; // bytes of a key set

const keySetUrl = new URL(AUTH_JWKS_URL);

// The key set is cached. It is fetched again for an unknown kid, and by `refresh`.
const keySet = createRemoteJWKSet(keySetUrl, {
  cacheMaxAge: Infinity,
  cooldownDuration: REFETCH * 1000,
  [customFetch]: fetchKeySet,
});

let refreshAt = Infinity; // milliseconds

async function refresh() {
  if (Date.now() < refreshAt) return;
  refreshAt = Date.now() + REFETCH * 1000;
  try {
    await keySet.reload();
    refreshAt = Date.now() + REFRESH * 1000;
  } catch (error) {
    console.warn(`the key set cannot be fetched: ${reason(error)}`);
  }
}

/** Fetches at most 64 KiB. A redirect is not followed: jose asks for that, and refuses its status. */
async function fetchKeySet(url, options) {
  if (keySetUrl.hostname.endsWith(".localhost")) return fetchFromHere(url, options);
  const response = await fetch(url, options);
  return new Response(await read(response.body ?? []), { status: response.status });
}

async function read(body) {
  const parts = [];
  let length = 0;
  for await (const part of body) {
    length += part.length;
    if (length > LARGEST) throw new Error("it has more than 64 KiB");
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/**
 * The part of `fetch` that jose uses. Names under localhost mean this machine (RFC 6761 §6.3), but
 * some systems cannot resolve them.
 */
function fetchFromHere(url, { headers, signal }) {
  const here = [
    { address: "127.0.0.1", family: 4 },
    { address: "::1", family: 6 },
  ];
  const lookup = (_name, { all }, found) => (all ? found(null, here) : found(null, "127.0.0.1", 4));
  return new Promise((resolve, reject) => {
    get(url, { headers: Object.fromEntries(headers), lookup, signal }, (response) => {
      read(response).then(
        (body) => resolve(new Response(body, { status: response.statusCode })),
        reject,
      );
    }).on("error", reject);
  });
}

class NoKeySet extends Error {}

/** Returns why the key set cannot be fetched; `fetch` itself says only that it failed. */
function reason(error) {
  const cause = error.cause ?? error;
  const unresolved = ["ENOTFOUND", "EAI_AGAIN"].includes(cause.code);
  return unresolved ? `could not resolve ${keySetUrl.hostname}: ${cause.message}` : cause.message;
}

async function keyOf(header, token) {
  if (!header.kid) throw new errors.JWTInvalid("no kid");
  await refresh();
  try {
    const key = await keySet(header, token);
    if (refreshAt === Infinity) refreshAt = Date.now() + REFRESH * 1000;
    return key;
  } catch (cause) {
    if (keySet.jwks()) throw new errors.JWKSNoMatchingKey();
    throw new NoKeySet(`the key set cannot be fetched: ${reason(cause)}`, { cause });
  }
}

/** Returns the player of a game token. Key data on `sub`; `username` can change. */
async function verify(token) {
  const { payload } = await jwtVerify(token, keyOf, {
    algorithms: ["ES256"],
    typ: "JWT",
    issuer: AUTH_ISSUER,
    audience: AUTH_AUDIENCE,
    clockTolerance: LEEWAY,
    requiredClaims: ["sub", "exp", "iat"],
  });
  const { sub, username, is_anon, aud, iat, exp } = payload;
  const latest = Date.now() / 1000 + LEEWAY;
  // A game token is for exactly one audience, so a list is refused.
  if (aud !== AUTH_AUDIENCE || typeof iat !== "number" || iat > latest || exp - iat > LONGEST) {
    throw new errors.JWTInvalid("aud, iat or exp is not as it should be");
  }
  if (
    typeof sub !== "string" ||
    !sub.trim() ||
    typeof username !== "string" ||
    typeof is_anon !== "boolean"
  ) {
    throw new errors.JWTInvalid("a claim is missing");
  }
  return { sub, username, is_anon };
}

async function answer(request) {
  const token = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? "")?.[1];
  if (!token) return problem(401, "not-signed-in", "This needs a player.");
  try {
    const player = await verify(token);
    if (request.method === "GET" && request.url === "/api/me") return [200, player];
    return problem(404, "not-found", "There is nothing here.");
  } catch (error) {
    console.warn(`refused: ${error.message}`);
    if (error instanceof NoKeySet) {
      return problem(503, "unavailable", "Players cannot be verified at the moment.");
    }
    if (error instanceof errors.JOSEError) {
      return problem(401, "not-signed-in", "The game token is not valid.");
    }
    return problem(500, "internal", "Something went wrong.");
  }
}

function problem(status, slug, detail) {
  return [status, { type: `urn:platform:${slug}`, status, detail }];
}

createServer(async (request, response) => {
  const [status, body] = await answer(request);
  const type = status === 200 ? "application/json" : "application/problem+json";
  const headers = { "Content-Type": type, "Cache-Control": "no-store" };
  if (status === 401) headers["WWW-Authenticate"] = "Bearer";
  response.writeHead(status, headers).end(JSON.stringify(body));
}).listen(Number(PORT), "127.0.0.1");
