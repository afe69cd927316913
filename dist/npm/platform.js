#!/usr/bin/env node
// Runs the program for this machine, which is in this package.

import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const programs = new URL("../programs/", import.meta.url);
const machine = `${process.platform}-${process.arch}`;
const name = process.platform === "win32" ? "platform.exe" : "platform";
const program = fileURLToPath(new URL(`${machine}/${name}`, programs));

if (!existsSync(program)) {
  const there = readdirSync(programs).join(", ");
  console.error(`error: There is no program for ${machine} in this package, only for ${there}.`);
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });

// A terminal sends Ctrl-C to both processes. The program decides what it means, and this one waits.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}

child.on("error", (error) => {
  console.error(`error: ${program} cannot be run: ${error.message}`);
  process.exitCode = 1;
});
child.on("exit", (code, signal) => {
  if (signal) {
    // This process ends in the same way, so that a shell sees how the program ended.
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exitCode = code ?? 1;
  }
});
