//! The measured servers, and the requests that are sent to them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use xtask::workspace::Workspace;

use super::process::{Process, Site, cookie};
use super::wrk::{Load, get_script, script};

/// A rate that no load reaches.
const NO_LIMIT: &str = "4000000000/s, burst 4000000000";
/// The settings that switch the limits per network address off.
pub(super) const UNLIMITED: [(&str, &str); 6] = [
    ("PLATFORM_GUESTS_PER_ADDRESS", "0"),
    ("PLATFORM_GUEST_RATE", NO_LIMIT),
    ("PLATFORM_LOG_RATE", NO_LIMIT),
    ("PLATFORM_LOG_RATE_GAME", NO_LIMIT),
    ("PLATFORM_LOG_BYTES_RATE", NO_LIMIT),
    ("PLATFORM_LOG_BYTES_RATE_GAME", NO_LIMIT),
];

/// Settings of a server under measurement; all others have their defaults.
#[derive(Clone, Copy, Default)]
pub(super) struct Settings {
    /// Whether the limits per network address are switched off.
    pub(super) unlimited: bool,
    /// Whether requests that wait too long are refused.
    pub(super) overload: bool,
    /// Whether it counts what it does, for `/metrics`.
    pub(super) metrics: bool,
}

/// The loads that take turns.
pub(super) const CONTENDERS: usize = 8;

/// The running servers and the load for each.
pub(super) struct Contenders {
    /// In the order of the figures: bare with p256, bare with ring, returning, the same with metrics,
    /// new guest, oidc-provider, better-auth, and bare with p256 again.
    pub(super) loads: [Load; CONTENDERS],
    returning: Process,
    /// The head of the returning guest's request, for `paced_load`.
    head: String,
    _others: [Process; 6],
}

impl Contenders {
    /// Starts all of them. Only the one under load has work to do.
    pub(super) fn start(workspace: &Workspace, folder: &Path) -> Result<Self> {
        let example = workspace.binary(true, "examples/bare_sign");
        let bare = Process::start(&mut Command::new(&example))?;
        let bare_ring = Process::start(Command::new(&example).arg("ring"))?;
        let returning = server(workspace, &folder.join("returning"), Settings::default())?;
        let settings = Settings {
            metrics: true,
            ..Settings::default()
        };
        let metered = server(workspace, &folder.join("metered"), settings)?;
        let settings = Settings {
            unlimited: true,
            ..Settings::default()
        };
        let new_guest = server(workspace, &folder.join("new-guest"), settings)?;
        let oidc_provider = of_node(workspace, folder, ("npm", "bench-oidc-provider.mjs"))?;
        let better_auth = of_node(workspace, folder, ("peers", "better-auth.mjs"))?;

        let cookie = visit(&returning)?;
        let metered_cookie = visit(&metered)?;
        let name = "bare signing handler";
        let of_bare = |bare| load(folder, name, bare, "bare", "/token", &script(&[], None));
        let loads = [
            of_bare(&bare)?,
            of_bare(&bare_ring)?,
            load(
                folder,
                "returning guest",
                &returning,
                "returning",
                "/token",
                &token_script(&returning, Some(&cookie)),
            )?,
            load(
                folder,
                "returning guest with metrics",
                &metered,
                "metered",
                "/token",
                &token_script(&metered, Some(&metered_cookie)),
            )?,
            load(
                folder,
                "new guest",
                &new_guest,
                "new-guest",
                "/token",
                &token_script(&new_guest, None),
            )?,
            load(
                folder,
                "oidc-provider",
                &oidc_provider,
                "oidc-provider",
                "/token",
                &client_credentials(),
            )?,
            load(
                folder,
                "better-auth",
                &better_auth,
                "better-auth",
                "/api/auth/token",
                &anonymous_session(&better_auth)?,
            )?,
            of_bare(&bare)?,
        ];
        let head = Self::head(&returning, &cookie);
        Ok(Self {
            loads,
            returning,
            head,
            _others: [
                bare,
                bare_ring,
                metered,
                new_guest,
                oidc_provider,
                better_auth,
            ],
        })
    }

    /// The head of the request of the visitor with `cookie`, for `paced_load`.
    pub(super) fn head(server: &Site, cookie: &str) -> String {
        format!(
            "POST /token HTTP/1.1\\nHost: {}\\nOrigin: http://{}\\nCookie: {cookie}\\nContent-Length: 0",
            server.host("auth"),
            server.host("demo"),
        )
    }

    /// The server of the returning guest, and the head of its request.
    pub(super) fn returning(&self) -> (&Site, &str) {
        (&self.returning, &self.head)
    }
}

