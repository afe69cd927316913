// The settings of an environment: its backend, whether its pages are isolated and their requests
// traced, and which sites may show them in a frame.

import { Considered } from "./considered.js";
import { allById, byId, plain } from "./dom.js";
import { Refusal } from "./session.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Desk, EnvironmentName, Part } from "./project.js" */

/** @typedef {"backend" | "isolation" | "tracing" | "frames"} Setting */
/** @typedef {"url" | "paths"} BackendField */

/**
 * Returns the field of the backend's form that a refusal is about, if it is about one.
 *
 * @param {Refusal} refusal
 * @returns {BackendField | undefined}
 */
const wrongField = ({ slug, message }) => {
  if (slug !== "invalid-request") return undefined;
  return /^A backend(?:'s path| has \d+ to \d+ paths)/.test(message) ? "paths" : "url";
};

/** The sentence for each choice of who may show the game in a frame. */
const FRAMES = {
  any: "Every site may show the game in a frame.",
  platform: "No other site may show the game in a frame.",
};
/** @param {Schemas["Ancestors"]} ancestors */
const framesWords = (ancestors) =>
  typeof ancestors === "string"
    ? FRAMES[ancestors]
    : `${ancestors.map(plain).join(" and ")} may show the game in a frame, and no other site.`;

/** The settings on the page, for one environment at a time. */
class Settings {
  #desk;
  /** @type {EnvironmentName} */
  #environment = "dev";

  /** @param {Desk} desk */
  constructor(desk) {
    this.#desk = desk;
    byId("backend").onsubmit = (event) => {
      event.preventDefault();
      this.#save();
    };
    byId("backend-remove").onclick = () =>
      this.#put("backend", { url: null }, "The backend is taken away. Save puts it back.");
    byId("isolation").onchange = () => this.#isolate();
    byId("tracing").onchange = () => this.#trace();
    byId("frames").onsubmit = (event) => {
      event.preventDefault();
      this.#saveFrames();
    };
    byId("frames-who").onchange = () => {
      byId("frames-origins-field").hidden = byId("frames-who").value !== "origins";
    };
    // These act without a question.
    for (const control of allById("backend-remove", "isolation", "tracing"))
      new Considered(control);
    byId("backend-meant").onclick = () => {
      byId("backend-url").value = byId("backend-meant").dataset.address ?? "";
      this.#save();
    };
  }

  /** Shows the settings of another environment. Text that was not saved is lost. */
  show() {
    const {
      backend,
      built_in_backend: builtIn,
      cross_origin_isolated: isolated,
      trace_requests: traced,
      frame_ancestors: ancestors,
    } = this.#desk.now;
    this.#environment = this.#desk.environment;
    byId("backend-url").value = backend?.url ?? "";
    byId("backend-paths").value = (backend?.paths ?? ["/api/"]).join("\n");
    byId("isolation").checked = isolated;
    byId("tracing").checked = traced;
    this.#showFrames(ancestors);
    for (const what of /** @type {const} */ (["backend", "isolation", "tracing", "frames"])) {
      this.#refuse(what, "");
      byId(`${what}-saved`).textContent = "";
    }
    this.#tell(backend, builtIn);
  }

  /** @param {Schemas["Ancestors"]} ancestors */
  #showFrames(ancestors) {
    const origins = Array.isArray(ancestors) ? ancestors : [];
    byId("frames-who").value = typeof ancestors === "string" ? ancestors : "origins";
    byId("frames-origins").value = origins.join("\n");
    byId("frames-origins-field").hidden = !origins.length;
    byId("frames-state").textContent = framesWords(ancestors);
  }

  /**
   * @param {Schemas["Environment"]["backend"]} backend
   * @param {boolean} builtIn
   */
  #tell(backend, builtIn) {
    byId("backend-remove").hidden = !backend;
    const none = builtIn
      ? "The platform’s own backend answers under /api/. One that is set here takes its place."
      : "None is set: every address of the game is a file of its deployment.";
    byId("backend-state").textContent = backend
      ? `Requests under ${backend.paths.join(" and ")} go to ${backend.url}.`
      : none;
  }

  /**
   * Shows why a setting was not saved. `field` is the wrong field of the backend's form, if one is.
   *
   * @param {Setting} what
   * @param {string} sentence
   * @param {BackendField} [field]
   */
  #refuse(what, sentence, field) {
    if (what !== "backend") {
      byId(`${what}-error`).textContent = sentence;
      return;
    }
    // The error is shown at the wrong field, or below both.
    byId("backend-error").textContent = field ? "" : sentence;
    const [, address] = /: write (https?:\/\/\S+)\.$/.exec(sentence) ?? [];
    const meant = byId("backend-meant");
    meant.hidden = !(address && field === "url");
    if (address) {
      meant.dataset.address = address;
      meant.textContent = `Use ${plain(address)}`;
    }
    for (const name of /** @type {const} */ (["url", "paths"])) {
      const wrong = name === field;
      byId(`backend-${name}-error`).textContent = wrong ? sentence : "";
      byId(`backend-${name}`).ariaInvalid = wrong ? "true" : null;
      byId(`backend-${name}-field`).classList.toggle("wrong", wrong);
    }
    if (field) byId(`backend-${field}`).focus();
  }

  #save() {
    const url = byId("backend-url").value.trim();
    const paths = byId("backend-paths")
      .value.split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
    if (!url)
      return this.#refuse(
        "backend",
        "A backend has an address, such as https://game.example.",
        "url",
      );
    return this.#put("backend", { url, paths }, "The backend is saved.");
  }

  #isolate() {
    const wanted = byId("isolation").checked;
    const words = wanted ? "The pages are isolated now." : "The pages are not isolated any more.";
    return this.#switch("isolation", { cross_origin_isolated: wanted }, words);
  }

  #trace() {
    const wanted = byId("tracing").checked;
    const words = wanted ? "Calls carry a trace from now on." : "Calls carry no trace any more.";
    return this.#switch("tracing", { trace_requests: wanted }, words);
  }

  /**
   * Saves what a switch says. If it is refused, the switch goes back.
   *
   * @param {"isolation" | "tracing"} what
   * @param {Schemas["Isolation"] | Schemas["Tracing"]} body
   * @param {string} words
   */
  async #switch(what, body, words) {
    const box = byId(what);
    const wanted = box.checked;
    const done = await this.#put(what, body, words);
    if (!done) box.checked = !wanted;
  }

  #saveFrames() {
    const who = byId("frames-who").value;
    const origins = byId("frames-origins")
      .value.split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
    if (who === "origins" && !origins.length) {
      byId("frames-origins").focus();
      return this.#refuse("frames", "Name at least one site, such as https://portal.example.");
    }
    return this.#put(
      "frames",
      { ancestors: who === "origins" ? origins : /** @type {Schemas["AncestorsWord"]} */ (who) },
      "Saved: this is who may show the game in a frame.",
    );
  }

  /**
   * Saves a setting. Returns false if it was refused. If the viewer has chosen another environment
   * meanwhile, it returns true, as there is nothing to take back on the page.
   *
   * @param {Setting} what
   * @param {Schemas["NewBackend"] | Schemas["Isolation"] | Schemas["Tracing"] | Schemas["NewFrames"]} body
   * @param {string} words
   */
  async #put(what, body, words) {
    const environment = this.#environment;
    const headers = { "Content-Type": "application/json" };
    this.#refuse(what, "");
    try {
      const init = { method: "PUT", headers, body: JSON.stringify(body) };
      const path = `/api/projects/${this.#desk.slug}/environments/${environment}/${what}`;
      const response = await this.#desk.session.open(path, init);
      const now = await response.json();
      if (environment !== this.#environment) return true;
      this.#tell(now.backend, now.built_in_backend);
      // The platform may write them differently. Other forms keep what the viewer has chosen.
      if (what === "frames") this.#showFrames(now.frame_ancestors);
      this.#desk.takes(environment, now);
      const all = now.trial ? `${words} ${plain(now.trial.sentence)}` : words;
      byId("news").textContent = all;
      byId(`${what}-saved`).textContent = all;
      return true;
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      if (environment !== this.#environment) return true;
      byId(`${what}-saved`).textContent = "";
      this.#refuse(what, refusal.message, wrongField(refusal));
      return false;
    }
  }
}

/**
 * The sections of the settings.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const settings = (desk) => {
  const shown = new Settings(desk);
  return { open: () => shown.show() };
};
