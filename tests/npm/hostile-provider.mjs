// OpenID providers that misbehave on demand, for the tests of signing in. The
// protocol is npm's oauth2-mock-server; errors that it cannot make itself are
// made here, before and after it.
//
// Many providers share this process, each under a path of its own:
//   POST /providers          { issuer?, alg? } -> { path }   makes one
//   PUT  /<path>/behaviour   { ... }                         from now on
//   POST /<path>/keys        { alg, kid }                    makes another key
//   GET  /<path>/seen        -> counts by endpoint, and the requests for tokens
// Everything else under /<path> is the provider. Its authorization endpoint
// signs in at once whoever the extra parameter `test_subject` names.
//
// A behaviour has, each where it is wanted:
//   claims     members of the ID token; null takes one away
//   shift      seconds to add to members of the ID token that are times
//   header     members of its header; null takes one away
//   sign       how it is signed: see `signatures`
//   key        the `kid` of the key that signs
//   published  the `kid`s of the keys in the key set, in order
//   hide       members that the published keys lack
//   redirect   parameters of the way back to the callback; null takes one away
//   pkce       'ignored': a code is given out for any verifier
//   jitter     milliseconds that any request is kept waiting at most
//   discovery, token, jwks: what happens to the answer of that endpoint
//     members  members of its JSON; null takes one away
//     status, headers, body: the answer in place of the right one
//     bytes    as many bytes of white space before the answer
//     delay    milliseconds before the answer; 'forever'
//     drop     the connection ends without an answer
//
// The process prints one ready line, and ends when its standard input does.

import {
  constants,
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomUUID,
  sign,
} from "node:crypto";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { setTimeout } from "node:timers/promises";
import { Events, OAuth2Issuer, OAuth2Service } from "oauth2-mock-server";

const ENDPOINTS = {
  "/.well-known/openid-configuration": "discovery",
  "/authorize": "authorize",
  "/token": "token",
  "/jwks": "jwks",
  "/userinfo": "userinfo",
};

const encode = (value) =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
const decode = (part) => JSON.parse(Buffer.from(part, "base64url"));

/** Returns `target` with the members of `changes`; null removes one. */
function change(target, changes = {}) {
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete target[name];
    else target[name] = value;
  }
}

/** Returns the right signature of `input` by a private key in JWK form. */
function signed(input, jwk) {
  const key = createPrivateKey({ key: jwk, format: "jwk" });
  const options =
    jwk.kty === "EC"
      ? { key, dsaEncoding: "ieee-p1363" }
      : { key, padding: constants.RSA_PKCS1_PADDING };
  return sign("sha256", Buffer.from(input), options);
}

/** Ways to sign an ID token: from header, payload and key to the token. */
const signatures = {
  /** The right signature, even if the header names another algorithm. */
  right: (header, payload, jwk) =>
    token({ alg: jwk.alg, ...header }, payload, (input) => signed(input, jwk)),
  /** Right, except for one bit. */
  flipped: (header, payload, jwk) =>
    token({ alg: jwk.alg, ...header }, payload, (input) => {
      const bytes = signed(input, jwk);
      bytes[bytes.length - 1] ^= 1;
      return bytes;
    }),
  /** By an unpublished key, under the id of a published one. */
  stranger: (header, payload, jwk) => signatures.right(header, payload, newKey(jwk.alg, jwk.kid)),
  /** Present, but empty. */
  empty: (header, payload, jwk) => token({ alg: jwk.alg, ...header }, payload, () => ""),
  /** A signature over other claims, from another token. */
  moved: (header, payload, jwk) =>
    token({ alg: jwk.alg, ...header }, payload, () =>
      signed(`${encode(header)}.${encode({ sub: "other" })}`, jwk),
    ),
  /** In ASN.1 form, not as the two plain numbers (RFC 7518 §3.4). */
  der: (header, payload, jwk) =>
    token({ alg: jwk.alg, ...header }, payload, (input) =>
      sign("sha256", Buffer.from(input), createPrivateKey({ key: jwk, format: "jwk" })),
    ),
  /** HMAC with the public key, which everybody knows. */
  "hs256-pem": (header, payload, jwk) =>
    hmac(header, payload, publicKey(jwk).export({ type: "spki", format: "pem" })),
  "hs256-der": (header, payload, jwk) =>
    hmac(header, payload, publicKey(jwk).export({ type: "spki", format: "der" })),
  "hs256-jwk": (header, payload, jwk) =>
    hmac(header, payload, JSON.stringify(publicKey(jwk).export({ format: "jwk" }))),
  /** HMAC with a secret that nobody else knows. */
  "hs256-stranger": (header, payload) => hmac(header, payload, randomUUID()),
  /** Not a JWT. */
  "two-parts": (header, payload, jwk) =>
    signatures.right(header, payload, jwk).split(".").slice(0, 2).join("."),
  garbage: () => "not.a.token",
};
for (const alg of ["none", "None", "NONE", "nOnE"]) {
  signatures[alg] = (header, payload) => token({ ...header, alg }, payload, () => "");
}

