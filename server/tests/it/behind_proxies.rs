//! The configurations of `deploy/` for nginx, Caddy and haproxy, each run in front of a server: pages,
//! tokens, log streams, WebSockets and uploads pass through, and no visitor chooses an address.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use platform_server::config::Config;
use platform_server::domain::audit::Actor;
use platform_test_ports::ReservedPort;
use tokio::time::Instant;

use crate::proxy::echo;
use crate::support::{NOW, TestApp};
use crate::tls_visitor::{
    GAMES, NAME, NEVER, Visitor, access_token, certify, cookie_of, host, subject_in,
};

/// A kind of proxy.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Nginx,
    Caddy,
    Haproxy,
}

/// A running proxy with a certificate for the platform.
struct Proxy {
    child: Child,
    visitor: Visitor,
    /// Its files, which are removed with it.
    folder: tempfile::TempDir,
    /// For HTTPS and HTTP.
    _ports: [ReservedPort; 2],
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a file of `deploy/` with the addresses and names of this test.
pub(crate) fn configuration(file: &str, changes: &[(&str, String)]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy")
        .join(file);
    let mut text = std::fs::read_to_string(path).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{file} has no {from}");
        text = text.replace(from, to);
    }
    text
}

/// Returns the changes of haproxy's configuration: the line with both certificates takes the place of that
/// with one, if games are on a site of their own.
fn haproxy_certificates(is_apart: bool) -> [(&'static str, String); 2] {
    let (one, both) = ("    bind :443 ssl crt", "    #bind :443 ssl crt");
    if is_apart {
        [(one, "    #".to_owned()), (both, one.to_owned())]
    } else {
        [(one, one.to_owned()), (both, both.to_owned())]
    }
}

impl Kind {
    /// Returns the command that runs the proxy with its files in `folder`.
    fn command(self, app: &TestApp, folder: &Path, (https, http): (u16, u16)) -> Command {
        let server = app.running.address.to_string();
        let names = ("play.example", NAME.to_owned());
        let games = ("games.example", GAMES.to_owned());
        let keys = ("/etc/ssl/platform", folder.display().to_string());
        let behind = ("127.0.0.1:8787", server);
        let path = |name: &str| folder.join(name);
        let write = |name: &str, text: String| -> PathBuf {
            std::fs::write(path(name), text).unwrap();
            path(name)
        };
        match self {
            Self::Nginx => {
                let site = [
                    names,
                    keys,
                    behind,
                    ("    listen [::]:80;\n", String::new()),
                    ("    listen [::]:443 ssl http2;\n", String::new()),
                    ("listen 80;", format!("listen 127.0.0.1:{http};")),
                    ("listen 443 ssl", format!("listen 127.0.0.1:{https} ssl")),
                ];
                let mut sites = configuration("nginx/platform.conf", &site);
                if is_apart(app) {
                    let [_, keys, _, rest @ ..] = &site;
                    let games = [&[games, keys.clone()][..], rest].concat();
                    sites += &configuration("nginx/games-origin.conf", &games);
                }
                let site = write("site.conf", sites);
                let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
                let temporary: Vec<String> = kinds
                    .map(|kind| format!("{kind}_temp_path {};", path(kind).display()))
                    .into();
                let main = format!(
                    "pid {}; error_log stderr warn; daemon off; master_process off;\n\
                     events {{}}\nhttp {{ access_log off; {} include {}; }}\n",
                    path("pid").display(),
                    temporary.join(" "),
                    site.display()
                );
                let mut command = Command::new("nginx");
                command.arg("-c").arg(write("nginx.conf", main));
                command
            }
            Self::Caddy => {
                let changes = [names, keys.clone(), behind.clone()];
                let mut site = configuration("caddy/Caddyfile", &changes);
                if is_apart(app) {
                    let changes = [games, keys, behind];
                    site += &configuration("caddy/games-origin.Caddyfile", &changes);
                }
                let global = format!(
                    "{{\n\tadmin off\n\thttp_port {http}\n\thttps_port {https}\n\
                     \tdefault_bind 127.0.0.1\n\tstorage file_system {}\n}}\n",
                    path("caddy").display()
                );
                let mut command = Command::new("caddy");
                command.args(["run", "--adapter", "caddyfile", "--config"]);
                command
                    .arg(write("Caddyfile", global + &site))
                    .env("HOME", folder);
                command
            }
            Self::Haproxy => {
                let operations = app.running.operations.unwrap().port();
                let [one, both] = haproxy_certificates(is_apart(app));
                let changes = [
                    one,
                    both,
                    keys,
                    behind,
                    ("port 9090", format!("port {operations}")),
                    ("bind :443", format!("bind 127.0.0.1:{https}")),
                    ("bind :80", format!("bind 127.0.0.1:{http}")),
                ];
                let file = configuration("haproxy/haproxy.cfg", &changes);
                let mut command = Command::new("haproxy");
                command.args(["-db", "-f"]).arg(write("haproxy.cfg", file));
                command
            }
        }
    }

    /// Runs the proxy, and waits until it passes requests on.
    async fn run(self, app: &TestApp) -> Proxy {
        let folder = tempfile::tempdir().unwrap();
        let ports = [(); 2].map(|()| ReservedPort::take().unwrap());
        let [https, http] = &ports;
        let visitor = Visitor {
            https: https.address(),
            http: http.address(),
            client: certify(folder.path()),
        };
        let mut command = self.command(app, folder.path(), (https.number(), http.number()));
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let mut proxy = Proxy {
            child: command.spawn().unwrap(),
            visitor,
            folder,
            _ports: ports,
        };
        let start = Instant::now();
        while start.elapsed() < NEVER && proxy.child.try_wait().unwrap().is_none() {
            // The console's address, which is the same wherever games are.
            if proxy
                .visitor
                .try_ask("GET /", "", "")
                .await
                .is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
            {
                return proxy;
            }
            tokio::task::yield_now().await;
        }
        let log = std::fs::read_to_string(proxy.folder.path().join("log"));
        panic!("{self:?} does not start: {}", log.unwrap_or_default());
    }
}

/// Whether the games of this server are on a site of their own.
fn is_apart(app: &TestApp) -> bool {
    let platform = &app.running.state.platform;
    platform.games_origin != platform.origin
}

/// The settings of a server behind a proxy.
fn behind(config: &mut Config) {
    config.origin = Some(format!("https://{NAME}").parse().unwrap());
    config.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    config.operations_listen = Some("127.0.0.1:0".parse().unwrap());
}

/// The id under which the server has logged a request: that of its proxy, whatever a visitor has sent.
async fn proxy_sets_the_request_id(kind: Kind, visitor: &Visitor, host: &str) {
    let chosen = "X-Request-Id: chosen-by-a-visitor\r\nx-request-id: chosen-twice\r\n";
    let mut seen = Vec::new();
    for _ in 0..2 {
        let answer = visitor.ask("GET /", host, chosen).await.to_lowercase();
        assert!(!answer.contains("chosen"), "{kind:?}: {answer}");
        let id = answer
            .lines()
            .find_map(|line| line.strip_prefix("x-request-id: "));
        let id = id.unwrap().to_owned();
        // The server's own have 22 characters.
        assert!(id.len() >= 32, "{kind:?}: {id}");
        seen.push(id);
    }
    assert_ne!(seen[0], seen[1], "{kind:?}");
}

/// Visits a platform whose games are on a site of their own.
async fn visit_apart(kind: Kind) {
    let app = TestApp::with(|config: &mut Config| {
        behind(config);
        config.games_origin = Some(format!("https://{GAMES}").parse().unwrap());
    })
    .await;
    let proxy = kind.run(&app).await;
    let game = format!("demo.{GAMES}");
    for (host, path) in [
        ("", "/"),
        ("auth", "/.well-known/jwks.json"),
        (game.as_str(), "/__platform/runtime.js"),
    ] {
        let page = proxy.visitor.ask(&format!("GET {path}"), host, "").await;
        assert!(page.starts_with("HTTP/1.1 200"), "{kind:?}: {host}: {page}");
    }
    proxy_sets_the_request_id(kind, &proxy.visitor, &game).await;
    proxy.visitor.is_redirected(&game).await;
    proxy.visitor.is_redirected(&host("auth")).await;
}

/// Plays the demo through a proxy.
async fn play(kind: Kind) {
    let app = TestApp::with(behind).await;
    let proxy = kind.run(&app).await;
    let visitor = &proxy.visitor;
    visitor.opens_pages().await;
    // A player comes back, and has the address that the proxy saw.
    visitor.comes_back().await;
    proxy_sets_the_request_id(kind, visitor, "auth").await;
    let addresses = "SELECT coalesce(group_concat(address), '') FROM players";
    assert!(!app.sql_text(addresses).contains("203.0.113"), "{kind:?}");

    let token = administrator(&app, visitor).await;
    visitor.streams_logs(&token).await;
    visitor.uploads(&token, app.directory.path()).await;
    let backend = echo().await;
    app.set_backend(&format!("http://{backend}"), &["/ws/"])
        .await;
    visitor.echoes_over_a_web_socket().await;
    visitor.is_redirected(&host("demo")).await;
}

/// Makes a visitor an administrator. Returns a token of the console.
async fn administrator(app: &TestApp, visitor: &Visitor) -> String {
    let guest = visitor.token("", "").await;
    let (sub, cookie) = (subject_in(&guest), cookie_of(&guest));
    let id = sub.replace('-', "");
    app.sql(&format!("UPDATE players SET linked = 1 WHERE id = X'{id}'"));
    app.sql(&format!(
        "UPDATE sessions SET authenticated_at = {NOW} WHERE player = X'{id}'"
    ));
    let store = &app.running.state.platform.store;
    let granted = store.grant_admin(sub.parse().unwrap(), Actor::Operator.into(), NOW);
    granted.await.unwrap();
    access_token(&visitor.token("", &cookie).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_is_played_through_nginx() {
    play(Kind::Nginx).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_is_played_through_caddy() {
    play(Kind::Caddy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_is_played_through_haproxy() {
    play(Kind::Haproxy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn games_on_a_site_of_their_own_are_visited_through_nginx() {
    visit_apart(Kind::Nginx).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn games_on_a_site_of_their_own_are_visited_through_caddy() {
    visit_apart(Kind::Caddy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn games_on_a_site_of_their_own_are_visited_through_haproxy() {
    visit_apart(Kind::Haproxy).await;
}

#[test]
fn nginx_passes_requests_to_games_on_as_those_to_the_platform() {
    let location = |file: &str| {
        let text = configuration(file, &[]);
        text[text.find("    location / {").unwrap()..].to_owned()
    };
    let platform = location("nginx/platform.conf");
    assert_eq!(location("nginx/games-origin.conf"), platform);
}
