import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { platform } from "./platform.js";

const FOLDER = process.env.FOLDER ?? "dist";
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

createServer(async (request, response) => {
  if (platform(request, response)) return;
  try {
    const path = decodeURIComponent(new URL(request.url, "http://local").pathname);
    const file = join(FOLDER, normalize(path.endsWith("/") ? `${path}index.html` : path));
    if (!(await stat(file)).isFile()) throw new Error("no file");
    response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(response);
  } catch {
    response.writeHead(404).end();
  }
}).listen(Number(process.env.PORT ?? 5173), "localhost");
