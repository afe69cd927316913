// What a game may not do. Each comment says that the next line must fail to
// compile: a line that compiles is itself an error.

// platform.fetch
// @ts-expect-error A path is not optional.
platform.fetch();
// @ts-expect-error A number is no path.
platform.fetch(42);
// @ts-expect-error Without a path there is nothing to call.
platform.fetch(null);
// @ts-expect-error A stream cannot be sent twice.
platform.fetch("/api", { method: "POST", body: new ReadableStream() });
// @ts-expect-error An object is no body: it wants JSON.stringify.
platform.fetch("/api", { method: "POST", body: { points: 120 } });
// @ts-expect-error The member is called headers.
platform.fetch("/api", { header: { Accept: "text/plain" } });
// @ts-expect-error The answer is promised, not there.
platform.fetch("/api").status;
// @ts-expect-error A string is no set of options.
platform.fetch("/api", "POST");

// platform.getAccessToken
// @ts-expect-error A flag alone is no options.
platform.getAccessToken(true);
// @ts-expect-error The option is a boolean.
platform.getAccessToken({ forceRefresh: "yes" });
// @ts-expect-error The option is spelled otherwise.
platform.getAccessToken({ force: true });
// @ts-expect-error The token is promised, not there.
const token: string = platform.getAccessToken();

// platform.player
// @ts-expect-error The player is promised, not there.
platform.player().username;
// @ts-expect-error Nobody changes who plays.
(await platform.player()).username = "me";
// @ts-expect-error The token calls it sub, the page calls it id.
(await platform.player()).sub;

// platform.loginUrl, platform.profileUrl
// @ts-expect-error The page to return to is an address.
platform.loginUrl({ redirect: "/level/3" });
// @ts-expect-error The address is a string, not a promise.
platform.loginUrl().then((url: string) => location.assign(url));
// @ts-expect-error The page to return to is an address.
platform.profileUrl(3);

// platform.signOut
// @ts-expect-error The page to go to is an address.
platform.signOut({ redirect: "/" });
// @ts-expect-error It resolves with nothing.
const gone: string = await platform.signOut();

// platform.reportError
// @ts-expect-error A message is not optional.
platform.reportError();
// @ts-expect-error An error is no message: it wants its own message.
platform.reportError(new Error("broken"));
// @ts-expect-error JSON has no functions.
platform.reportError("broken", { retry: () => {} });
// @ts-expect-error JSON has no BigInt.
platform.reportError("broken", { points: 120n });
// @ts-expect-error JSON has no symbols.
platform.reportError("broken", [Symbol("a")]);
interface Retry {
  retry: () => void;
}
declare const retry: Retry;
// @ts-expect-error JSON has no functions, also in an interface.
platform.reportError("broken", { retry });
// @ts-expect-error JSON has no maps.
platform.reportError("broken", new Map([["slot", 3]]));

// platform.PlatformError
// @ts-expect-error It is not for games to make.
new platform.PlatformError(401, "no", "session-expired", "");
// @ts-expect-error Nor to derive from.
class OwnError extends platform.PlatformError {}
// @ts-expect-error It is no global of its own.
PlatformError;
declare const error: platform.PlatformError;
// @ts-expect-error The status is a number.
const status: string = error.status;
// @ts-expect-error It is read only.
error.status = 200;
// @ts-expect-error It is read only.
error.message = "fine";
// @ts-expect-error The slug is not optional.
error.is();
// @ts-expect-error A status is no slug.
error.is(401);
// @ts-expect-error The body's detail is the message.
error.detail;
// @ts-expect-error The member is spelled otherwise.
error.request_id;
// @ts-expect-error The platform has no such problem.
const problem: platform.Problem = "sesion-expired";

// platform itself
// @ts-expect-error It is frozen.
platform.fetch = platform.fetch;
// @ts-expect-error It is frozen.
platform.version = "2";
// @ts-expect-error It is frozen.
globalThis.platform.getAccessToken = platform.getAccessToken;
// @ts-expect-error It is frozen.
delete platform.reportError;
// @ts-expect-error Half of it is not the platform.
globalThis.platform = { fetch: platform.fetch };
// @ts-expect-error The version is a string.
const version: number = platform.version;
// @ts-expect-error There is no such member.
platform.user;
// @ts-expect-error It is no function.
platform();
// @ts-expect-error It is no module to import from.
import { fetch as platformFetch } from "platform";

export { OwnError, gone, platformFetch, problem, status, token, version };
