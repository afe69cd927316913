// The people of a project: who has which role, invitations, and what the owner and members may do
// about them: also the offer of the project to a developer. An invitation's link is shown until it is
// hidden or the page is left.

import { allById, byId, make, moment, userText } from "./dom.js";
import { Question } from "./question.js";
import { Refusal } from "./session.js";
import { copy } from "./variables.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Desk, Part } from "./project.js" */
/** @import { Inside } from "./dom.js" */

/** @typedef {Schemas["Person"]} Person */

/** What each role allows, in words. */
const RIGHTS = {
  owner: "decides who may do what",
  developer: "deploys and changes settings",
  viewer: "reads everything, changes nothing",
};

/** What gets data of the project, in words. */
const OUTLETS = {
  webhook: "the webhook, which is told about errors",
  "backend-dev": "the backend of dev, which gets players' requests",
  "backend-prod": "the backend of production, which gets players' requests",
};

/** @param {string} role */
const withArticle = (role) => (role === "owner" ? "the owner" : `a ${role}`);

/**
 * @param {string} words
 * @param {Inside} about what screen readers add
 * @param {() => void} act
 */
const button = (words, about, act) =>
  make(
    "button",
    { className: "button second small-button", type: "button", onclick: act },
    words,
    make("span", { className: "aside" }, " ", about),
  );

const forget = () => {
  byId("invite-shown").hidden = true;
  byId("invite-link").textContent = "";
};

/** The section on the page. */
class People {
  #desk;
  #question;

  /** @param {Desk} desk */
  constructor(desk) {
    this.#desk = desk;
    const [dialog, yes, no, error] = allById("person", "person-yes", "person-no", "person-error");
    this.#question = new Question(dialog, yes, no, error);
    byId("invite").onsubmit = (event) => {
      event.preventDefault();
      this.#invite();
    };
    const link = byId("invite-link");
    byId("invite-copy").onclick = () =>
      copy(byId("invite-copy"), link.textContent, link, "the link of the invitation");
    byId("invite-forget").onclick = forget;
  }

