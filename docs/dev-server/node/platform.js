// The four paths, for any server on Node. Returns true if it handles the request.

import { execFile } from "node:child_process";

const LOGIN = `<!doctype html>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<script defer src="/__platform/runtime.js"></script>
`;

// The names that browsers use for this machine. Any other name may belong to another site that resolves
// to this machine (DNS rebinding), and that site would count as the game's own page.
const LOCAL = /^(([\w-]+\.)*localhost|\d+(\.\d+){3}|\[[\da-f:.]+\])(:\d+)?$/i;

let runtime; // asked for once; a failure is tried again

export function platform(request, response) {
  const refuse = (status, detail) => relay(response, "", Promise.reject(problem(status, detail)));
  let pathname;
  try {
    ({ pathname } = new URL(request.url, "http://local"));
  } catch {
    refuse(400, "The address is none.");
    return true;
  }
  if (!pathname.startsWith("/__platform/")) return false;
  const [, kind, number] = /^\/__platform\/token\/(user|guest)\/([1-9]|10)$/.exec(pathname) ?? [];
  const call = `${request.method} ${pathname}`;
  if (!LOCAL.test(request.headers.host)) {
    refuse(403, "Open the game as localhost or by an IP address.");
  } else if (call === "GET /__platform/login") {
    response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" }).end(LOGIN);
  } else if (call === "GET /__platform/runtime.js") {
    runtime ??= run(["runtime"]);
    runtime.catch(() => (runtime = undefined));
    relay(response, "text/javascript; charset=utf-8", runtime);
  } else if (request.method !== "POST" || !kind) {
    refuse(404, "There is no such path.");
  } else if (!isOwnPage(request)) {
    refuse(403, "Only the game’s own page may ask for a test token.");
  } else {
    const guest = kind === "guest" ? ["--guest"] : [];
    relay(response, "application/json", run(["test-token", number, ...guest, "--json"]));
  }
  return true;
}

// Only the game's own page may get a token, not another site that is open in the browser. A browser
// without Sec-Fetch-Site sends Origin.
function isOwnPage({ headers }) {
  const { host, origin = `http://${host}`, "sec-fetch-site": site = "same-origin" } = headers;
  return site === "same-origin" && [`http://${host}`, `https://${host}`].includes(origin);
}

function run(args) {
  return new Promise((resolve, reject) => {
    execFile("platform", args, { timeout: 20_000 }, (error, stdout, stderr) => {
      if (!error) return resolve(stdout);
      try {
        const said = JSON.parse(stdout || stderr); // a problem of the platform, relayed as it came
        if (said.status >= 400 && said.detail) return reject(said);
      } catch {
        // The output is a sentence, not JSON.
      }
      if (error.code === "ENOENT")
        return reject(problem(503, 'The command "platform" is not installed.'));
      if (error.code === 3) return reject(problem(401, 'Sign in first: run "platform login".'));
      reject(problem(502, stderr.trim() || error.message));
    });
  });
}

function problem(status, detail) {
  return { type: "about:blank", status, detail };
}

function relay(response, type, running) {
  const send = (status, kind, body) =>
    response.writeHead(status, { "Content-Type": kind, "Cache-Control": "no-store" }).end(body);
  running.then(
    (output) => send(200, type, output),
    (body) => send(body.status, "application/problem+json", JSON.stringify(body)),
  );
}
