// Every member of the runtime, used as a game may use it. This has to compile
// as it stands.

/** Fails to compile unless both types are the same. */
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(proof: Same<A, B>): void => void proof;

// platform.fetch: the path.
const answer = await platform.fetch("/api/me");
same<typeof answer, Response>(true);
await platform.fetch(new URL("/api/me", location.href));
await platform.fetch(new Request("/api/me"));

// platform.fetch: what else the browser's own takes.
await platform.fetch("/api/me", null);
await platform.fetch("/api/me", undefined);
await platform.fetch("/api/me", {});
await platform.fetch("/api/me", {
  method: "DELETE",
  headers: { Accept: "application/json" },
  signal: AbortSignal.timeout(5_000),
  cache: "no-store",
  keepalive: true,
});
await platform.fetch("/api/me", { headers: new Headers(), signal: null, body: null });
await platform.fetch("/api/me", { headers: [["Accept", "text/plain"]], body: undefined });

// platform.fetch: every body that can be sent twice.
const bodies: platform.FetchBody[] = [
  "text",
  JSON.stringify({ points: 120 }),
  new FormData(),
  new Blob(["bytes"]),
  new File(["bytes"], "save.bin"),
  new URLSearchParams({ points: "120" }),
  new Uint8Array([1, 2, 3]),
  new ArrayBuffer(8),
];
for (const body of bodies) await platform.fetch("/api/score", { method: "POST", body });

// platform.getAccessToken.
const token = await platform.getAccessToken();
same<typeof token, string>(true);
await platform.getAccessToken(null);
await platform.getAccessToken(undefined);
await platform.getAccessToken({});
await platform.getAccessToken({ forceRefresh: true });
await platform.getAccessToken({ forceRefresh: null });
await platform.getAccessToken({ forceRefresh: undefined });
new WebSocket("wss://game.example/live", ["bearer", token]);

// platform.player.
const { id, username, isGuest } = await platform.player();
same<typeof id, string>(true);
same<typeof username, string>(true);
same<typeof isGuest, boolean>(true);
const known: platform.Player = await platform.player();
void known;

// platform.loginUrl and platform.profileUrl answer at once.
for (const address of [platform.loginUrl, platform.profileUrl]) {
  const url = address();
  same<typeof url, string>(true);
  location.href = address(null);
  location.href = address(undefined);
  location.assign(address("/level/3"));
  location.replace(address(new URL(location.href)));
}

// platform.signOut.
const gone = platform.signOut();
same<typeof gone, Promise<void>>(true);
await platform.signOut(null);
await platform.signOut("/bye");
await platform.signOut(new URL("/bye", location.href));

// platform.reportError: a message, and anything that JSON can say.
const reported = platform.reportError("the save file is unreadable");
same<typeof reported, Promise<void>>(true);
void platform.reportError("slot", null);
void platform.reportError("slot", undefined);
void platform.reportError("slot", 3);
void platform.reportError("slot", "three");
void platform.reportError("slot", [1, "two", true, null, { deep: [[]] }]);
const nested = { slot: 3, tags: ["a", "b"], player: { level: 4, guild: null } } as const;
void platform.reportError("slot", nested);
void platform.reportError("slot", { ...nested, missing: undefined });
interface Save {
  slot: number;
  name: string;
}
const save: Save = { slot: 3, name: "autumn" };
void platform.reportError("slot", { ...save });
void platform.reportError("slot", save);
interface World {
  saves: readonly Save[];
  best?: Save | null;
}
void platform.reportError("world", { world: { saves: [save] } satisfies World });
declare const world: World;
void platform.reportError("world", world);
declare const anything: platform.Json;
void platform.reportError("anything", anything);

// platform.PlatformError: told from other errors, and read.
try {
  await platform.fetch("/api/me");
} catch (error) {
  if (!(error instanceof platform.PlatformError)) throw error;
  const { status, message, type, requestId, name } = error;
  same<typeof status, number>(true);
  same<typeof message, string>(true);
  same<typeof type, string>(true);
  same<typeof requestId, string>(true);
  same<typeof name, "PlatformError">(true);
  const asError: Error = error;
  void platform.reportError(asError.message, { status, type, requestId });
  const known: boolean = error.is("session-expired");
  const own: boolean = error.is("out-of-coins");
  if (known || own) location.href = platform.loginUrl();
}

// The event that tells of another player, in the window's own types.
window.addEventListener("platform:playerchange", (event) => {
  const kind: string = event.type;
  void platform.reportError(kind);
});

// As a type, in a function of the game's own.
const explain = (error: platform.PlatformError): string => {
  const problems: platform.Problem[] = [
    "guest-limit-reached",
    "runtime-unavailable",
    "unsupported-context",
  ];
  return problems.some((problem) => error.is(problem)) ? error.message : "";
};

// platform.version.
const version: string = platform.version;

// From modules by way of the global object, and handed on.
await globalThis.platform.fetch("/api/me");
await window.platform.getAccessToken();
const handed: Platform = globalThis.platform;
const stub: Pick<Platform, "fetch" | "loginUrl"> = {
  fetch: async (path, init) => new Response(`${String(path)} ${init?.method ?? "GET"}`),
  loginUrl: (redirect) => `/login?redirect=${String(redirect ?? "")}`,
};

// Where the page may lack the runtime, as when it is opened by other means.
const maybe = "platform" in globalThis ? globalThis.platform : null;
maybe?.reportError("there");

// In place of the runtime, where a unit test runs outside of a page.
globalThis.platform = { ...handed, ...stub };

export { explain, handed, stub, version };
