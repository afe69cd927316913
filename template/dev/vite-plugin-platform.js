// Serves the four paths that the platform's runtime requests from a local dev server. The
// command-line tool `platform` provides the content:
//
//   GET  /__platform/runtime.js        platform runtime
//   GET  /__platform/login             the runtime's tag; the runtime draws the page
//   POST /__platform/token/user/<n>    platform test-token <n> --json
//   POST /__platform/token/guest/<n>   platform test-token <n> --guest --json

import { execFile } from "node:child_process";
import { mkdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { isIPv4, isIPv6 } from "node:net";
import { join } from "node:path";

/** @import { IncomingMessage, ServerResponse } from "node:http" */
/** @import { Connect, Plugin } from "vite" */

/**
 * Problem Details (RFC 9457).
 *
 * @typedef {{ readonly type: string, readonly title: string, readonly status: number, readonly detail: string }} ProblemBody
 */

/**
 * `cli`: the command-line tool, or its file. PLATFORM_CLI overrides it.
 * `hosts`: names of this dev server besides `localhost`, names under it and IP addresses, without a port.
 *
 * @typedef {{ readonly cli?: string, readonly hosts?: readonly string[] }} Options
 */

/** @typedef {(args: string[]) => Promise<string>} Run */

const LOGIN_PAGE = `<!doctype html>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<script defer src="/__platform/runtime.js"></script>
`;

const TOKEN_PATH = /^\/__platform\/token\/(user|guest)\/([1-9]|10)$/;

/** How long one run of the tool may take: it may need an answer of the platform. */
const TIMEOUT_MS = 20_000;

class Problem extends Error {
  /** @param {ProblemBody} body */
  constructor(body) {
    super(body.detail);
    this.body = body;
  }
}

/**
 * @param {number} status
 * @param {string} slug
 * @param {string} title
 * @param {string} detail
 */
function problem(status, slug, title, detail) {
  return new Problem({ type: `urn:platform:${slug}`, title, status, detail });
}

/**
 * The plugin.
 *
 * @param {Options} [options]
 * @returns {Plugin}
 */
export default function platform(options = {}) {
  const cli = process.env.PLATFORM_CLI || options.cli || "platform";
  const hosts = (options.hosts ?? []).map((host) => host.toLowerCase());
  /** @type {Connect.NextHandleFunction} */
  let answer;
  return {
    name: "vite-plugin-platform",
    configResolved({ root, logger }) {
      /** @type {Run} */
      const run = (args) => runTool(cli, args, root);
      const runtime = keptRuntime(join(root, ".platform"), () => run(["runtime"]), {
        info: (text) => logger.info(text, { timestamp: true }),
        warn: (text) => logger.warn(text, { timestamp: true }),
      });
      answer = (request, response, next) => {
        const path = pathOf(request);
        if (path === undefined) {
          const { body } = problem(
            400,
            "invalid-request",
            "Invalid request",
            "The address cannot be read.",
          );
          return send(response, body.status, "application/problem+json", JSON.stringify(body));
        }
        if (!path.startsWith("/__platform/")) return next();
        respond(request, path, hosts, run, runtime).then(
          ([type, body]) => send(response, 200, type, body),
          (error) => {
            const known =
              error instanceof Problem
                ? error
                : problem(500, "internal", "Internal error", String(error));
            // The runtime shows the problem of a token in the page. Nothing shows a missing
            // runtime, so that problem is logged.
            if (path === "/__platform/runtime.js") logger.error(known.message, { timestamp: true });
            send(
              response,
              known.body.status,
              "application/problem+json",
              JSON.stringify(known.body),
            );
          },
        );
      };
    },
    configureServer: ({ middlewares }) => void middlewares.use(answer),
    configurePreviewServer: ({ middlewares }) => void middlewares.use(answer),
  };
}

/**
 * @param {IncomingMessage} request
 * @param {string} path
 * @param {readonly string[]} hosts
 * @param {Run} run
 * @param {() => Promise<string>} runtime
 * @returns {Promise<[type: string, body: string]>}
 */
async function respond(request, path, hosts, run, runtime) {
  if (!isLocal(request, hosts)) {
    throw problem(
      403,
      "not-allowed",
      "Not allowed",
      "Open the game as localhost or by an IP address, or list this name in the plugin’s option " +
        "`hosts`: any site can make its own name resolve to this machine.",
    );
  }
  const [, kind, number] = TOKEN_PATH.exec(path) ?? [];
  const isPage = path === "/__platform/runtime.js" || path === "/__platform/login";
  if (!isPage && !kind)
    throw problem(404, "not-found", "Not found", `The dev server has no ${path}.`);
  const methods = kind ? ["POST"] : ["GET", "HEAD"];
  if (!methods.includes(request.method ?? "")) {
    throw problem(405, "method-not-allowed", "Method not allowed", `${path} wants ${methods[0]}.`);
  }
  if (path === "/__platform/login") return ["text/html; charset=utf-8", LOGIN_PAGE];
  if (path === "/__platform/runtime.js") return ["text/javascript; charset=utf-8", await runtime()];
  if (!isOwnPage(request)) {
    throw problem(
      403,
      "not-allowed",
      "Not allowed",
      "Only the game’s own page may ask for a test token.",
    );
  }
  const args = ["test-token", String(number), ...(kind === "guest" ? ["--guest"] : []), "--json"];
  return ["application/json", await run(args)];
}

/**
 * Returns the requested path, or `undefined` if the address is invalid, such as `//[`, or names a host of
 * its own (RFC 9112 3.2.2).
 *
 * @param {IncomingMessage} request
 */
function pathOf({ url = "/" }) {
  if (!url.startsWith("/")) return undefined;
  try {
    return new URL(url, "http://local").pathname;
  } catch {
    return undefined;
  }
}

/**
 * Returns whether the request names a host that browsers use for this machine, or one of `hosts`. Any
 * other name may belong to a page that made it resolve to this machine (DNS rebinding), and the browser
 * treats that page as the game. Vite's own check does not suffice: `allowedHosts: true` turns it off, and
 * older versions have none. `platform dev` has the same rule.
 *
 * @param {IncomingMessage} request
 * @param {readonly string[]} hosts
 */
function isLocal({ headers }, hosts) {
  const { host, ":authority": authority = host } = headers;
  // A second name could be the one that counts.
  if (authority !== (host ?? authority)) return false;
  const [, name = "", six] = /^(\[(.*)\]|[^:]*)(?::\d+)?$/.exec(String(authority)) ?? [];
  if (six !== undefined) return isIPv6(six) && !six.includes("%");
  const plain = name.replace(/\.$/, "").toLowerCase();
  return isIPv4(name) || /^(.*\.)?localhost$/.test(plain) || hosts.includes(plain);
}

/**
 * Returns whether the request comes from the game's own page: no other site that is open in the
 * browser may get a token. A browser without Sec-Fetch-Site sends Origin. Its host must be the
 * requested one, which `isLocal` has checked.
 *
 * @param {IncomingMessage} request
 */
function isOwnPage({ headers }) {
  const host = headers.host ?? headers[":authority"];
  const { origin = `http://${host}`, "sec-fetch-site": site = "same-origin" } = headers;
  return site === "same-origin" && [`http://${host}`, `https://${host}`].includes(origin);
}

/**
 * @param {ServerResponse} response
 * @param {number} status
 * @param {string} type
 * @param {string} body
 */
function send(response, status, type, body) {
  response.writeHead(status, { "Content-Type": type, "Cache-Control": "no-store" }).end(body);
}

/**
 * Runs the tool without a shell, and returns what it printed. Rejects with a `Problem`.
 *
 * @param {string} cli
 * @param {string[]} args
 * @param {string} cwd
 * @returns {Promise<string>}
 */
function runTool(cli, args, cwd) {
  return new Promise((resolve, reject) => {
    const options = { cwd, timeout: TIMEOUT_MS, maxBuffer: 8 * 1024 * 1024, windowsHide: true };
    execFile(cli, args, options, (error, stdout, stderr) => {
      if (!error) resolve(stdout);
      else reject(problemOf(cli, args, error, stdout, stderr));
    });
  });
}

/**
 * Returns the reason why the tool failed, as a problem that says what to do.
 *
 * @param {string} cli
 * @param {string[]} args
 * @param {Error & { code?: string | number | null | undefined, killed?: boolean | undefined }} error
 * @param {string} stdout
 * @param {string} stderr
 */
function problemOf(cli, args, error, stdout, stderr) {
  if (error.code === "ENOENT" || error.code === "EACCES") {
    return problem(
      503,
      "cli-missing",
      "The command-line tool is missing",
      `The command "${cli}" cannot be run. Install the platform’s command-line tool, or name its file in PLATFORM_CLI.`,
    );
  }
  if (error.killed) {
    return problem(
      504,
      "cli-timeout",
      "No answer in time",
      `"platform ${args[0]}" did not end within ${TIMEOUT_MS / 1_000} s. Is the platform reachable?`,
    );
  }
  // A problem from the platform is passed on unchanged.
  const relayed = [stdout, stderr].map(readProblem).find((found) => found !== undefined);
  if (relayed) return new Problem(relayed);
  const said = stderr.trim().replace(/^error:\s*/i, "");
  if (error.code === 3) {
    return problem(
      401,
      "not-signed-in",
      "Not signed in",
      'Sign in first: run "platform login" in a terminal.',
    );
  }
  if (/not[ -](yet )?(been )?deployed|deploy (it )?once/i.test(said)) {
    return problem(
      409,
      "not-deployed",
      "Not deployed",
      `${said} Run "npm run build" and "platform deploy" once.`,
    );
  }
  return problem(
    502,
    "cli-failed",
    "The command-line tool failed",
    said || `"platform ${args[0]}" failed: ${error.message}`,
  );
}

/**
 * @param {string} text
 * @returns {ProblemBody | undefined}
 */
function readProblem(text) {
  try {
    const body = JSON.parse(text);
    if (typeof body !== "object" || body === null) return undefined;
    const { status, detail } = body;
    const isProblem =
      typeof detail === "string" && typeof status === "number" && status >= 400 && status <= 599;
    return isProblem ? body : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns a function that fetches the runtime once per run of the dev server. A copy is kept in
 * `folder`, so that the game can be developed without a network.
 *
 * @param {string} folder
 * @param {() => Promise<string>} fetch
 * @param {Record<"info" | "warn", (text: string) => void>} log
 * @returns {() => Promise<string>}
 */
function keptRuntime(folder, fetch, log) {
  const file = join(folder, "runtime.js");
  const load = async () => {
    try {
      const script = await fetch();
      await mkdir(folder, { recursive: true });
      // The complete file is renamed, so that an interrupted run leaves no partial one.
      await writeFile(`${file}.new`, script);
      await rename(`${file}.new`, file);
      return script;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const script = await readFile(file, "utf8").catch(() => undefined);
      if (script === undefined) throw error;
      const { mtime } = await stat(file);
      log.warn(
        `${error.message}\nThe page goes on with the runtime of ${mtime.toLocaleString()}; start again for a new one.`,
      );
      return script;
    }
  };
  /** @type {Promise<string> | undefined} */
  let loading;
  return () => {
    // A failure is not kept: the next page load tries again.
    loading ??= load().catch((error) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}
