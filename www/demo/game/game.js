// Firefly: the platform's demo game, and an example to copy.
//
//   game.js      this file: the states of the game and its loop
//   account.js   who plays, and what to do when a call fails
//   scores.js    scores on the backend, and those still to be sent
//   world.js     the rules, free of the page
//   view.js      the canvas
//   controls.js  keyboard, mouse, touch
//   screen.js    everything around the canvas

import { Offline, Suspended, whoPlays } from "./account.js";
import { Controls } from "./controls.js";
import { remember, sendUnsent, standing } from "./scores.js";
import * as screen from "./screen.js";
import { View } from "./view.js";
import { World } from "./world.js";

/** Longer frames are cut: after a hiccup the world must not jump. */
const LONGEST_FRAME = 1 / 20;

/** @type {"ready" | "playing" | "paused" | "over" | "stopped"} */
let state = "ready";
/** @type {import("./account.js").Player | undefined} */
let player;
let best = 0;

const view = new View(screen.field);
let field = view.fit();
let world = new World(field.width, field.height);
const controls = new Controls(screen.field, () => ({
  x: world.fly.x * view.scale,
  y: world.fly.y * view.scale,
}));

screen.playButton.addEventListener("click", () => (state === "paused" ? resume() : begin()));
screen.pauseButton.addEventListener("click", pause);

addEventListener("keydown", (event) => {
  if (state === "ready" && isStart(event)) {
    event.preventDefault();
    begin();
    return;
  }
  if ((event.code === "KeyP" || event.code === "Escape") && !event.repeat) {
    if (state === "playing") pause();
    else if (state === "paused") resume();
  }
});

/** Enter and space start from the first card, where nothing has the focus yet.
 * A link that has it keeps its keys; later cards give it to their button.
 * @param {KeyboardEvent} event */
function isStart(event) {
  const { code, repeat, ctrlKey, metaKey, altKey } = event;
  const focused = document.activeElement;
  const free = focused === document.body || focused === screen.field;
  const key = ["Enter", "NumpadEnter", "Space"].includes(code);
  return key && free && !repeat && !ctrlKey && !metaKey && !altKey;
}

// Who looks elsewhere should not come back to a lost round.
addEventListener("blur", pause);
document.addEventListener("visibilitychange", () => document.hidden && pause());

new ResizeObserver(() => {
  field = view.fit();
  world.resize(field.width, field.height);
}).observe(screen.field);

// The connection is back: send what waited, and see who plays.
addEventListener("online", refresh);
// A page out of the back/forward cache may show a player who signed out since.
addEventListener("pageshow", (event) => event.persisted && refresh());
// The player signed out or in elsewhere.
addEventListener("platform:playerchange", refresh);

/** @type {number | undefined} */
let lastFrame;
requestAnimationFrame(frame);
refresh();

/** @param {number} now milliseconds */
function frame(now) {
  const seconds = Math.min((now - (lastFrame ?? now)) / 1_000, LONGEST_FRAME);
  lastFrame = now;
  if (state === "playing") {
    const events = world.step(seconds, controls.read());
    view.celebrate(events);
    if (events.length) screen.showScore(world.score);
    if (world.over) end();
  }
  view.draw(world, seconds, state === "playing" ? controls.stick : null);
  requestAnimationFrame(frame);
}

function begin() {
  if (state === "stopped") return;
  world = new World(field.width, field.height);
  screen.showScore(0);
  resume();
}

function resume() {
  if (state === "stopped") return;
  state = "playing";
  controls.active = true;
  screen.showNotice("");
  screen.hideCard();
}

function pause() {
  if (state !== "playing") return;
  leavePlay("paused");
  screen.showCard({
    headline: "Paused",
    words: "The meadow waits for you.",
    button: "Go on",
  });
}

function end() {
  leavePlay("over");
  const { score } = world;
  const record = score > best;
  if (record) {
    best = score;
    screen.showBest(best);
  }
  screen.showCard({
    headline: record ? "A new best!" : "Ouch, a thistle",
    words: `You gathered ${score} points.`,
    button: "Play again",
  });
  keep(score);
}

/** Ends or interrupts play: keys and fingers mean nothing from here on.
 * @param {typeof state} next */
function leavePlay(next) {
  state = next;
  controls.active = false;
  controls.release();
}

/** Sends the round's score, or keeps it in this browser until it can be sent.
 * @param {number} score */
async function keep(score) {
  remember(score, player?.sub);
  // Where it is not known yet who plays, that comes first.
  if (!player) return refresh();
  const { sub } = player;
  await online(async () => {
    const after = await sendUnsent(sub);
    if (after) showStanding(after);
  });
}

/** Looks who plays and where they stand. */
async function refresh() {
  await online(async () => {
    player = await whoPlays();
    screen.showPlayer(player);
    showStanding((await sendUnsent(player.sub)) ?? (await standing()));
  });
}

/** Does something that needs the backend. Without an answer the game can be
 * played all the same; a suspended player is told so, and that is all: no
 * retry, no sign-in.
 * @param {() => Promise<void>} action */
async function online(action) {
  if (state === "stopped") return;
  try {
    await action();
    screen.showNotice("");
  } catch (error) {
    if (error instanceof Suspended) {
      leavePlay("stopped");
      screen.showCard({ headline: "You cannot play", words: error.message, button: null });
    } else if (error instanceof Offline) {
      screen.showNotice("Playing offline. Your best score will be sent later.");
      screen.showNoStanding();
    } else {
      throw error;
    }
  }
}

/** @param {import("./scores.js").Standing} after */
function showStanding(after) {
  best = Math.max(best, after.best);
  screen.showBest(best);
  screen.showStanding(after);
}
