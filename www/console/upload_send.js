// Sends an archive to the project API. `fetch` does not say how much of a body was sent, so this uses
// its predecessor.

import { Refusal } from "./session.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Session } from "./session.js" */

/**
 * @param {string} path
 * @param {string} token
 * @param {Blob} archive
 * @param {(sent: number) => void} told
 * @param {AbortSignal} signal
 * @returns {Promise<{ status: number, text: string }>}
 */
const put = (path, token, archive, told, signal) =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", path);
    request.setRequestHeader("Authorization", `Bearer ${token}`);
    request.setRequestHeader("Content-Type", "application/gzip");
    request.upload.onprogress = ({ loaded }) => told(loaded);
    request.onload = () => resolve({ status: request.status, text: request.responseText });
    request.onerror = () => reject(new Refusal(0));
    request.onabort = () => reject(signal.reason);
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(archive);
  });

/** @param {string} text */
const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    // A proxy answered, not the platform.
    return undefined;
  }
};

/**
 * Deploys an archive. A refused token is renewed once. `told` is called with the bytes that were sent.
 *
 * @param {Session} session
 * @param {string} path
 * @param {Blob} archive
 * @param {(sent: number) => void} told
 * @param {AbortSignal} signal
 * @returns {Promise<Schemas["Deployed"]>}
 */
export const send = async (session, path, archive, told, signal) => {
  for (let renew = false; ; renew = true) {
    const token = await session.token(renew);
    signal.throwIfAborted();
    const { status, text } = await put(path, token, archive, told, signal);
    if (status === 401 && !renew) continue;
    const answer = parsed(text);
    if (status === 201 && answer) return answer;
    throw new Refusal(status === 201 ? 0 : status, answer);
  }
};
