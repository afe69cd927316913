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

/** Longer frames are shortened: after a delay, the world must not jump. */
const LONGEST_FRAME = 1 / 20;

/** @type {"ready" | "playing" | "paused" | "over" | "stopped"} */
let state = "ready";
/** @type {platform.Player | undefined} */
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

/** Returns whether a key starts the game: Enter or space on the first card,
 * where nothing has the focus yet. A focused link handles its own keys, and
 * later cards focus their button.
 * @param {KeyboardEvent} event */
function isStart(event) {
  const { code, repeat, ctrlKey, metaKey, altKey } = event;
  const focused = document.activeElement;
  const free = focused === document.body || focused === screen.field;
  const key = ["Enter", "NumpadEnter", "Space"].includes(code);
  return key && free && !repeat && !ctrlKey && !metaKey && !altKey;
}

// The game pauses while the player looks at something else.
addEventListener("blur", pause);
document.addEventListener("visibilitychange", () => document.hidden && pause());

new ResizeObserver(() => {
  field = view.fit();
  world.resize(field.width, field.height);
}).observe(screen.field);

// The connection is back: send the unsent score, and find out who plays.
addEventListener("online", refresh);
// A page from the back/forward cache may show a player who has signed out.
addEventListener("pageshow", (event) => event.persisted && refresh());
// The player signed out or in on another page.
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

/** Ends or interrupts a round: keys and pointers have no effect from now on.
 * @param {typeof state} next */
function leavePlay(next) {
  state = next;
  controls.active = false;
  controls.release();
}

/** Sends the round's score, or keeps it in this browser until it can be sent.
 * @param {number} score */
async function keep(score) {
  remember(score, player?.id);
  // If the player is not known yet, `refresh` asks who it is first.
  if (!player) return refresh();
  const { id } = player;
  await online(async () => {
    const after = await sendUnsent(id);
    if (after) showStanding(after);
  });
}

/** Finds out who plays, and shows the player's standing. */
async function refresh() {
  await online(async () => {
    player = await whoPlays();
    screen.showPlayer(player);
    showStanding((await sendUnsent(player.id)) ?? (await standing()));
  });
}

/** Runs an action that needs the backend. Without the backend, the game can
 * still be played. A suspended player only gets the reason: there is no retry
 * and no sign-in.
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
