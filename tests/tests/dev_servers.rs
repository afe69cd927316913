//! The dev servers of the documents: each responds on the four paths, and the page shows exactly
//! the tested files.

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use platform_test_ports::ReservedPort;
use platform_tests::process::{self, Guarded};
use platform_tests::template::Tool;
use platform_tests::{npm, poll, raw, settings};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;

const RUNTIME: &str = "/* the runtime */";
const PAGE: &str = "<!doctype html><title>Game</title>";

fn documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/dev-server")
}

/// A game's folder, with a tool that knows test user 3 and test guest 10.
struct Game {
    folder: TempDir,
    tool: Tool,
}

impl Game {
    fn new() -> Self {
        let folder = TempDir::with_prefix("platform-tests-").unwrap();
        std::fs::create_dir_all(folder.path().join("dist")).unwrap();
        std::fs::write(folder.path().join("dist/index.html"), PAGE).unwrap();
        std::fs::create_dir_all(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/main.js"), "").unwrap();
        let tool = Tool::make(&folder.path().join("tool"));
        tool.prints("runtime", RUNTIME);
        tool.prints("user-3", r#"{"access_token":"of-user-3"}"#);
        tool.prints("guest-10", r#"{"access_token":"of-guest-10"}"#);
        tool.prints("user-2", &relayed().to_string());
        tool.fails("user-2", 1, "");
        tool.fails("user-4", 3, "error: not signed in");
        tool.prints("user-5", "");
        tool.fails("user-5", 1, "error: the platform is away");
        Self { folder, tool }
    }

    /// Starts `command`, which receives `port`, and waits until it listens there.
    async fn start(&self, mut command: Command, port: u16) -> Guarded {
        command
            .current_dir(self.folder.path())
            .env("PATH", self.tool.path())
            .env("HOME", self.folder.path())
            .env("PORT", port.to_string())
            .env("FOLDER", self.folder.path().join("dist"))
            .stdout(Stdio::null());
        let server = Guarded::start(&mut command);
        poll::until("the dev server", async || {
            Client::new().get(url(port)).send().await.ok()
        })
        .await;
        server
    }

    /// Starts `command` on a port of its own, and tests every path.
    async fn judge(&self, command: Command) {
        let reserved = ReservedPort::take().unwrap();
        let port = reserved.number();
        let _server = self.start(command, port).await;
        judge(port).await;
        for host in ["[::1]:5173", "192.168.1.20", "LOCALHOST"] {
            assert_eq!(login_as(port, host).await.0, 200, "{host}");
        }
    }

    /// Starts `command` on a port of its own, which forwards to a small server, and tests every path. The
    /// file `name` of the documents is in the game's folder with these ports.
    async fn judge_front(&self, name: &str, command: Command) {
        let ports = [(); 2].map(|()| ReservedPort::take().unwrap());
        let [front, behind] = ports.each_ref().map(ReservedPort::number);
        let text = std::fs::read_to_string(documents().join(name)).unwrap();
        let text = text
            .replace("5173", &front.to_string())
            .replace("5174", &behind.to_string());
        let name = Path::new(name).file_name().unwrap();
        std::fs::write(self.folder.path().join(name), text).unwrap();
        // A server that is started by root reads files as the user `nobody`.
        let readable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.folder.path(), readable).unwrap();
        let _behind = self.start(python(), behind).await;
        let _front = self.start(command, front).await;
        judge(front).await;
        let (_, _, body) = ask_as(front, "/", "evil.example").await;
        assert_ne!(body, PAGE, "the front refuses by itself");
    }
}

impl Drop for Game {
    fn drop(&mut self) {
        // Processes that the command has started.
        process::kill_users_of(self.folder.path());
    }
}

/// A problem as the platform responds.
fn relayed() -> Value {
    json!({ "type": "http://auth.x/problems/not-deployed", "title": "Not deployed",
        "status": 409, "detail": "Deploy the game once.", "request_id": "r-7" })
}

/// Sends a request and returns status, media type and body.
async fn ask(method: Method, url: String, site: Option<&str>) -> (u16, String, String) {
    match site {
        Some(site) => send(method, url, &[("sec-fetch-site", site)]).await,
        None => send(method, url, &[]).await,
    }
}

/// Sends a request with headers and returns status, media type and body.
async fn send(method: Method, url: String, headers: &[(&str, &str)]) -> (u16, String, String) {
    let mut request = Client::new().request(method, url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    let kind = answer.headers().get("content-type");
    let kind = kind.map_or("", |kind| kind.to_str().unwrap()).to_owned();
    (answer.status().as_u16(), kind, answer.text().await.unwrap())
}

fn url(port: u16) -> String {
    format!("http://localhost:{port}")
}

/// Sends `GET` of a path with the `Host` `host`.
async fn ask_as(port: u16, path: &str, host: &str) -> (u16, String, String) {
    let headers = [("host", host)];
    send(Method::GET, format!("{}{path}", url(port)), &headers).await
}

async fn login_as(port: u16, host: &str) -> (u16, String, String) {
    ask_as(port, "/__platform/login", host).await
}

/// Asserts that this is a refusal with a problem.
#[track_caller]
fn assert_refused((status, kind, body): (u16, String, String), whom: &str) {
    assert_eq!(status, 403, "{whom}: {body}");
    assert_eq!(kind, "application/problem+json", "{whom}");
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["status"], 403, "{whom}: {body}");
    assert!(body["detail"].is_string(), "{whom}: {body}");
}

/// Tests everything about one server.
async fn judge(port: u16) {
    four_paths(&url(port)).await;
    only_names_of_this_machine(port).await;
    only_the_games_own_page(port).await;
    odd_addresses(port).await;
}

async fn only_names_of_this_machine(port: u16) {
    for name in ["localhost", "my-game.localhost", "127.0.0.1"] {
        for host in [name.to_owned(), format!("{name}:{port}")] {
            assert_eq!(login_as(port, &host).await.0, 200, "{host}");
        }
    }
    for name in [
        "evil.example",
        "localhost.evil.example",
        "evillocalhost",
        "127.0.0.1.evil.example",
    ] {
        for host in [name.to_owned(), format!("{name}:{port}")] {
            assert_refused(login_as(port, &host).await, &host);
            let script = ask_as(port, "/__platform/runtime.js", &host).await;
            assert_refused(script, &host);
            // A page whose name resolves to this machine: the browser treats it as the game.
            let own = format!("http://{host}");
            let headers = [
                ("host", host.as_str()),
                ("origin", &own),
                ("sec-fetch-site", "same-origin"),
            ];
            let token = format!("{}/__platform/token/user/3", url(port));
            assert_refused(send(Method::POST, token, &headers).await, &host);
        }
    }
}

async fn only_the_games_own_page(port: u16) {
    let own = url(port);
    let post = async |headers: &[(&str, &str)]| {
        send(
            Method::POST,
            format!("{own}/__platform/token/user/3"),
            headers,
        )
        .await
    };
    for site in ["cross-site", "same-site", "none"] {
        let headers = [("sec-fetch-site", site), ("origin", &own)];
        assert_refused(post(&headers).await, site);
    }
    // Browsers that do not send `Sec-Fetch-Site`.
    let other_port = url(port ^ 1);
    for origin in [
        &other_port,
        "http://localhost",
        "http://evil.example",
        "null",
    ] {
        assert_refused(post(&[("origin", origin)]).await, origin);
        let headers = [("origin", origin), ("sec-fetch-site", "same-origin")];
        assert_refused(post(&headers).await, origin);
    }
    assert_eq!(post(&[("origin", &own)]).await.0, 200);
    assert_eq!(post(&[]).await.0, 200);
}

/// Invalid addresses are refused, and stop nothing.
async fn odd_addresses(port: u16) {
    for target in ["//[", "http://[", "/%"] {
        let answer = raw::get(port, target).await;
        assert!(answer.starts_with("HTTP/1."), "{target}: {answer}");
        assert_eq!(answer.get(9..10), Some("4"), "{target}: {answer}");
    }
    assert_eq!(login_as(port, "localhost").await.0, 200);
}

async fn four_paths(url: &str) {
    let get = async |path: &str| ask(Method::GET, format!("{url}{path}"), None).await;
    let post = async |path: &str| {
        let url = format!("{url}/__platform/token/{path}");
        ask(Method::POST, url, Some("same-origin")).await
    };
    let (status, kind, body) = get("/__platform/runtime.js").await;
    assert_eq!((status, body.as_str()), (200, RUNTIME));
    assert_eq!(kind, "text/javascript; charset=utf-8");
    let (status, kind, body) = get("/__platform/login?redirect=/").await;
    assert_eq!((status, kind.as_str()), (200, "text/html; charset=utf-8"));
    assert!(body.contains(r#"<script defer src="/__platform/runtime.js"></script>"#));
    assert_eq!(get("/").await.2, PAGE);

    for (path, token) in [("user/3", "of-user-3"), ("guest/10", "of-guest-10")] {
        let (status, kind, body) = post(path).await;
        assert_eq!((status, kind.as_str()), (200, "application/json"), "{body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["access_token"], token);
    }
    for (path, expected, detail) in [
        ("user/2", 409, "Deploy the game once."),
        ("user/4", 401, "platform login"),
        ("user/5", 502, "the platform is away"),
    ] {
        let (status, kind, body) = post(path).await;
        assert_eq!(
            (status, kind.as_str()),
            (expected, "application/problem+json")
        );
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["status"], expected);
        assert!(body["detail"].as_str().unwrap().contains(detail), "{body}");
        if expected == 409 {
            assert_eq!(body, relayed(), "as it came");
        }
    }
    for path in [
        "user/0", "user/11", "user/03", "guest/", "user/3/", "user/3;x", "other/3",
    ] {
        assert_eq!(post(path).await.0, 404, "{path}");
    }
    assert_eq!(get("/__platform/token/user/3").await.0, 404);
    assert_eq!(get("/__platform/other").await.0, 404);
}

fn node() -> Command {
    Command::new(settings::program("NODE", &["node"]))
}

#[tokio::test]
async fn a_server_on_node_alone_answers_the_four_paths() {
    let mut command = node();
    command.arg(documents().join("node/server.js"));
    Game::new().judge(command).await;
}

#[tokio::test]
async fn a_server_on_express_answers_the_four_paths() {
    let folder = npm::packages("../docs/dev-server/node").await;
    let mut command = node();
    command.arg(folder.join("express.js"));
    Game::new().judge(command).await;
}

#[tokio::test]
async fn a_webpack_dev_server_answers_the_four_paths() {
    let folder = npm::packages("../docs/dev-server/node").await;
    let game = Game::new();
    let mut command = node();
    command
        .arg(folder.join("node_modules/webpack-cli/bin/cli.js"))
        .arg("serve")
        .arg("--config")
        .arg(folder.join("webpack.config.js"));
    game.judge(command).await;
}

fn python() -> Command {
    let mut command = Command::new(settings::program("PYTHON", &["python3"]));
    command
        .arg(documents().join("python/server.py"))
        .stderr(Stdio::null());
    command
}

#[tokio::test]
async fn a_server_on_python_alone_answers_the_four_paths() {
    Game::new().judge(python()).await;
}

#[tokio::test]
async fn a_caddy_before_a_small_server_answers_the_four_paths() {
    let game = Game::new();
    let mut command = Command::new(settings::program("CADDY", &["caddy"]));
    command.arg("run").stderr(Stdio::null());
    game.judge_front("caddy/Caddyfile", command).await;
}

#[tokio::test]
async fn an_nginx_before_a_small_server_answers_the_four_paths() {
    let game = Game::new();
    let mut command = Command::new(settings::program("NGINX", &["nginx"]));
    // One process: workers would outlive a killed master process.
    command
        .arg("-p")
        .arg(game.folder.path())
        .args(["-c", "nginx.conf", "-g", "daemon off; master_process off;"])
        .stderr(Stdio::null());
    game.judge_front("nginx/nginx.conf", command).await;
}

/// Settings under which Vite itself refuses no name.
const OPEN_VITE: &str = r#"
import platform from "./platform.js";
const server = { host: "127.0.0.1", strictPort: true, allowedHosts: true };
export default { root: "dist", server: { ...server, port: Number(process.env.PORT) },
  plugins: [platform({ hosts: ["Game.test"] })] };
"#;

#[tokio::test]
async fn the_plugin_for_vite_checks_the_host_itself() {
    let vite = npm::packages("foreign-games").await;
    let game = Game::new();
    let plugin = documents().join("../../template/dev/vite-plugin-platform.js");
    let folder = game.folder.path();
    std::fs::write(folder.join("package.json"), r#"{ "type": "module" }"#).unwrap();
    std::fs::write(folder.join("vite.config.js"), OPEN_VITE).unwrap();
    std::fs::copy(plugin, folder.join("platform.js")).unwrap();
    let mut command = node();
    command
        .arg(vite.join("node_modules/vite/bin/vite.js"))
        .args(["--config", "vite.config.js"]);
    let reserved = ReservedPort::take().unwrap();
    let port = reserved.number();
    let _server = game.start(command, port).await;
    let (_, _, page) = ask_as(port, "/", "evil.example").await;
    assert!(page.contains("<title>Game"), "Vite lets every name in");
    only_names_of_this_machine(port).await;
    only_the_games_own_page(port).await;
    let hosts = include_str!("../local_hosts.json");
    let hosts: BTreeMap<String, Vec<String>> = serde_json::from_str(hosts).unwrap();
    for host in &hosts["local"] {
        assert_eq!(login_as(port, host).await.0, 200, "{host}");
    }
    for host in &hosts["others"] {
        assert_refused(login_as(port, host).await, host);
    }
    assert_eq!(login_as(port, "game.test:5173").await.0, 200);
    let script = raw::get(port, "http://localhost/__platform/runtime.js").await;
    assert_eq!(script.get(9..12), Some("400"), "{script}");
}

#[test]
fn the_page_shows_each_server_as_it_is() {
    let page = std::fs::read_to_string(documents().join("../dev-server.md")).unwrap();
    for (language, file) in [
        ("js", "node/platform.js"),
        ("js", "node/server.js"),
        ("js", "node/express.js"),
        ("js", "node/webpack.config.js"),
        ("python", "python/server.py"),
        ("caddy", "caddy/Caddyfile"),
        ("nginx", "nginx/nginx.conf"),
    ] {
        let text = std::fs::read_to_string(documents().join(file)).unwrap();
        assert!(
            page.contains(&format!("```{language}\n{text}```\n")),
            "docs/dev-server.md shows another {file}"
        );
    }
}
