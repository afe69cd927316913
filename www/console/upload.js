// Deploying from the page: a folder or a zip is dropped or chosen, looked at, and sent.

import { allById, byId, count, make, plain, size } from "./dom.js";
import { Refusal } from "./session.js";

/** @import { Desk, Part } from "./project.js" */
/** @import { Given } from "./upload_files.js" */
/** @import { Prepared } from "./upload_work.js" */

const NAMES = { dev: "dev", prod: "production" };

/** The upload of a page. */
class Upload {
  #desk;
  /** @type {typeof import("./upload_work.js") | undefined} */
  #work;
  /** @type {Prepared | undefined} */
  #prepared;
  /** @type {Blob | undefined} */
  #archive;
  /** @type {AbortController | undefined} */
  #sending;
  #turn = 0;
  /** Whether there is something to see that must not go when the project changes. */
  isUsed = false;

  /** @param {Desk} desk */
  constructor(desk) {
    this.#desk = desk;
    const [folder, folderInput] = allById("upload-folder", "upload-folder-input");
    const [zip, zipInput] = allById("upload-zip", "upload-zip-input");
    folder.hidden = !("webkitdirectory" in folderInput);
    folder.onclick = () => folderInput.click();
    zip.onclick = () => zipInput.click();
    for (const input of [folderInput, zipInput])
      input.onchange = () => {
        const files = [...(input.files ?? [])];
        // The same folder can be chosen again after it was built again.
        input.value = "";
        if (files.length) this.#take({ entries: [], files });
      };
    byId("upload-form").onsubmit = (event) => {
      event.preventDefault();
      this.#deploy();
    };
    byId("upload-stop").onclick = () => this.#stop();
    this.#watchDrops();
  }

