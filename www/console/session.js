// Who looks at this page, and what they ask of the project API. The token
// lives in memory alone; the session is a cookie that no script can read.

import { plain } from "./dom.js";

/** A refusal, as the platform words it (RFC 9457), or that nobody answered. */
export class Refusal extends Error {
  constructor(status, problem = {}) {
    super(
      plain(
        problem.detail ||
          (status ? "The platform did not do that." : "The platform does not answer."),
      ),
    );
    this.status = status;
    this.slug = String(problem.type ?? "")
      .split("/")
      .pop();
    this.request = problem.request_id ?? "";
  }
}

/** Part of a token's life that it is not used in any more, so that none ends on its way. */
const MARGIN = 0.2;

/** What a token says of its player. It is shown, and nothing is decided by it. */
const claims = (token) => {
  const part = token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
  const bytes = Uint8Array.from(atob(part), (char) => char.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes));
};

const refused = async (response) => {
  let problem;
  try {
    problem = await response.json();
  } catch {
    // Somebody in between has answered.
  }
  return new Refusal(response.status, problem);
};

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
  #token;
  #until = 0;
  #asking;
  #over;

  constructor(auth) {
    this.#auth = auth;
  }

  /** What is done where the platform wants a fresh sign-in first, and says so in a refusal. */
  wantsFresh = () => {};

  /** Who it is; a guest where nobody is signed in. */
  async player() {
    const { sub, username, is_anon } = claims(await this.token());
    return { sub, username, isGuest: is_anon };
  }

  /** A token that works for a while. Who asks at the same moment shares one request. */
  async token(renew = false) {
    // Asking again after the session has ended could not bring it back.
    if (this.#over) throw this.#over;
    if (!renew && performance.now() < this.#until) return this.#token;
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

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

  /** Asks the project API; the response, whatever is in it. A token that is refused is renewed once. */
  async open(path, init = {}) {
    for (const renew of [false, true]) {
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

  /** Asks the project API; what it answers. */
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
