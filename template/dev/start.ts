// `npm run dev`: the page's dev server and the local backend, together.
//
//   npm run dev        the backend in TypeScript, started again at every change
//   npm run dev:rust   the backend in Rust
//
// PORT is the page's port (5173), BACKEND_PORT the backend's (any that is free).

import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer as createListener } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createServer } from "vite";
import { backendVariables, ROOT } from "./settings.ts";

const COMMANDS: Record<string, [string, ...string[]]> = {
  node: [
    process.execPath,
    fileURLToPath(import.meta.resolve("tsx/cli")),
    "watch",
    "--clear-screen=false",
    "backend/main.ts",
  ],
  // Shows Cargo's output: the first compilation takes minutes, and the page waits.
  rust: ["cargo", "run", "--manifest-path", "backend-rust/Cargo.toml"],
};

async function freePort(): Promise<string> {
  const listener = createListener().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  listener.close();
  if (address === null || typeof address === "string") throw new Error("no port is free");
  return String(address.port);
}

/** Resolves when something listens on `port`. */
async function listening(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    const connected = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (connected || backend.exitCode !== null) return;
    await pause(50);
  }
}

const command = COMMANDS[process.argv[2] ?? "node"];
if (!command) throw new Error(`there is no backend ${process.argv[2]}: leave it out, or say rust`);

// vite.config.ts sends /api there.
process.env.BACKEND_PORT ||= await freePort();

const [program, ...args] = command;
const backend = spawn(program, args, {
  cwd: ROOT,
  stdio: ["ignore", "inherit", "inherit"],
  env: {
    ...process.env,
    ...backendVariables(),
    PORT: process.env.BACKEND_PORT,
    SCORES: ".platform/scores.json",
  },
});
backend.on("error", (error) => console.error(`The backend did not start: ${error.message}`));
backend.on("exit", (code) => {
  if (code) console.error(`The backend ended with code ${code}. The page plays on without it.`);
});
process.on("exit", () => backend.kill());
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => process.exit());

// The first page load should find the backend. But the page does not wait for a backend
// that takes long or does not start.
const ended = new Promise<void>((resolve) =>
  backend.once("exit", () => resolve()).once("error", () => resolve()),
);
await Promise.race([
  listening(Number(process.env.BACKEND_PORT)),
  ended,
  pause(15_000, undefined, { ref: false }),
]);

const vite = await createServer({ root: ROOT });
await vite.listen();
vite.printUrls();
vite.bindCLIShortcuts({ print: true });
