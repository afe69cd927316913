//! Every reserved path, on a game's own address and on the auth service.

/// The prefix of every path of the platform on a game's address.
pub const PREFIX: &str = "/__platform/";

/// Whether the platform, and not the game, serves this path of a game's address. The path is
/// compared as it is spelled.
#[must_use]
pub fn is_platforms(path: &str) -> bool {
    path.starts_with(PREFIX) || path == "/__platform"
}

/// The runtime script.
pub const RUNTIME_JS: &str = "/__platform/runtime.js";
/// The runtime's source map.
pub const RUNTIME_MAP: &str = "/__platform/runtime.js.map";
/// Which platform an address belongs to, as JSON: on a game's address and on the
/// auth service.
pub const PLATFORM: &str = "/__platform/platform.json";
/// Where the runtime counts a player: `POST`.
pub const HEARTBEAT: &str = "/__platform/heartbeat";
/// Where the runtime sends frontend log records: `POST`.
pub const LOGS: &str = "/__platform/logs";
/// On a pane's address of the Build page: begins a pane's session, `POST` from the console. Before
/// [`TOKEN`], [`SIGN_OUT`], [`LOGIN`] and [`PROFILE`]: what the auth service has for other games.
pub const PANE: &str = "/__platform/pane";
/// On the address of a game on a site of its own: exchanges the game's cookie for a token, `POST`.
pub const GAME_TOKEN: &str = "/__platform/token";
/// There: ends the game's session, `POST`.
pub const GAME_SIGN_OUT: &str = "/__platform/sign-out";
/// There: where the auth service sends a browser with a code; from a frame of another site, `POST`.
pub const GAME_CONTINUE: &str = "/__platform/continue";
/// The page to choose a test user, on a local dev server.
pub const LOCAL_LOGIN: &str = "/__platform/login";
/// Before `<n>`: a test user's token, on a local dev server.
pub const LOCAL_TOKEN_USER: &str = "/__platform/token/user/";
/// Before `<n>`: a test guest's token, on a local dev server.
pub const LOCAL_TOKEN_GUEST: &str = "/__platform/token/guest/";

/// On the auth service: exchanges the cookie for a game token, `POST`.
pub const TOKEN: &str = "/token";
/// On the auth service: the sign-in page.
pub const LOGIN: &str = "/login";
/// On the auth service, before a provider's id: where it sends players back to.
pub const CALLBACK: &str = "/callback/";
/// On the auth service: the player's profile page.
pub const PROFILE: &str = "/profile";
/// On the auth service: ends the session, `POST`.
pub const SIGN_OUT: &str = "/sign-out";
/// On the auth service: hands a visitor to a game on a site of its own.
pub const CONTINUE: &str = "/continue";
/// On the auth service: hands a visitor to the game in a frame that opened this page in a tab.
pub const FRAME: &str = "/frame";
/// On the auth service: the key set (RFC 7517).
pub const JWKS: &str = "/.well-known/jwks.json";
/// On the auth service: its metadata (RFC 8414).
pub const METADATA: &str = "/.well-known/oauth-authorization-server";
/// On the auth service, before a slug: the page that explains a problem.
pub const PROBLEMS: &str = "/problems/";

/// On the console, before a slug: the page of a listed game.
pub const GAME_PAGES: &str = "/games";
/// On the console: the list of a developer's projects. Before a slug: the page that explains how to
/// build that game.
pub const BUILD_PAGES: &str = "/build";
/// On the console, before a slug: the page of a project, and before a slug and one of
/// [`PROJECT_TABS`]: another tab of it.
pub const PROJECT_PAGES: &str = "/projects";
/// The names of a project's tabs in their addresses, except the first tab's, which has none.
pub const PROJECT_TABS: [&str; 5] = ["errors", "logs", "players", "deployments", "settings"];
/// On the console: where an account accepts an invitation, whose secret is the fragment.
pub const INVITATION_PAGE: &str = "/invitations";
/// On the console: administration.
pub const ADMIN_PAGES: &str = "/admin";
/// On the console: how to install the command line. Before a file's name: that file.
pub const CLI_PAGES: &str = "/cli";
/// On the console: the documents. Before a document's name: that document.
pub const DOCUMENT_PAGES: &str = "/docs";

/// In the built `runtime.js`, exactly once: the server replaces it by the platform's settings, a
/// JSON array `["<auth_url>","<platform origin>",<heartbeat seconds>]`.
pub const SETTINGS_PLACEHOLDER: &str = "__PLATFORM_SETTINGS__";
