// The settings in platform.toml, and what follows from them. As in the
// command-line tool, the variables PLATFORM_PROJECT and PLATFORM_ORIGIN
// override the file.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "smol-toml";

/** The game's folder, where platform.toml is. */
export const ROOT = fileURLToPath(new URL("..", import.meta.url));

const file = parse(readFileSync(new URL("../platform.toml", import.meta.url), "utf8"));

function setting(name: string, variable?: string): string {
  const value = (variable && process.env[variable]) || file[name];
  if (typeof value === "string" && value !== "") return value;
  throw new Error(`platform.toml has no ${name}.`);
}

/** The folder that is deployed. */
export const dist = setting("dist");

/** Returns the variables of a backend for the players of the dev environment. */
export function backendVariables(): Record<
  "AUTH_ISSUER" | "AUTH_AUDIENCE" | "AUTH_JWKS_URL",
  string
> {
  const { protocol, host } = new URL(setting("origin", "PLATFORM_ORIGIN"));
  const issuer = `${protocol}//auth.${host}`;
  return {
    AUTH_ISSUER: issuer,
    AUTH_AUDIENCE: `game:dev-${setting("slug", "PLATFORM_PROJECT")}`,
    AUTH_JWKS_URL: `${issuer}/.well-known/jwks.json`,
  };
}
