// Who looks at this page, and what they ask of the project API. The token
// lives in memory alone; the session is a cookie that no script can read.

import { plain } from "./dom.js";

/** @import { Answer, ApiPath, Player, Schemas, Sent } from "../types/api.d.ts" */

/** A refusal, as the platform words it (RFC 9457), or that nobody answered. */
export class Refusal extends Error {
  /**
   * @param {number} status 0 where nobody answered
   * @param {Partial<Schemas["Problem"]>} [problem]
   */
  constructor(status, problem = {}) {
    super(
      plain(
        problem.detail ||
          (status ? "The platform did not do that." : "The platform does not answer."),
      ),
    );
    this.status = status;
    this.slug =
      String(problem.type ?? "")
        .split("/")
        .at(-1) ?? "";
    this.request = problem.request_id ?? "";
  }
}

/** Part of a token's life that it is not used in any more, so that none ends on its way. */
const MARGIN = 0.2;

/**
 * What a token says of its player. It is shown, and nothing is decided by it.
 *
 * @param {string} token
 * @returns {{ sub: string, username: string, is_anon: boolean }}
 */
const claims = (token) => {
  const part = token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
  const bytes = Uint8Array.from(atob(part), (char) => char.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes));
};

/** @param {Response} response */
const refused = async (response) => {
  let problem;
  try {
    problem = await response.json();
  } catch {
    // Somebody in between has answered.
  }
  return new Refusal(response.status, problem);
};

/** @param {Response} response */
const read = async (response) => {
  try {
    return await response.json();
  } catch {
    // Somebody in between has answered, or has cut the answer short.
    throw new Refusal(0);
  }
};

/** A player of this platform, as the console's own pages meet them. */
export class Session {
  #auth;
  /** @type {string | undefined} */
  #token;
  #until = 0;
  /** @type {Promise<string> | undefined} */
  #asking;
  /** @type {Refusal | undefined} */
  #over;

  /** @param {string} auth */
  constructor(auth) {
    this.#auth = auth;
  }

  /**
   * What is done where the platform wants a fresh sign-in first, and says so in a refusal.
   *
   * @type {(refusal: Refusal) => void}
   */
  wantsFresh = () => {};

  /**
   * Who it is; a guest where nobody is signed in.
   *
   * @returns {Promise<Player>}
   */
  async player() {
    const { sub, username, is_anon } = claims(await this.token());
    return { sub, username, isGuest: is_anon };
  }

  /**
   * A token that works for a while. Who asks at the same moment shares one request.
   *
   * @returns {Promise<string>}
   */
  async token(renew = false) {
    // Asking again after the session has ended could not bring it back.
    if (this.#over) throw this.#over;
    if (!renew && this.#token && performance.now() < this.#until) return this.#token;
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  /** @returns {Promise<string>} */
  async #ask() {
    const began = performance.now();
    let response;
    try {
      response = await fetch(`${this.#auth}/token`, {
        method: "POST",
        credentials: "include",
        cache: "no-store",
      });
    } catch {
      throw new Refusal(0);
    }
    if (!response.ok) {
      const refusal = await refused(response);
      if (refusal.slug === "session-expired") this.#over = refusal;
      throw refusal;
    }
    const { access_token, expires_in } = await read(response);
    this.#token = access_token;
    this.#until = began + expires_in * 1000 * (1 - MARGIN);
    return access_token;
  }

  /**
   * Asks the project API; the response, whatever is in it. A token that is refused is renewed once.
   *
   * @param {string} path
   * @param {RequestInit & { headers?: Record<string, string> }} [init]
   * @returns {Promise<Response>}
   */
  async open(path, init = {}) {
    for (let renew = false; ; renew = true) {
      const headers = { ...init.headers, Authorization: `Bearer ${await this.token(renew)}` };
      let response;
      try {
        response = await fetch(path, { ...init, headers, cache: "no-store" });
      } catch (error) {
        if (init.signal?.aborted) throw error;
        throw new Refusal(0);
      }
      if (response.ok) return response;
      if (response.status === 401 && !renew) continue;
      const refusal = await refused(response);
      if (refusal.slug === "step-up-required") this.wantsFresh(refusal);
      throw refusal;
    }
  }

  /**
   * Asks the project API; what it answers.
   *
   * @template {ApiPath} Path
   * @template {Sent<"post", Path> | undefined} [Body=undefined]
   * @param {Path} path
   * @param {Body} [body] what is sent with POST; without it, the method is GET
   * @returns {Promise<Body extends undefined ? Answer<"get", Path> : Answer<"post", Path>>}
   */
  async ask(path, body) {
    const post = {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "Content-Type": "application/json" },
    };
    const response = await this.open(path, body === undefined ? {} : post);
    return read(response);
  }
}