  /** Anywhere on the page will do: a browser would leave the page for a file that misses its target. */
  #watchDrops() {
    /** @param {DragEvent} event */
    const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes("Files");
    const target = byId("upload-target");
    document.addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      target.classList.toggle("over", !byId("upload").hidden && !this.#sending);
    });
    document.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) target.classList.remove("over");
    });
    document.addEventListener("drop", (event) => {
      target.classList.remove("over");
      if (!hasFiles(event)) return;
      event.preventDefault();
      if (byId("upload").hidden || this.#sending) return;
      // The list is only there during the event.
      const items = [...(event.dataTransfer?.items ?? [])];
      const entries = items.map((item) => item.webkitGetAsEntry?.() ?? null);
      this.#take({
        entries: entries.filter((entry) => entry !== null),
        files: [...(event.dataTransfer?.files ?? [])],
      });
    });
    window.addEventListener("beforeunload", (event) => {
      if (this.#sending) event.preventDefault();
    });
  }

  /**
   * Looks at what was dropped or chosen.
   *
   * @param {Given} given
   */
  async #take(given) {
    const turn = ++this.#turn;
    this.#clear();
    this.isUsed = true;
    byId("upload-words").textContent = "Looking at the files…";
    try {
      this.#work ??= await import("./upload_work.js");
      const prepared = await this.#work.prepare(given);
      if (turn !== this.#turn) return;
      this.#prepared = prepared;
      const { name, files, size: words, advice } = prepared;
      byId("upload-words").textContent =
        `${plain(name)}: ${count(files, "file", "files")}, ${words}.`;
      this.#advise(advice);
      byId("upload-form").hidden = false;
      this.label();
      byId("upload-send").focus();
    } catch (error) {
      if (turn !== this.#turn) return;
      byId("upload-words").textContent = "";
      this.#refuse(error);
    }
  }

  /** @param {{ code: string, message: string }[]} advice */
  #advise(advice) {
    const lines = advice.map(({ code, message }) =>
      make("li", {}, plain(message), " ", make("code", { textContent: code })),
    );
    byId("upload-advice").replaceChildren(...lines);
    byId("upload-advice").hidden = !lines.length;
  }

  #clear() {
    this.#prepared = undefined;
    this.#archive = undefined;
    byId("upload-form").hidden = true;
    byId("upload-problem").hidden = true;
    byId("upload-words").replaceChildren();
    this.#advise([]);
  }

  /**
   * Shows why something did not work.
   *
   * @param {unknown} error
   */
  #refuse(error) {
    if (error instanceof Refusal && (error.slug === "step-up-required" || error.status === 401))
      this.#desk.session.wantsFresh(error);
    const isKnown =
      error instanceof Refusal || (this.#work && error instanceof this.#work.Unusable);
    byId("upload-problem").textContent = isKnown
      ? plain(/** @type {Error} */ (error).message)
      : "The files cannot be read here: try again, or use the command line.";
    byId("upload-problem").hidden = false;
    // The page's own faults belong into the browser's log.
    if (!isKnown) console.error(error);
  }

  #stop() {
    if (this.#sending) {
      this.#sending.abort();
      return;
    }
    this.#turn++;
    this.isUsed = false;
    this.#clear();
    byId("upload-words").textContent = "Nothing was deployed.";
    byId("upload-zip").focus();
  }

  /** Writes where the files will go onto the button. */
  label() {
    const isAgain = !byId("upload-problem").hidden;
    const where = NAMES[this.#desk.environment];
    byId("upload-send").textContent = `${isAgain ? "Try again: deploy" : "Deploy"} to ${where}`;
  }

  /** @param {boolean} isBusy */
  #rest(isBusy) {
    byId("upload-target").inert = isBusy;
    byId("upload-send").disabled = isBusy;
    byId("upload-stop").disabled = false;
    byId("upload-message").disabled = isBusy;
    byId("upload-progress").hidden = !isBusy;
    byId("upload-progress").value = 0;
  }

  /** Packs and sends. What was packed stays until it has arrived. */
  async #deploy() {
    const [work, prepared, desk] = [this.#work, this.#prepared, this.#desk];
    if (!work || !prepared || this.#sending) return;
    const { environment, path, session } = desk;
    const sending = new AbortController();
    this.#sending = sending;
    byId("upload-problem").hidden = true;
    const words = byId("upload-words").textContent ?? "";
    this.#rest(true);
    byId("upload-stop").focus();
    try {
      this.#archive ??= await this.#pack(prepared, sending.signal);
      const archive = this.#archive;
      byId("upload-words").textContent = `Sending ${size(archive.size)}…`;
      const message = byId("upload-message").value.trim();
      const query = message ? `?${new URLSearchParams({ message })}` : "";
      const deployed = await work.send(
        session,
        `${path}/deployment${query}`,
        archive,
        (sent) => this.#show(sent / archive.size),
        sending.signal,
      );
      const known = new Set(prepared.advice.map(({ code }) => code));
      this.#clear();
      this.#advise(deployed.warnings.filter(({ code }) => !known.has(code)));
      byId("upload-message").value = "";
      byId("upload-words").replaceChildren(
        `Deployed ${deployed.short_id} to ${NAMES[environment]}. `,
        make("a", {
          href: deployed.url,
          target: "_blank",
          rel: "noopener",
          textContent: "Open the game",
        }),
      );
      // Without an answer, the page asks again by itself.
      session
        .ask(/** @type {const} */ (`/api/projects/${desk.slug}/environments/${environment}`))
        .then(
          (now) => desk.takes(environment, now),
          () => {},
        );
    } catch (error) {
      if (this.#prepared) byId("upload-words").textContent = words;
      if (sending.signal.aborted)
        byId("upload-words").textContent = `${words} Nothing was deployed.`;
      else this.#refuse(error);
    } finally {
      this.#sending = undefined;
      this.#rest(false);
      this.label();
      const next = this.#prepared ? byId("upload-send") : document.querySelector("#upload-words a");
      /** @type {HTMLElement | null} */ (next)?.focus();
    }
  }

  /**
   * @param {Prepared} prepared
   * @param {AbortSignal} signal
   */
  #pack(prepared, signal) {
    byId("upload-words").textContent = `Packing ${count(prepared.files, "file", "files")}…`;
    let done = 0;
    return prepared.pack((bytes) => {
      done += bytes;
      this.#show(done / prepared.bytes);
    }, signal);
  }

  /** @param {number} share */
  #show(share) {
    byId("upload-progress").value = share;
    if (share < 1 || !this.#archive) return;
    byId("upload-words").textContent = "The platform unpacks and stores it…";
    // From here on it is deployed, whoever waits for it.
    byId("upload-stop").disabled = true;
  }
}

/**
 * @param {Desk} desk
 * @param {boolean} isFirst whether it is only shown until something is deployed
 * @returns {Part}
 */
const part = (desk, isFirst) => {
  const upload = new Upload(desk);
  return {
    draw: () => {
      const { project, now } = desk;
      const isNeeded = !isFirst || !now.deployment || upload.isUsed;
      byId("upload").hidden = project.role === "viewer" || !isNeeded;
      upload.label();
    },
  };
};

/**
 * The section to deploy from the page.
 *
 * @param {Desk} desk
 */
export const upload = (desk) => part(desk, false);

/**
 * The same as long as nothing is deployed.
 *
 * @param {Desk} desk
 */
export const firstUpload = (desk) => part(desk, true);
