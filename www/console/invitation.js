// `/invitations#<secret>`: what an invitation offers, and joining the project with it.

import { Considered } from "./considered.js";
import { byId, moment, userText } from "./dom.js";
import { enter } from "./gate.js";
import { Refusal } from "./session.js";

/** What each role allows, in words. */
const RIGHTS = {
  owner: "An owner decides who may do what.",
  developer:
    "A developer sees everything of the project, deploys, rolls back, changes its settings and plays as test players.",
  viewer:
    "A viewer sees everything of the project: players, logs, errors, deployments and settings. A viewer changes nothing.",
};

/** The key under which this tab keeps the secret while its visitor signs in. */
const KEPT = "invitation";

/**
 * Takes the secret out of the address, so that it goes into no history and, with the way back from
 * the sign-in, to no server. Returns it, also after the sign-in.
 */
const takeSecret = () => {
  const given = location.hash.slice(1);
  try {
    if (!given) return sessionStorage.getItem(KEPT) ?? "";
    sessionStorage.setItem(KEPT, given);
    history.replaceState(null, "", location.pathname);
  } catch {
    // Without storage, the link has to be opened again after the sign-in.
  }
  return given;
};

/** Forgets the secret in this tab. It is used up. */
const forget = () => {
  try {
    sessionStorage.removeItem(KEPT);
  } catch {
    // Without storage, nothing was kept.
  }
};

const secret = takeSecret();
byId("gate-sign-in").search = String(
  new URLSearchParams({ redirect: `${location.origin}${location.pathname}` }),
);
addEventListener("hashchange", () => location.reload());

enter(async (session) => {
  const offer = await session.ask("/api/invitations/read", { secret });
  const { slug, owner_username: owner, role, your_role: before, expires_at: expires } = offer;
  byId("offer-project").textContent = slug;
  byId("offer-words").replaceChildren(
    ...(owner ? [userText(owner), " invites you"] : ["You are invited"]),
    ` to the project ${slug} as a ${role}.`,
  );
  byId("offer-rights").textContent = RIGHTS[role];
  byId("offer-until").replaceChildren("One account can accept it, until ", moment(expires), ".");
  const accept = byId("offer-accept");
  const open = byId("offer-open");
  open.href = `/projects/${slug}`;
  if (before && (before !== "viewer" || role === "viewer")) {
    byId("offer-words").textContent = `You are in the project ${slug} already, as its ${before}.`;
    accept.hidden = true;
    open.hidden = false;
    return;
  }
  const considered = new Considered(accept);
  accept.onclick = async () => {
    considered.isBusy = true;
    byId("offer-error").textContent = "";
    try {
      await session.ask("/api/invitations/accept", { secret });
      forget();
      location.assign(`/projects/${slug}`);
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      byId("offer-error").textContent = refusal.message;
      considered.isBusy = false;
    }
  };
}, "You are invited to a project. Sign in to read the invitation: projects belong to accounts.");
