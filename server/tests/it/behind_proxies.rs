//! The configurations of `deploy/` for nginx, Caddy and haproxy, each run in front of a server: pages,
//! tokens, log streams, WebSockets and uploads pass through, and no visitor chooses an address.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use platform_server::config::Config;
use platform_server::domain::audit::Actor;
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::program::subject;
use crate::proxy::echo;
use crate::support::{NOW, TestApp};

/// Much longer than anything here takes; reaching it is a failure.
const NEVER: Duration = Duration::from_secs(60);
/// The platform's name, where `deploy/` says `play.example`.
const NAME: &str = "platform.localhost";
/// The name of games on a site of their own, where `deploy/` says `games.example`.
const GAMES: &str = "games.localhost";

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
    https: u16,
    http: u16,
    client: TlsConnector,
    /// Its files, which are removed with it.
    folder: tempfile::TempDir,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

/// Returns a file of `deploy/` with the addresses and names of this test.
fn configuration(file: &str, changes: &[(&str, String)]) -> String {
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

/// Writes certificates for the platform and for games on a site of their own, their keys, and both in one
/// file. Returns the client that trusts them.
fn certify(folder: &Path) -> TlsConnector {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    for (name, [chain_file, key_file, both]) in [
        (NAME, ["fullchain.pem", "key.pem", "all.pem"]),
        (GAMES, ["games-fullchain.pem", "games-key.pem", "games.pem"]),
    ] {
        let key = KeyPair::generate().unwrap();
        let names = vec![name.to_owned(), format!("*.{name}")];
        let certificate = CertificateParams::new(names).unwrap();
        let certificate = certificate.signed_by(&key, &authority).unwrap();
        let (chain, key) = (certificate.pem(), key.serialize_pem());
        std::fs::write(folder.join(chain_file), &chain).unwrap();
        std::fs::write(folder.join(key_file), &key).unwrap();
        std::fs::write(folder.join(both), chain + &key).unwrap();
    }
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
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
        let start = Instant::now();
        loop {
            assert!(start.elapsed() < NEVER, "{self:?} does not start");
            let folder = tempfile::tempdir().unwrap();
            let client = certify(folder.path());
            let ports = (free_port(), free_port());
            let mut command = self.command(app, folder.path(), ports);
            let log = std::fs::File::create(folder.path().join("log")).unwrap();
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log);
            let child = command.spawn().unwrap();
            let mut proxy = Proxy {
                child,
                https: ports.0,
                http: ports.1,
                client,
                folder,
            };
            // Somebody else may take a port before the proxy does; then it ends.
            while start.elapsed() < NEVER && proxy.child.try_wait().unwrap().is_none() {
                // The console's address, which is the same wherever games are.
                if proxy
                    .try_ask("GET /", "", "")
                    .await
                    .is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
                {
                    return proxy;
                }
                tokio::task::yield_now().await;
            }
            let log = std::fs::read_to_string(proxy.folder.path().join("log"));
            eprintln!("{self:?} ended: {}", log.unwrap_or_default());
        }
    }
}

/// Whether the games of this server are on a site of their own.
fn is_apart(app: &TestApp) -> bool {
    let platform = &app.running.state.platform;
    platform.games_origin != platform.origin
}

/// Returns the host of an address of the platform. A whole name is taken as it is.
fn host(label: &str) -> String {
    match label {
        "" => NAME.to_owned(),
        name if name.contains('.') => name.to_owned(),
        label => format!("{label}.{NAME}"),
    }
}

