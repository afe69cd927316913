// The game's backend.
//
//   GET  /api/me      { sub, username, is_anon, best }
//   POST /api/score   { score } → { best }
//
// AUTH_ISSUER, AUTH_AUDIENCE and AUTH_JWKS_URL come from the platform (locally
// from `npm run dev`), PORT and SCORES are yours to set.

import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { type Player, requirePlayer } from "./auth.ts";
import { problem } from "./problem.ts";
import { Scores } from "./scores.ts";

/** Nobody can gather more, so a higher score is invented. */
const MOST = 100_000;

const scores = await Scores.open(process.env.SCORES || "scores.json");
const app = new Hono<{ Variables: { player: Player } }>();

app.use(
  "/api/*",
  requirePlayer(),
  bodyLimit({
    maxSize: 1_024,
    onError: () =>
      problem(413, "payload-too-large", "Too large", "That is more than the game takes."),
  }),
);

app.get("/api/me", (context) => {
  const { sub, username, is_anon } = context.var.player;
  return context.json({ sub, username, is_anon, best: scores.best(sub) });
});

app.post("/api/score", async (context) => {
  const body: unknown = await context.req.json().catch(() => null);
  const score = typeof body === "object" && body !== null && "score" in body ? body.score : null;
  if (typeof score !== "number" || !Number.isSafeInteger(score) || score < 0 || score > MOST) {
    return problem(400, "invalid-request", "Invalid request", "The score must be a whole number.");
  }
  return context.json({ best: await scores.raise(context.var.player.sub, score) });
});

app.notFound(() => problem(404, "not-found", "Not found", "There is nothing here."));
app.onError((error) => {
  // The cause is written to the log, and not shown to the player.
  console.error(error);
  return problem(500, "internal", "Internal error", "Something went wrong. Try again in a moment.");
});

const port = Number(process.env.PORT || 8788);
const server = serve({ fetch: app.fetch, port, hostname: process.env.HOST || "127.0.0.1" }, () => {
  console.log(`The backend listens on port ${port} for ${process.env.AUTH_AUDIENCE}.`);
});
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    server.close(() => process.exit());
    if ("closeIdleConnections" in server) server.closeIdleConnections();
  });
}