function token(header, payload, signature) {
  const input = `${encode(header)}.${encode(payload)}`;
  return `${input}.${Buffer.from(signature(input)).toString("base64url")}`;
}

function hmac(header, payload, secret) {
  return token({ ...header, alg: "HS256" }, payload, (input) =>
    createHmac("sha256", secret).update(input).digest(),
  );
}

function publicKey(jwk) {
  return createPublicKey(createPrivateKey({ key: jwk, format: "jwk" }));
}

function newKey(alg, kid) {
  const { privateKey } = alg.startsWith("ES")
    ? generateKeyPairSync("ec", { namedCurve: "P-256" })
    : generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { ...privateKey.export({ format: "jwk" }), alg, kid, use: "sig" };
}

class HostileProvider {
  behaviour = {};
  seen = { discovery: 0, authorize: 0, token: 0, jwks: 0, userinfo: 0, requests: [] };
  subjects = new Map();
  keys = [];

  static async start(path, issuer, alg) {
    const provider = new HostileProvider();
    provider.path = path;
    provider.issuer = new OAuth2Issuer();
    provider.issuer.url = issuer;
    provider.keys.push(await provider.issuer.keys.add(newKey(alg, "first")));
    provider.service = new OAuth2Service(provider.issuer);
    provider.service.on(Events.BeforeAuthorizeRedirect, ({ url }, request) =>
      provider.onRedirect(url, request),
    );
    provider.service.on(Events.BeforeTokenSigning, (jwt, request) =>
      provider.onSigning(jwt, request),
    );
    provider.service.on(Events.BeforeResponse, (response) => provider.onTokenAnswer(response));
    return provider;
  }

  onRedirect(url, request) {
    const subject = new URL(request.url, this.issuer.url).searchParams.get("test_subject");
    this.subjects.set(url.searchParams.get("code"), subject ?? "nobody-in-particular");
    for (const [name, value] of Object.entries(this.behaviour.redirect ?? {})) {
      if (value === null) url.searchParams.delete(name);
      else url.searchParams.set(name, value);
    }
  }

  onSigning({ payload }, request) {
    // Access tokens pass here too; only the ID token has no `amr`.
    if ("amr" in payload) return;
    payload.sub = this.subjects.get(request.body.code);
    for (const [name, seconds] of Object.entries(this.behaviour.shift ?? {}))
      payload[name] += seconds;
    change(payload, this.behaviour.claims);
  }

  onTokenAnswer(response) {
    const { sign: how, key, header } = this.behaviour;
    const { body } = response;
    if (body.id_token && (how || key || header)) {
      const payload = decode(body.id_token.split(".")[1]);
      const jwk = this.keys.find(({ kid }) => kid === key) ?? this.keys[0];
      const named = { typ: "JWT", kid: jwk.kid };
      change(named, header);
      body.id_token = signatures[how ?? "right"](named, payload, jwk);
    }
  }

  keySet() {
    const { published, hide = [] } = this.behaviour;
    const wanted = published
      ? published.map((kid) => this.keys.find((jwk) => jwk.kid === kid))
      : this.keys;
    return {
      keys: wanted.map((jwk) => {
        const { alg, kid, use } = jwk;
        const shown = { ...publicKey(jwk).export({ format: "jwk" }), alg, kid, use };
        for (const member of hide) delete shown[member];
        return shown;
      }),
    };
  }

