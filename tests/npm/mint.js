// Signs tokens with somebody else's library. Reads one JSON object from standard
// input: { key: private JWK with kid, claims }. Prints
//   { es256, hs256_pem, hs256_jwk }
// A verifier accepts the last two if it takes the algorithm from the token and
// uses the public key as a shared secret.

import { createPublicKey } from "node:crypto";
import { text } from "node:stream/consumers";
import { importJWK, SignJWT } from "jose";

const { key, claims } = JSON.parse(await text(process.stdin));
const { d: _, ...open } = key;
const pem = createPublicKey({ key: open, format: "jwk" }).export({ type: "spki", format: "pem" });

const sign = (alg, secret) =>
  new SignJWT(claims).setProtectedHeader({ alg, typ: "JWT", kid: key.kid }).sign(secret);

console.log(
  JSON.stringify({
    es256: await sign("ES256", await importJWK(key, "ES256")),
    hs256_pem: await sign("HS256", Buffer.from(pem)),
    hs256_jwk: await sign("HS256", Buffer.from(JSON.stringify(open))),
  }),
);