impl Proxy {
    async fn connect(&self, label: &str) -> Option<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(("127.0.0.1", self.https)).await.ok()?;
        let name = ServerName::try_from(host(label)).unwrap();
        self.client.connect(name, stream).await.ok()
    }

    async fn try_ask(&self, request: &str, label: &str, rest: &str) -> Option<String> {
        let mut stream = self.connect(label).await?;
        let host = host(label);
        let end = if rest.contains("\r\n\r\n") {
            ""
        } else {
            "\r\n"
        };
        let head =
            format!("{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{rest}{end}");
        stream.write_all(head.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        // Some do not end the connection as TLS wants it.
        let _ = tokio::time::timeout(NEVER, stream.read_to_end(&mut answer)).await;
        Some(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Sends a request, and returns the whole response as text.
    async fn ask(&self, request: &str, label: &str, rest: &str) -> String {
        self.try_ask(request, label, rest).await.unwrap()
    }

    async fn post(&self, path: &str, label: &str, headers: &str, body: &Value) -> String {
        let body = body.to_string();
        let rest = format!(
            "{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.ask(&format!("POST {path}"), label, &rest).await
    }

    /// Asks for a token at this origin.
    async fn token(&self, label: &str, cookie: &str) -> String {
        let origin = format!("Origin: https://{}\r\n", host(label));
        let forged = "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: http\r\n";
        let rest = format!("{origin}{cookie}{forged}Content-Length: 0\r\n");
        self.ask("POST /token", "auth", &rest).await
    }
}

/// Returns the access token in a response.
fn access_token(answer: &str) -> String {
    let (_, rest) = answer
        .split_once("\"access_token\":\"")
        .unwrap_or_else(|| panic!("{answer}"));
    rest.split('"').next().unwrap().to_owned()
}

/// Returns the header with the cookie that a response sets.
fn cookie_of(answer: &str) -> String {
    let lines = answer.lines();
    let mut cookies = lines.filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        (name.eq_ignore_ascii_case("set-cookie") && value.contains("platform-session="))
            .then(|| value.split(';').next().unwrap())
    });
    format!(
        "Cookie: {}\r\n",
        cookies.next().unwrap_or_else(|| panic!("{answer}"))
    )
}

/// The settings of a server behind a proxy.
fn behind(config: &mut Config) {
    config.origin = Some(format!("https://{NAME}").parse().unwrap());
    config.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    config.operations_listen = Some("127.0.0.1:0".parse().unwrap());
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
        let page = proxy.ask(&format!("GET {path}"), host, "").await;
        assert!(page.starts_with("HTTP/1.1 200"), "{kind:?}: {host}: {page}");
    }
    redirects(kind, &proxy, &game).await;
    redirects(kind, &proxy, &host("auth")).await;
}

/// Plays the demo through a proxy.
async fn play(kind: Kind) {
    let app = TestApp::with(behind).await;
    let proxy = kind.run(&app).await;
    for (label, path) in [("", "/"), ("auth", "/.well-known/jwks.json"), ("demo", "/")] {
        let page = proxy.ask(&format!("GET {path}"), label, "").await;
        assert!(page.starts_with("HTTP/1.1 200"), "{kind:?}: {page}");
    }
    let runtime = proxy.ask("GET /__platform/runtime.js", "demo", "").await;
    assert!(
        runtime.contains("200") && runtime.len() > 1_000,
        "{kind:?}: {runtime}"
    );

    // A player comes back, and has the address that the proxy saw.
    let first = proxy.token("demo", "").await;
    assert!(
        first.contains("__Host-platform-session="),
        "{kind:?}: {first}"
    );
    let again = proxy.token("demo", &cookie_of(&first)).await;
    assert_eq!(subject_in(&again), subject_in(&first), "{kind:?}");
    let addresses = "SELECT coalesce(group_concat(address), '') FROM players";
    assert!(!app.sql_text(addresses).contains("203.0.113"), "{kind:?}");

    let token = administrator(&app, &proxy).await;
    stream_logs(kind, &proxy, &token).await;
    upload(kind, &app, &proxy, &token).await;
    echo_over_a_web_socket(kind, &app, &proxy).await;
    redirects(kind, &proxy, &host("demo")).await;
}

/// Returns `sub` of the token in a response, whose body may be in chunks.
fn subject_in(answer: &str) -> String {
    subject(&format!(
        "\r\n\r\n{{\"access_token\":\"{}\"}}",
        access_token(answer)
    ))
}

/// Returns the console token of an administrator.
async fn administrator(app: &TestApp, proxy: &Proxy) -> String {
    let guest = proxy.token("", "").await;
    let (sub, cookie) = (subject_in(&guest), cookie_of(&guest));
    let id = sub.replace('-', "");
    app.sql(&format!("UPDATE players SET linked = 1 WHERE id = X'{id}'"));
    app.sql(&format!(
        "UPDATE sessions SET authenticated_at = {NOW} WHERE player = X'{id}'"
    ));
    let store = &app.running.state.platform.store;
    let granted = store.grant_admin(sub.parse().unwrap(), Actor::Operator.into(), NOW);
    granted.await.unwrap();
    access_token(&proxy.token("", &cookie).await)
}

