// Two Rings: the states of the game, its loop, its input.
//
//   account.ts  who plays, and what to do when a call fails
//   world.ts    the rules
//   view.ts     the canvas

import "./style.css";
import {
  agreeOnBest,
  keepBest,
  keptBest,
  links,
  Offline,
  signOut,
  Suspended,
  whoPlays,
} from "./account.ts";
import { View } from "./view.ts";
import { World } from "./world.ts";

function element<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`index.html has no #${id}`);
  return found as T;
}

const canvas = element<HTMLCanvasElement>("sky");
const card = element("card");
const playButton = element<HTMLButtonElement>("play");
const view = new View(canvas);

let state: "ready" | "playing" | "paused" | "over" | "stopped" = "ready";
let world = new World(Math.random);
let player: platform.Player | undefined;
let best = 0;

function frame(now: number, before: number): void {
  // Longer frames are shortened: after a delay, the world must not jump.
  const seconds = Math.min((now - before) / 1_000, 1 / 20);
  if (state === "playing") {
    view.celebrate(world.step(seconds));
    if (world.over) end();
  }
  view.draw(world, seconds);
  requestAnimationFrame((next) => frame(next, now));
}

function show(next: typeof state, headline: string, words: string, button?: string): void {
  state = next;
  card.hidden = false;
  element("headline").textContent = headline;
  element("words").textContent = words;
  playButton.hidden = button === undefined;
  playButton.textContent = button ?? "";
  if (button) playButton.focus({ preventScroll: true });
}

function play(): void {
  if (state === "stopped") return;
  if (state !== "paused") world = new World(Math.random);
  state = "playing";
  card.hidden = true;
  canvas.focus({ preventScroll: true });
}

function pause(): void {
  if (state === "playing") show("paused", "Paused", "The rings wait for you.", "Go on");
}

function end(): void {
  const { score } = world;
  const record = score > best;
  show(
    "over",
    record ? "A new best!" : "Ouch, a rock",
    `You gathered ${score} ${score === 1 ? "spark" : "sparks"}.`,
    "Play again",
  );
  if (!record) return;
  showBest(score);
  // Without a player, `refresh` asks who it is first.
  void online(player ? save : refresh);
}

function showBest(score: number): void {
  best = score;
  element("best-score").textContent = String(best);
}

function showPlayer({ username, isGuest }: platform.Player): void {
  const name = element<HTMLAnchorElement>("name");
  name.hidden = false;
  name.textContent = username;
  name.href = links.profile();
  name.title = "Change your name";
  const signIn = element<HTMLAnchorElement>("sign-in");
  signIn.hidden = !isGuest;
  signIn.href = links.signIn();
  // A guest has no sign-out button: it can be restored only for some days.
  element("sign-out").hidden = isGuest;
}

/** Finds out who plays, and updates the best score. */
async function refresh(): Promise<void> {
  const now = await whoPlays();
  // A score belongs to the player who made it.
  if (player && player.id !== now.id) best = 0;
  player = now;
  showPlayer(player);
  showBest(Math.max(best, keptBest(player.id)));
  await save();
}

/** Keeps the best score in this browser and, if there is one, on the backend. */
async function save(): Promise<void> {
  if (!player) return;
  const { id } = player;
  keepBest(id, best);
  const agreed = await agreeOnBest(best);
  // Meanwhile another player may play, or the score may be higher.
  if (player.id !== id || agreed <= best) return;
  showBest(agreed);
  keepBest(id, agreed);
}

/** Runs an action that needs the platform or the backend; without them, the game continues. */
async function online(action: () => Promise<void>): Promise<void> {
  if (state === "stopped") return;
  const notice = element("notice");
  try {
    await action();
    notice.textContent = "";
  } catch (error) {
    if (error instanceof Suspended) {
      show("stopped", "You cannot play", error.message);
    } else if (error instanceof Offline) {
      notice.textContent = `${error.message} You can play on: your best score is kept in this browser.`;
    } else {
      throw error;
    }
  }
}

playButton.addEventListener("click", play);
canvas.addEventListener("pointerdown", (event) => {
  event.preventDefault();
  if (state === "playing") world.hop();
});
addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  // A focused button or link handles its own keys.
  const free = event.target === document.body || event.target === canvas;
  if (
    ["Space", "Enter", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"].includes(event.code) &&
    free
  ) {
    event.preventDefault();
    if (state === "playing") world.hop();
    else play();
  } else if (event.code === "Escape" || event.code === "KeyP") {
    if (state === "paused") play();
    else pause();
  }
});
element("sign-out").addEventListener("click", () => void online(signOutOrSay));
addEventListener("blur", pause);
document.addEventListener("visibilitychange", () => document.hidden && pause());
// A score that the backend does not know is sent when the connection is back. A page from the
// back/forward cache may show a player who has signed out since.
addEventListener("online", () => void online(refresh));
addEventListener("pageshow", (event) => event.persisted && void online(refresh));
// The player signed out or in on another page.
addEventListener("platform:playerchange", () => void online(refresh));

async function signOutOrSay(): Promise<void> {
  try {
    await signOut();
  } catch (error) {
    throw new Offline(error instanceof Error ? error.message : "You could not be signed out.");
  }
}

requestAnimationFrame((now) => frame(now, now));
void online(refresh);