  /** Reads the lists again. */
  async show() {
    await this.#guard(async () => {
      const { session, slug, isOwn } = this.#desk;
      const path = /** @type {const} */ (`/api/projects/${slug}/people`);
      const { people, outlets, handover } = await session.ask(path);
      byId("people").replaceChildren(...people.map((person) => this.#person(person)));
      const doubtful = outlets.flatMap((one) => this.#outlet(one, people));
      byId("outlets").replaceChildren(...doubtful);
      byId("outlets").hidden = doubtful.length === 0;
      this.#drawOffer(handover);
      byId("people-owners").hidden = !isOwn;
      if (!isOwn) return;
      const { invitations } = await session.ask(
        /** @type {const} */ (`/api/projects/${slug}/invitations`),
      );
      byId("invitations").replaceChildren(...invitations.map((one) => this.#invitation(one)));
    });
  }

  /** @param {() => Promise<void>} work */
  async #guard(work) {
    try {
      await work();
      byId("people-error").textContent = "";
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      byId("people-error").textContent = refusal.message;
    }
  }

  /**
   * @param {string} path
   * @param {"PUT" | "POST" | "DELETE"} method
   * @param {object} [body]
   */
  #send(path, method, body) {
    const headers = { "Content-Type": "application/json" };
    const sent = body ? { method, headers, body: JSON.stringify(body) } : { method };
    return this.#desk.session.open(`/api/projects/${this.#desk.slug}${path}`, sent);
  }

  /** @param {Person} person */
  #person(person) {
    const { sub, username, role, since } = person;
    const isViewer = sub === this.#desk.player.sub;
    const about = make(
      "div",
      {},
      userText(username),
      isViewer ? " (you)" : "",
      make(
        "span",
        { className: "host" },
        `${role}: ${RIGHTS[role]}`,
        ...(since ? [" · since ", moment(since)] : []),
      ),
    );
    return make("li", {}, about, make("span", { className: "ways" }, ...this.#ways(person)));
  }

  /**
   * Asks to look at an address that somebody has set who may not set it any more.
   *
   * @param {Schemas["SetOutlet"]} outlet
   * @param {Person[]} people
   */
  #outlet({ outlet, set_by: by }, people) {
    const role = people.find(({ sub }) => sub === by?.sub)?.role;
    if (!by || role === "owner" || role === "developer") return [];
    const name = by.username ? userText(by.username) : "Somebody";
    const who = role ? ", who may only read now," : ", who is not in the project any more,";
    const words = ` set ${OUTLETS[outlet]}. Look whether the address is still yours, and save it.`;
    return [make("li", {}, name, who, words)];
  }

  /**
   * What the viewer may do about a person.
   *
   * @param {Person} person
   */
  #ways(person) {
    const { sub, username, role } = person;
    const { isOwn, player, project } = this.#desk;
    const name = () => userText(username);
    if (role === "owner") return [];
    if (sub === player.sub) return [button("Leave…", "the project", () => this.#askLeave(sub))];
    // An administrator without a role may remove people as well.
    const remove = button("Remove…", name(), () => this.#askRemove(person));
    if (!isOwn) return project.role === null ? [remove] : [];
    const other = role === "viewer" ? "developer" : "viewer";
    const change = button(`Make ${other}`, name(), () => this.#change(person, other));
    const handOn = button("Hand on…", name(), () => this.#askHandOn(person));
    return role === "developer" ? [change, handOn, remove] : [change, remove];
  }

  /**
   * Changes or removes a member, and says so, with the invitations that were withdrawn because of it.
   *
   * @param {string} words the news, without a full stop
   * @param {string} sub
   * @param {"PUT" | "DELETE"} method
   * @param {{ role: Schemas["MemberRole"] }} [body]
   */
  async #alter(words, sub, method, body) {
    const response = await this.#send(`/people/${sub}`, method, body);
    /** @type {Schemas["ChangedPerson"]} */
    const { invitations_withdrawn: count } = await response.json();
    // The link that is shown may be one of them.
    if (count) forget();
    await this.show();
    const invitations = count === 1 ? "one open invitation is" : `${count} open invitations are`;
    byId("news").textContent = count ? `${words}, and ${invitations} withdrawn.` : `${words}.`;
  }

  /**
   * Shows the offer of the project, if there is one that concerns the viewer.
   *
   * @param {Schemas["Handover"] | null} handover
   */
  #drawOffer(handover) {
    byId("handover").hidden = !handover;
    if (!handover) return;
    const { sub, username, expires_at: expires } = handover;
    const isHeir = sub === this.#desk.player.sub;
    byId("handover-words").replaceChildren(
      ...(isHeir
        ? ["The owner offers you this project"]
        : ["The project is offered to ", userText(username), ", who has not accepted yet"]),
      ", until ",
      moment(expires),
      ".",
    );
    const about = "the offer of the project";
    const end = (/** @type {string} */ words) => () =>
      this.#guard(async () => {
        await this.#send("/handover", "DELETE");
        await this.show();
        byId("news").textContent = words;
      });
    const ways = isHeir
      ? [
          button("Accept…", about, () => this.#askAccept()),
          button("Decline", about, end("The offer is declined.")),
        ]
      : [button("Withdraw", about, end("The offer is withdrawn."))];
    byId("handover-ways").replaceChildren(...ways);
  }

  #askAccept() {
    const words = [
      "You own the project then, and answer for its game. The owner of today is one of its developers, whom you can remove. Deploy tokens, the webhook and open invitations end.",
    ];
    this.#ask("Accept this project?", words, "Accept", async () => {
      await this.#send("/handover/accept", "POST");
      location.reload();
    });
  }

  /** @param {Schemas["Invitation"]} invitation */
  #invitation({ id, role, expires_at: expires }) {
    const withdraw = () =>
      this.#guard(async () => {
        await this.#send(`/invitations/${id}`, "DELETE");
        forget();
        await this.show();
        byId("news").textContent = "The invitation is withdrawn.";
      });
    const words = make(
      "div",
      {},
      `Invitation for a ${role}`,
      make("span", { className: "host" }, "Until ", moment(expires)),
    );
    return make("li", {}, words, button("Withdraw", `the invitation for a ${role}`, withdraw));
  }

  async #invite() {
    const create = byId("invite-create");
    create.disabled = true;
    forget();
    await this.#guard(async () => {
      const role = /** @type {Schemas["MemberRole"]} */ (byId("invite-role").value);
      const path = /** @type {const} */ (`/api/projects/${this.#desk.slug}/invitations`);
      const { link, expires_at: expires } = await this.#desk.session.ask(path, { role });
      byId("invite-link").textContent = link;
      byId("invite-as").textContent = role;
      byId("invite-until").replaceChildren(moment(expires));
      await this.show();
      byId("invite-shown").hidden = false;
      byId("invite-copy").focus();
      byId("news").textContent = `An invitation for a ${role} was created, and is shown.`;
    });
    create.disabled = false;
    // In some browsers a disabled button loses the focus.
    if (document.activeElement === document.body) create.focus({ preventScroll: true });
  }

  /**
   * @param {Person} person
   * @param {Schemas["MemberRole"]} role
   */
  #change({ sub, username }, role) {
    const words = `${username} is ${withArticle(role)} now`;
    return this.#guard(() => this.#alter(words, sub, "PUT", { role }));
  }

  /**
   * Asks before something that cannot be undone alone.
   *
   * @param {string} heading
   * @param {Inside[]} words
   * @param {string} label
   * @param {() => Promise<void>} act
   */
  #ask(heading, words, label, act) {
    byId("person-question").textContent = heading;
    byId("person-words").replaceChildren(...words);
    byId("person-yes").textContent = label;
    byId("person-yes").onclick = () => this.#question.confirm(act);
    this.#question.ask();
  }

  /** @param {Person} person */
  #askRemove({ sub, username }) {
    const words = [
      userText(username),
      " can do nothing with the project from then on. Open invitations are withdrawn, since their links may be known: whom you still expect needs a new one.",
    ];
    const news = `${username} is removed`;
    this.#ask("Remove this person?", words, "Remove", () => this.#alter(news, sub, "DELETE"));
  }

  /** @param {string} sub */
  #askLeave(sub) {
    const words = ["You can come back only if the owner invites you again."];
    this.#ask("Leave this project?", words, "Leave", async () => {
      await this.#send(`/people/${sub}`, "DELETE");
      location.assign("/build");
    });
  }

  /** @param {Person} person */
  #askHandOn({ sub, username }) {
    const words = [
      userText(username),
      " can accept it on this page within seven days, and until then it stays yours. Then ",
      userText(username),
      " owns it, and you are a developer, whom the new owner can remove. Deploy tokens, the webhook and open invitations end.",
    ];
    this.#ask("Offer the project?", words, "Offer", async () => {
      await this.#send("/handover", "PUT", { sub });
      await this.show();
      byId("news").textContent = `The project is offered to ${username}.`;
    });
  }
}

/**
 * The section about the people of a project.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const people = (desk) => {
  const { role } = desk.project;
  byId("people-words").textContent = role
    ? `You are ${withArticle(role)} of this project.`
    : "You have no role in this project, and act as an administrator.";
  new People(desk).show();
  return {};
};