/// A log stream shows a record as soon as a page has sent it.
async fn stream_logs(kind: Kind, proxy: &Proxy, token: &str) {
    let mut stream = proxy.connect("").await.unwrap();
    let request = format!(
        "GET /api/projects/demo/logs/stream?env=prod HTTP/1.1\r\nHost: {NAME}\r\n\
         Authorization: Bearer {token}\r\nAccept: text/event-stream\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut shown = String::new();
    read_until(&mut stream, &mut shown, "text/event-stream").await;
    let record = json!({"time": NOW, "level": "info", "source": "console", "message": "I am here"});
    let records = json!({"page": "AAAAAAAAAAAAAAAAAAAAAA", "records": [record]});
    let sent = proxy.post("/__platform/logs", "demo", "", &records).await;
    assert!(sent.starts_with("HTTP/1.1 204"), "{kind:?}: {sent}");
    read_until(&mut stream, &mut shown, "I am here").await;
}

async fn read_until(stream: &mut TlsStream<TcpStream>, shown: &mut String, text: &str) {
    let reading = async {
        let mut piece = [0; 4_096];
        while !shown.contains(text) {
            let read = stream.read(&mut piece).await.unwrap();
            assert_ne!(read, 0, "the stream ended: {shown}");
            shown.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    };
    let read = tokio::time::timeout(NEVER, reading).await;
    read.unwrap_or_else(|_| panic!("{text} is not shown"));
}

/// An upload that is larger than proxies allow unless they are told to begins to arrive before its end was
/// sent.
async fn upload(kind: Kind, app: &TestApp, proxy: &Proxy, token: &str) {
    const BYTES: usize = 3 << 20;
    let authorization = format!("Authorization: Bearer {token}\r\n");
    let project = json!({"slug": "large"});
    let made = proxy
        .post("/api/projects", "", &authorization, &project)
        .await;
    assert!(made.starts_with("HTTP/1.1 201"), "{kind:?}: {made}");
    let mut stream = proxy.connect("").await.unwrap();
    let head = format!(
        "PUT /api/projects/large/environments/prod/deployment HTTP/1.1\r\nHost: {NAME}\r\n{authorization}\
         Content-Type: application/gzip\r\nContent-Length: {BYTES}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // Nothing that can be unpacked.
    stream.write_all(&[7; BYTES / 2]).await.unwrap();
    stream.flush().await.unwrap();
    let uploads = app.directory.path().join("uploads");
    let arriving = async {
        while std::fs::read_dir(&uploads).map_or(0, Iterator::count) == 0 {
            tokio::task::yield_now().await;
        }
    };
    let arrived = tokio::time::timeout(NEVER, arriving).await;
    assert!(arrived.is_ok(), "{kind:?}: nothing arrives before the end");
    stream.write_all(&[7; BYTES / 2]).await.unwrap();
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(NEVER, stream.read_to_end(&mut answer)).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 422"), "{kind:?}: {answer}");
    assert!(answer.contains("deployment-invalid"), "{kind:?}: {answer}");
}

async fn echo_over_a_web_socket(kind: Kind, app: &TestApp, proxy: &Proxy) {
    let backend = echo().await;
    app.set_backend(&format!("http://{backend}"), &["/ws/"])
        .await;
    let stream = proxy.connect("demo").await.unwrap();
    let mut request = format!("ws://{}/ws/1", host("demo"))
        .into_client_request()
        .unwrap();
    let origin = format!("https://{}", host("demo")).parse().unwrap();
    request.headers_mut().insert("origin", origin);
    let (mut socket, _) = client_async(request, stream).await.unwrap();
    // The backend says first what it got.
    let greeting = socket.next().await.unwrap().unwrap();
    assert!(greeting.is_text(), "{kind:?}: {greeting:?}");
    socket.send(Message::text("round and round")).await.unwrap();
    let answer = socket.next().await.unwrap().unwrap();
    assert_eq!(answer, Message::text("round and round"), "{kind:?}");
}

/// Without TLS, a visitor is sent to the same address with it.
async fn redirects(kind: Kind, proxy: &Proxy, host: &str) {
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.http)).await.unwrap();
    let request = format!("GET /a?b HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let to = format!("ocation: https://{host}");
    assert!(
        answer.contains(" 308 ") && answer.contains(&to),
        "{kind:?}: {answer}"
    );
    assert!(answer.contains("/a?b"), "{kind:?}: {answer}");
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