  async answer(request, response) {
    const endpoint = ENDPOINTS[new URL(request.url, "http://here").pathname];
    if (endpoint) this.seen[endpoint] += 1;
    const { jitter } = this.behaviour;
    if (jitter) await setTimeout(Math.random() * jitter);
    const fault = this.behaviour[endpoint] ?? {};
    if (fault.delay === "forever") return;
    if (fault.delay) await setTimeout(fault.delay);
    if (fault.drop) {
      request.socket.destroy();
      return;
    }
    const inner = await this.inner(endpoint, request);
    const members = fault.members && JSON.parse(inner.body);
    change(members ?? {}, fault.members);
    const body = fault.body ?? (members ? JSON.stringify(members) : inner.body);
    response.writeHead(fault.status ?? inner.status, {
      ...inner.headers,
      ...(fault.body === undefined ? {} : { "content-type": "application/json" }),
      ...fault.headers,
    });
    // JSON may begin with white space, so only a limit of size can refuse it.
    const piece = Buffer.alloc(1 << 16, " ");
    for (let left = fault.bytes ?? 0; left > 0 && !response.destroyed; left -= piece.length) {
      if (!response.write(piece))
        await Promise.race([once(response, "drain"), once(response, "close")]);
    }
    response.end(body);
  }

  /** Returns the response of oauth2-mock-server. */
  async inner(endpoint, request) {
    if (endpoint === "jwks") {
      return {
        status: 200,
        headers: { "content-type": "application/json" },
        body: JSON.stringify(this.keySet()),
      };
    }
    const asked = await this.asked(endpoint, request);
    return new Promise((resolve) => {
      const headers = {};
      this.service.requestHandler(asked, {
        statusCode: 200,
        writableEnded: false,
        setHeader(name, value) {
          if (name.toLowerCase() !== "content-length") headers[name.toLowerCase()] = value;
        },
        end(body = "") {
          resolve({
            status: this.statusCode,
            headers,
            body: this.corrected ? this.corrected(body) : body,
          });
        },
        corrected: endpoint === "discovery" ? (body) => this.discovery(body) : undefined,
      });
    });
  }

  /** Returns the discovery document, with the values of this provider. */
  discovery(body) {
    return JSON.stringify({
      ...JSON.parse(body),
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
      id_token_signing_alg_values_supported: ["RS256", "ES256"],
      claims_supported: ["sub"],
    });
  }

  /** Returns the request that oauth2-mock-server gets. */
  async asked(endpoint, request) {
    const url = new URL(request.url, "http://here");
    const ignored = this.behaviour.pkce === "ignored";
    if (ignored) url.searchParams.delete("code_challenge");
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const form = new URLSearchParams(Buffer.concat(pieces).toString());
    if (endpoint === "token") {
      this.seen.requests.push({
        authorization: request.headers.authorization ?? null,
        form: Object.fromEntries(form),
      });
    }
    if (ignored) form.delete("code_verifier");
    const { method, headers } = request;
    return Object.assign(Readable.from([Buffer.from(form.toString())]), {
      method,
      headers,
      url: url.pathname + url.search,
    });
  }
}

function once(emitter, event) {
  return new Promise((resolve) => emitter.once(event, resolve));
}

async function json(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return JSON.parse(Buffer.concat(pieces).toString());
}

const providers = new Map();
let origin;

async function control(request, response, path) {
  const say = (value) =>
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
  if (request.method === "POST" && path === "/providers") {
    const { issuer, alg = "ES256" } = await json(request);
    const name = `/p${providers.size}`;
    providers.set(name, await HostileProvider.start(name, issuer ?? origin + name, alg));
    return say({ path: name });
  }
  const [, name, what] = /^(\/p\d+)(\/.*)$/.exec(path) ?? [];
  const provider = providers.get(name);
  if (!provider) return response.writeHead(404).end();
  switch (`${request.method} ${what}`) {
    case "PUT /behaviour":
      provider.behaviour = await json(request);
      return say({});
    case "POST /keys": {
      const { alg, kid } = await json(request);
      provider.keys.push(newKey(alg, kid));
      return say({});
    }
    case "GET /seen":
      return say(provider.seen);
    default:
      request.url = request.url.slice(name.length);
      return provider.answer(request, response);
  }
}

const server = createServer((request, response) => {
  control(request, response, new URL(request.url, "http://here").pathname).catch((error) => {
    console.error(error);
    response.destroy();
  });
});
server.listen(0, "127.0.0.1", () => {
  origin = `http://127.0.0.1:${server.address().port}`;
  console.log(`hostile-provider ready on ${origin}`);
});
process.stdin.resume().once("end", () => process.exit(0));
