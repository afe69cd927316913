// An independent OpenID provider to sign in with: npm's oidc-provider, with a
// page of two buttons that accepts any login. A platform registers itself as a
// client (RFC 7591), with its exact callback address. It prints a ready line
// and serves until its standard input ends, with the tests that started it.

import { generateKeyPairSync, randomBytes, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import Provider from "oidc-provider";

/** Another site than the platform's, as real providers have. */
const HOST = "id.localhost";

const escaped = (text) => String(text).replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

/** Returns a page that asks who signs in, or whether a known account agrees. */
const page = ({ uid, account }) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Elsewhere</title>
<link rel="icon" href="data:,">
<main>
<h1>Elsewhere</h1>
<form method="post" action="/interaction/${uid}">
${account ? `<p>You are ${escaped(account)}.</p>` : '<p><label for="login">Login</label> <input id="login" name="login" required autofocus></p>'}
<p><button name="go" value="on">Continue</button> <button name="go" value="back" formnovalidate>Cancel</button></p>
</form>
</main>`;

const body = async (request) => {
  let text = "";
  for await (const chunk of request) text += chunk;
  return new URLSearchParams(text);
};

/** Grants the platform everything that it requested. */
const granted = async (provider, { grantId, params, prompt }, accountId) => {
  const grant =
    (grantId && (await provider.Grant.find(grantId))) ||
    new provider.Grant({ accountId, clientId: params.client_id });
  grant.addOIDCScope(prompt.details.missingOIDCScope?.join(" ") ?? params.scope);
  return { consent: { grantId: await grant.save() } };
};

const interact = async (provider, request, response) => {
  const details = await provider.interactionDetails(request, response);
  const { uid, prompt, session } = details;
  const account = prompt.name === "login" ? undefined : session.accountId;
  if (request.method === "GET") {
    response.setHeader("content-type", "text/html; charset=utf-8").end(page({ uid, account }));
    return;
  }
  const form = await body(request);
  const login = account ?? form.get("login");
  const result =
    form.get("go") === "back"
      ? { error: "access_denied", error_description: "The player pressed Cancel." }
      : {
          ...(account ? {} : { login: { accountId: login } }),
          ...(await granted(provider, details, login)),
        };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
};

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const key = {
  ...privateKey.export({ format: "jwk" }),
  alg: "RS256",
  use: "sig",
  kid: randomUUID(),
};

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address();
  const issuer = `http://${HOST}:${port}`;
  const provider = new Provider(issuer, {
    jwks: { keys: [key] },
    cookies: { keys: [randomBytes(32).toString("base64url")] },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    features: { devInteractions: { enabled: false }, registration: { enabled: true } },
    ttl: {
      AccessToken: 600,
      AuthorizationCode: 60,
      Grant: 3600,
      IdToken: 600,
      Interaction: 600,
      Session: 3600,
    },
  });
  provider.on("server_error", (_, error) => console.error(error));
  const serve = provider.callback();
  server.on("request", (request, response) => {
    if (!request.url.startsWith("/interaction/")) return serve(request, response);
    interact(provider, request, response).catch((error) => {
      response.writeHead(400, { "content-type": "text/plain" }).end(String(error));
    });
  });
  console.log(`identity provider ready on ${issuer}`);
});

process.stdin.on("end", () => process.exit());
process.stdin.resume();
