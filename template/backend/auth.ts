// Finds out who calls: verifies game tokens by the platform's rules.

import { request } from "node:http";
import type { MiddlewareHandler } from "hono";
import {
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type JWTVerifyGetKey,
  jwtVerify,
} from "jose";
import { problem } from "./problem.ts";

/** A verified player. Key data on `sub`; `username` can change. */
export interface Player {
  readonly sub: string;
  readonly username: string;
  /** Whether the player is a guest: a player like any other, unless the game needs accounts. */
  readonly is_anon: boolean;
}

function required(name: string): string {
  const value = process.env[name];
  if (!value)
    throw new Error(
      `${name} is not set: "npm run dev" sets it, and so must whoever starts the backend elsewhere.`,
    );
  return value;
}

const issuer = required("AUTH_ISSUER");
const audience = required("AUTH_AUDIENCE");
const keySetUrl = new URL(required("AUTH_JWKS_URL"));

/** The least number of seconds between two fetches of the key set. */
const REFETCH = 30;
/** After how many seconds the key set is fetched again, so that a revoked key is removed. */
const REFRESH = 600;
/** How many seconds a token may be valid. */
const LONGEST = 86_400;
/** How many bytes a key set may have. */
const LARGEST = 65_536;

// The key set is cached. It is fetched again for an unknown `kid`, and by `refresh`.
const keySet = createRemoteJWKSet(keySetUrl, {
  cacheMaxAge: Infinity,
  cooldownDuration: REFETCH * 1_000,
  timeoutDuration: 5_000,
  [customFetch]: fetchKeySet,
});

/** There are no keys to verify with: an error of this backend, not of the caller. */
class NoKeySet extends Error {}

let refreshAt = Infinity;

/** Fetches the key set again if it is ten minutes old. If that fails, the cached keys stay in use. */
async function refresh(): Promise<void> {
  if (Date.now() < refreshAt) return;
  refreshAt = Date.now() + REFETCH * 1_000;
  try {
    await keySet.reload();
    refreshAt = Date.now() + REFRESH * 1_000;
  } catch (error) {
    console.warn(`The key set at ${keySetUrl} cannot be fetched:`, error);
  }
}

/** Returns the key that the token's header names. */
const keyOf: JWTVerifyGetKey = async (header, token) => {
  if (!header.kid) throw new errors.JWTInvalid("the header has no kid");
  await refresh();
  try {
    const key = await keySet(header, token);
    if (refreshAt === Infinity) refreshAt = Date.now() + REFRESH * 1_000;
    return key;
  } catch (cause) {
    // If there are keys, a `kid` that is not found is unknown.
    if (keySet.jwks() || cause instanceof errors.JOSENotSupported)
      throw new errors.JWKSNoMatchingKey();
    throw new NoKeySet("no key set", { cause });
  }
};

/** Accepts a request with a valid token, and sets its `player`. */
export function requirePlayer(): MiddlewareHandler<{ Variables: { player: Player } }> {
  return async (context, next) => {
    const token = /^bearer +(\S+)$/i.exec(context.req.header("Authorization") ?? "")?.[1];
    if (!token) {
      return problem(401, "not-signed-in", "Not signed in", "This needs a player.", {
        "WWW-Authenticate": "Bearer",
      });
    }
    try {
      context.set("player", await verify(token));
    } catch (error) {
      if (error instanceof NoKeySet) {
        console.error(`The key set at ${keySetUrl} cannot be fetched:`, error.cause);
        return problem(
          503,
          "unavailable",
          "Unavailable",
          "Players cannot be verified at the moment.",
        );
      }
      if (!(error instanceof errors.JOSEError)) throw error;
      // The log says which check failed; the caller does not need to know.
      console.warn(`A token was refused: ${error.message}`);
      return problem(401, "not-signed-in", "Not signed in", "The game token is not valid.", {
        "WWW-Authenticate": 'Bearer error="invalid_token"',
      });
    }
    await next();
    return undefined;
  };
}

async function verify(token: string): Promise<Player> {
  const { payload } = await jwtVerify(token, keyOf, {
    algorithms: ["ES256"],
    typ: "JWT",
    issuer,
    // Without this check, a token for another game would be accepted.
    audience,
    // Clocks may differ by a minute.
    clockTolerance: 60,
    requiredClaims: ["sub", "exp", "iat"],
  });
  const { sub, username, is_anon, aud, iat, exp } = payload;
  // A token of the platform is for exactly one game, so `aud` is never a list.
  if (aud !== audience || typeof sub !== "string" || sub.trim() === "") {
    throw new errors.JWTInvalid("aud or sub is not as it should be");
  }
  if (typeof iat !== "number" || iat > Date.now() / 1_000 + 60) {
    throw new errors.JWTInvalid("iat lies in the future");
  }
  if (typeof exp !== "number" || exp - iat > LONGEST) {
    throw new errors.JWTInvalid("it lives longer than a token of the platform");
  }
  if (typeof username !== "string" || typeof is_anon !== "boolean") {
    throw new errors.JWTInvalid("username or is_anon is not as it should be");
  }
  return { sub, username, is_anon };
}

/** Fetches at most 64 KiB. A redirect is not followed: jose asks for that, and refuses its status. */
async function fetchKeySet(...[url, options]: Parameters<FetchImplementation>): Promise<Response> {
  if (keySetUrl.hostname.endsWith(".localhost")) return fetchFromHere(url, options);
  const response = await fetch(url, options);
  return new Response(await read(response.body ?? []), { status: response.status });
}

async function read(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>) {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of body) {
    length += part.length;
    if (length > LARGEST) throw new Error("The key set has more than 64 KiB.");
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/**
 * The part of `fetch` that jose uses, for a platform on this machine. Names under `.localhost` mean
 * this machine (RFC 6761 §6.3), but some systems cannot resolve them.
 */
async function fetchFromHere(
  ...[url, { headers, signal }]: Parameters<FetchImplementation>
): Promise<Response> {
  const { host, port, pathname } = new URL(url);
  return new Promise((resolve, reject) => {
    const options = {
      host: "127.0.0.1",
      port,
      path: pathname,
      signal,
      headers: { ...Object.fromEntries(headers), host },
    };
    request(options, (response) => {
      read(response).then(
        (body) => resolve(new Response(body, { status: response.statusCode ?? 502 })),
        reject,
      );
    })
      .on("error", reject)
      .end();
  });
}
