//! TLS of the platform's own behind sockets that systemd opens: for visitors, for plain HTTP, for the operator.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use platform_test_pebble::TestPebble;
use platform_test_ports::ReservedPort;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Authority, HTTP_1, NAMES, acme, request, soon, speak_http1, whole, with_host};

/// How long systemd and the start of a server may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server, which systemd starts when the first visitor comes.
struct Activated(Child);

impl Drop for Activated {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Activated {
    /// Passes sockets with these names and addresses, and sets these variables.
    fn start(sockets: &[(&str, String)], variables: &[(&str, String)], arguments: &[&str]) -> Self {
        let mut systemd = Command::new("systemd-socket-activate");
        for (_, address) in sockets {
            systemd.arg(format!("--listen={address}"));
        }
        let names: Vec<&str> = sockets.iter().map(|(name, _)| *name).collect();
        systemd.arg(format!("--fdname={}", names.join(":")));
        for (name, value) in variables {
            systemd.arg(format!("--setenv={name}={value}"));
        }
        systemd.args([env!("CARGO_BIN_EXE_platform-server"), "serve"]);
        systemd
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let started = systemd.spawn();
        Self(started.unwrap_or_else(|error| {
            panic!("{error}: run `cargo xtask test`, which installs systemd")
        }))
    }
}

/// Connects as soon as systemd listens.
async fn connect(address: SocketAddr) -> TcpStream {
    let mut tries = tokio::time::interval(Duration::from_millis(20));
    let connected = async {
        loop {
            tries.tick().await;
            if let Ok(stream) = TcpStream::connect(address).await {
                return stream;
            }
        }
    };
    let connected = tokio::time::timeout(PATIENCE, connected).await;
    connected.unwrap_or_else(|_| panic!("systemd does not listen"))
}

/// Asks over plain HTTP, and returns the whole response.
async fn ask(address: SocketAddr, host: &str, path: &str) -> String {
    let mut stream = connect(address).await;
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let answered = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer));
    let answered = answered.await;
    answered
        .unwrap_or_else(|_| panic!("nobody answers"))
        .unwrap();
    answer
}

/// Ports for visitors, for plain HTTP and for the operator: systemd is told which ones to listen on.
fn three_ports() -> [ReservedPort; 3] {
    [(); 3].map(|()| ReservedPort::take().unwrap())
}

async fn assert_ready_and_redirects(operations: SocketAddr, redirect: SocketAddr) {
    let ready = ask(operations, "operator", "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 200 "), "{ready}");
    let redirected = ask(redirect, NAMES[0], "/a?b").await;
    assert!(redirected.starts_with("HTTP/1.1 308 "), "{redirected}");
    let to = format!("\r\nlocation: https://{}/a?b\r\n", NAMES[0]);
    assert!(redirected.contains(&to), "{redirected}");
}

#[tokio::test]
async fn sockets_of_systemd_are_told_apart_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    authority.certify(folder.path(), "one", &NAMES);
    let ports = three_ports();
    let [https, redirect, operations] = ports.each_ref().map(ReservedPort::address);
    let path = |name: &str| folder.path().join(name).display().to_string();
    // No server can listen at these addresses. By their order, visitors would get the first socket.
    let _server = Activated::start(
        &[
            ("operations", operations.to_string()),
            ("redirect", redirect.to_string()),
            ("https", https.to_string()),
        ],
        &[
            ("PLATFORM_DATA", path("data")),
            ("PLATFORM_ORIGIN", format!("https://{}", NAMES[0])),
            ("PLATFORM_LISTEN", "192.0.2.1:443".to_owned()),
            ("PLATFORM_REDIRECT_LISTEN", "192.0.2.1:80".to_owned()),
            ("PLATFORM_OPERATIONS_LISTEN", "192.0.2.1:9090".to_owned()),
            ("PLATFORM_TLS", "files".to_owned()),
            ("PLATFORM_TLS_CERTIFICATES", path("one.pem")),
            ("PLATFORM_TLS_KEYS", path("one.key")),
        ],
        &[],
    );
    assert_ready_and_redirects(operations, redirect).await;
    let stream = authority.connect(https, NAMES[0], HTTP_1).await.unwrap();
    let mut sender = speak_http1(stream).await;
    let page = request("GET", &format!("https://{}/", NAMES[0]), &[]);
    let page = whole(soon(sender.send_request(with_host(page))).await.unwrap()).await;
    assert_eq!(page.status(), 200);
}

/// Returns a file of the project.
fn of_project(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// The settings and the sockets that docs/hosting.md has for TLS with systemd, with other ports and the
/// name of this test.
struct Recipe {
    settings: String,
    /// With the name of the unit, where it gives none of its own.
    sockets: Vec<(&'static str, String)>,
}

impl Recipe {
    fn read([https, redirect, operations]: [u16; 3]) -> Self {
        let change = |text: &str| {
            let ports = [(":443", https), (":80", redirect), (":9090", operations)];
            let changed = ports.iter().fold(text.to_owned(), |text, (from, to)| {
                text.replace(&format!("{from}\""), &format!(":{to}\""))
            });
            changed.replace("//play.example", &format!("//{}", NAMES[0]))
        };
        let page = of_project("docs/hosting.md");
        let (_, recipe) = page.split_once("### With TLS of its own").unwrap();
        let (_, settings) = recipe.split_once("```toml\n").unwrap();
        let (settings, rest) = settings.split_once("```").unwrap();
        let (commands, _) = rest
            .split_once("/etc/systemd/system/platform-server.socket.d")
            .unwrap();
        let dropped_in = commands.replace("\\n", "\n").replace('\'', "\n");
        let unit = of_project("deploy/systemd/platform-server-redirect.socket");
        let listened = |text: &str| {
            let lines = text
                .lines()
                .filter_map(|line| line.strip_prefix("ListenStream="));
            let lines = lines.filter(|address| !address.is_empty());
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(listened(&dropped_in), ["443", "127.0.0.1:9090"]);
        assert_eq!(listened(&unit), ["80"]);
        assert!(unit.contains("\nFileDescriptorName=redirect\n"));
        Self {
            settings: change(settings),
            sockets: vec![
                ("platform-server.socket", https.to_string()),
                ("platform-server.socket", format!("127.0.0.1:{operations}")),
                ("redirect", redirect.to_string()),
            ],
        }
    }
}

#[tokio::test]
async fn the_recipe_for_tls_with_systemd_works_as_it_is_written() {
    let ports = three_ports();
    let [https, redirect, operations] = ports.each_ref().map(ReservedPort::address);
    let pebble = TestPebble::start(https.port());
    let recipe = Recipe::read(ports.each_ref().map(ReservedPort::number));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("platform.toml");
    std::fs::write(&file, &recipe.settings).unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let _server = Activated::start(
        &recipe.sockets,
        &[
            ("PLATFORM_DATA", path("data")),
            ("PLATFORM_KEY_SECRET", "a".repeat(32)),
            ("PLATFORM_ACME_DIRECTORY", pebble.directory()),
            ("PLATFORM_ACME_CA", pebble.ca().display().to_string()),
        ],
        &["--config", file.to_str().unwrap()],
    );
    assert_ready_and_redirects(operations, redirect).await;
    // The first handshake waits for the certificate.
    let root = pebble.root();
    let stream = acme::connect(https, &root, NAMES[0]).await.unwrap();
    let (status, _) = acme::ask(stream, NAMES[0]).await;
    assert_eq!(status, 200);
}