/// Starts a release server with its data in `data`.
pub(super) fn server(workspace: &Workspace, data: &Path, settings: Settings) -> Result<Process> {
    let program = workspace.binary(true, "platform-server");
    let mut server = serve(workspace, &program, data)?;
    if settings.unlimited {
        server.envs(UNLIMITED);
    }
    if settings.overload {
        server.env("PLATFORM_OVERLOAD_MILLIS", "20");
    }
    if settings.metrics {
        server.env("PLATFORM_OPERATIONS_LISTEN", "127.0.0.1:0");
    }
    Process::start(&mut server)
}

/// A command that serves with its data in `data`, on a free port.
pub(super) fn serve(workspace: &Workspace, program: &Path, data: &Path) -> Result<Command> {
    std::fs::create_dir_all(data).with_context(|| format!("cannot make {}", data.display()))?;
    let mut server = Command::new(program);
    for setting in &workspace.settings {
        server.env_remove(setting);
    }
    server.arg("serve");
    // Settings for one measurement only.
    let file = data.join("platform.toml");
    if file.exists() {
        server.arg("--config").arg(file);
    }
    server
        .current_dir(data)
        .env("PLATFORM_LISTEN", "127.0.0.1:0")
        .env("PLATFORM_DATA", data)
        .stderr(File::create(data.join("log"))?);
    Ok(server)
}

/// Requests a page of every kind, as a new visitor does, and returns the visitor's cookie.
pub(super) fn visit(server: &Site) -> Result<String> {
    let demo = server.host("demo");
    server.ask("GET", &demo, "/", "")?;
    server.ask(
        "GET",
        &demo,
        "/__platform/runtime.js",
        "Accept-Encoding: br\r\n",
    )?;
    let origin = format!("Origin: http://{demo}\r\n");
    let response = server.ask("POST", &server.host("auth"), "/token", &origin)?;
    ensure!(
        response.contains("\"access_token\""),
        "the token endpoint gave no token"
    );
    Ok(cookie(&response)
        .context("a first visitor got no cookie")?
        .to_owned())
}

/// A game token of the visitor with `cookie`.
pub(super) fn token(server: &Site, cookie: &str) -> Result<String> {
    token_for(server, cookie, &format!("http://{}", server.host("demo")))
}

/// A token of the same visitor for the page at `origin`.
pub(super) fn token_for(server: &Site, cookie: &str, origin: &str) -> Result<String> {
    let headers = format!("Origin: {origin}\r\nCookie: {cookie}\r\n");
    let response = server.ask("POST", &server.host("auth"), "/token", &headers)?;
    let (_, after) = response
        .split_once("\"access_token\":\"")
        .context("the token endpoint gave no token")?;
    let (token, _) = after.split_once('"').context("the token does not end")?;
    Ok(token.to_owned())
}

/// The script of `POST /token`, with a cookie or as a new visitor.
pub(super) fn token_script(server: &Site, cookie: Option<&str>) -> String {
    let (host, origin) = (
        server.host("auth"),
        format!("http://{}", server.host("demo")),
    );
    let mut headers = vec![("Host", host.as_str()), ("Origin", origin.as_str())];
    headers.extend(cookie.map(|cookie| ("Cookie", cookie)));
    script(&headers, None)
}

/// Starts a server of `tests/<package>` that runs in Node.js.
fn of_node(
    workspace: &Workspace,
    folder: &Path,
    (package, program): (&str, &str),
) -> Result<Process> {
    Process::start(
        Command::new("node")
            .arg(program)
            .current_dir(workspace.root.join("tests").join(package))
            .env("NODE_ENV", "production")
            .stderr(File::create(folder.join(format!("{program}.log")))?),
    )
}

/// Signs an anonymous player in at `tests/peers/better-auth.mjs`, and returns the script that asks for
/// tokens in its session.
fn anonymous_session(server: &Site) -> Result<String> {
    let host = server.address.to_string();
    let headers = format!(
        "Content-Type: application/json\r\nOrigin: {}\r\n",
        server.origin
    );
    let response = server.send("POST", &host, "/api/auth/sign-in/anonymous", &headers, "{}")?;
    let cookie = cookie(&response).context("better-auth set no cookie")?;
    Ok(get_script(&[("Host", &host), ("Cookie", cookie)]))
}

/// The client of `tests/npm/bench-oidc-provider.mjs`: its id and its secret
/// are `bench`, in Base64 `YmVuY2g6YmVuY2g=` (RFC 6749 §2.3.1).
fn client_credentials() -> String {
    let headers = [
        ("Authorization", "Basic YmVuY2g6YmVuY2g="),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ];
    script(&headers, Some("grant_type=client_credentials"))
}

/// A load of `path` on a process, its script in a file.
pub(super) fn load(
    folder: &Path,
    name: &'static str,
    of: &Site,
    file: &str,
    path: &str,
    script: &str,
) -> Result<Load> {
    let lua: PathBuf = folder.join(format!("{file}.lua"));
    std::fs::write(&lua, script).with_context(|| format!("cannot write {}", lua.display()))?;
    Ok(Load {
        name,
        url: format!("http://{}{path}", of.address),
        script: lua,
    })
}
