// A well-maintained OAuth 2.0 token service to compare with: npm's
// oidc-provider, which issues ES256 JWT access tokens for client credentials
// (RFC 6749 §4.4, RFC 9068). It prints a ready line and serves until it is
// killed.

import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import Provider from "oidc-provider";

const resource = "urn:game:demo";

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const key = {
  ...privateKey.export({ format: "jwk" }),
  alg: "ES256",
  use: "sig",
  kid: randomUUID(),
};

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address();
  const origin = `http://127.0.0.1:${port}`;
  const provider = new Provider(origin, {
    clients: [
      {
        client_id: "bench",
        client_secret: "bench",
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
        id_token_signed_response_alg: "ES256",
      },
    ],
    jwks: { keys: [key] },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: "",
          audience: "game:demo",
          accessTokenFormat: "jwt",
          accessTokenTTL: 900,
          jwt: { sign: { alg: "ES256" } },
        }),
      },
    },
  });
  server.on("request", provider.callback());
  console.log(`oidc-provider ready on ${origin} (listening on 127.0.0.1:${port})`);
});
