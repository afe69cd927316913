// The viewer's session, and requests to the project API. The token is only in memory; the session
// is a cookie that scripts cannot read.

import { plain } from "./dom.js";

/** @import { Answer, ApiPath, Player, Schemas, Sent } from "../types/api.d.ts" */

/** A request that was refused, in the platform's words (RFC 9457), or that got no answer. */
export class Refusal extends Error {
  /**
   * @param {number} status 0 if no response arrived
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

/** The last part of a token's life, in which it is not used: it could expire on its way. */
const MARGIN = 0.2;

/**
 * Reads the claims of a token. They are only shown: no decision depends on them.
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
    // A proxy answered, not the platform.
  }
  return new Refusal(response.status, problem);
};

/** @param {Response} response */
const read = async (response) => {
  try {
    return await response.json();
  } catch {
    // A proxy answered, not the platform, or the response was cut off.
    throw new Refusal(0);
  }
};

/** The session of the viewer. */
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
   * Called when the platform refuses because the last sign-in is too old, or the session is over.
   *
   * @type {(refusal: Refusal) => void}
   */
  wantsFresh = () => {};

  /**
   * Returns the viewer, who is a guest if nobody is signed in.
   *
   * @returns {Promise<Player>}
   */
  async player() {
    const { sub, username, is_anon } = claims(await this.token());
    return { sub, username, isGuest: is_anon };
  }

  /**
   * Returns a token that is valid for a while. Simultaneous callers share one request.
   *
   * @returns {Promise<string>}
   */
  async token(renew = false) {
    // A session that has ended does not come back.
    if (this.#over) throw this.#over;
    if (!renew && this.#token && performance.now() < this.#until) return this.#token;
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  /**
   * Returns whether the visitor is somebody: an account, or a guest who was here before. Nobody
   * becomes a guest by this.
   */
  async knows() {
    this.#asking ??= this.#ask("?guest=no").finally(() => (this.#asking = undefined));
    return Boolean(await this.#asking);
  }

  /**
   * Returns the token; an empty one for nobody.
   *
   * @returns {Promise<string>}
   */
  async #ask(query = "") {
    const began = performance.now();
    let response;
    try {
      response = await fetch(`${this.#auth}/token${query}`, {
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
    if (response.status === 204) return "";
    const { access_token, expires_in } = await read(response);
    this.#token = access_token;
    this.#until = began + expires_in * 1000 * (1 - MARGIN);
    return access_token;
  }

  /**
   * Sends a request to the project API. Returns the response. A refused token is renewed once.
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
   * Sends a request to the project API. Returns the JSON of its answer.
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
