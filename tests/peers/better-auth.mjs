// The token service of a sign-in library to compare with: better-auth, with anonymous players in
// memory, which gives tokens signed with ES256. It prints a ready line and serves until it is killed.

import { createServer } from "node:http";
import { betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { toNodeHandler } from "better-auth/node";
import { anonymous, jwt } from "better-auth/plugins";

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const origin = `http://127.0.0.1:${server.address().port}`;
  const tables = ["user", "session", "account", "verification", "jwks"];
  const auth = betterAuth({
    baseURL: origin,
    secret: "only for this measurement, on this machine",
    database: memoryAdapter(Object.fromEntries(tables.map((name) => [name, []]))),
    rateLimit: { enabled: false },
    logger: { disabled: true },
    telemetry: { enabled: false },
    plugins: [anonymous(), jwt({ jwks: { keyPairConfig: { alg: "ES256" } } })],
  });
  server.on("request", toNodeHandler(auth));
  console.log(`better-auth ready on ${origin} (listening on ${origin.slice(7)})`);
});
