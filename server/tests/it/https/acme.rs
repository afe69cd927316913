//! Certificates from an ACME server: pebble, which proves names at the platform's own socket.

mod orders;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use platform_server::app::tls::acme::{Acme, kept};
use platform_server::clock::Clock as _;
use platform_server::config::tls::TlsMode;
use platform_server::config::{Config, Secret};
use platform_server::domain::certificate::CertificateSummary;
use platform_server::entropy::{Entropy, SystemEntropy};
use platform_test_pebble::TestPebble;
use platform_test_ports::ReservedPort;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{H2, HTTP_1, request, soon, speak_http1, speak_http2, whole, with_host};
use crate::metrics::Scrape;
use crate::operations::ask as ask_operations;
use crate::program::{Server, one_line, program};
use crate::support::TestApp;

const DEMO: &str = "demo.platform.localhost";
const DEV_DEMO: &str = "dev-demo.platform.localhost";
const OWN: [&str; 2] = ["auth.platform.localhost", "platform.localhost"];
const HOUR: i64 = 60 * 60 * 1_000;
const DAY: i64 = 24 * HOUR;

/// How long the ACME server may take for what a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A platform that listens on a port at which pebble proves names.
struct Certified {
    app: TestApp,
    pebble: TestPebble,
    port: ReservedPort,
}

/// The settings of a platform with certificates of this server. With port 0, that server cannot prove names at it.
fn settings(pebble: &TestPebble, port: u16) -> impl Fn(&mut Config) + use<> {
    let (directory, ca) = (pebble.directory(), pebble.ca());
    move |config| {
        config.listen = ([127, 0, 0, 1], port).into();
        config.operations_listen = Some("127.0.0.1:0".parse().unwrap());
        config.origin = Some("https://platform.localhost".parse().unwrap());
        config.key_secret = Some(Secret::new("a".repeat(32)));
        config.tls.mode = TlsMode::Acme;
        config.tls.acme.directory.clone_from(&directory);
        config.tls.acme.email = Some("operator@play.example".to_owned());
        config.tls.acme.ca = Some(ca.clone());
    }
}

impl Certified {
    async fn start() -> Self {
        Self::with(|_, _| {}).await
    }

    /// Starts one with changed settings, and waits until it has its own certificates.
    async fn with(change: impl FnOnce(&mut Config, &TestPebble)) -> Self {
        Self::after(TestApp::start().await, change).await
    }

    /// Starts one with the data of a server without TLS, and waits until it has its own certificates.
    async fn after(before: TestApp, change: impl FnOnce(&mut Config, &TestPebble)) -> Self {
        let port = ReservedPort::take().unwrap();
        let pebble = TestPebble::start(port.number());
        let usual = settings(&pebble, port.number());
        let started = before.restart(|config| {
            usual(config);
            change(config, &pebble);
        });
        let app = started.await;
        let certified = Self { app, pebble, port };
        certified.until_there(1).await;
        certified
    }

    fn acme(&self) -> &Acme {
        acme(&self.app)
    }

    fn address(&self) -> SocketAddr {
        self.app.running.address
    }

    /// The names that have certificates, once there are at least so many of the platform's own.
    async fn until_there(&self, count: usize) -> Vec<String> {
        until_there(&self.app, count).await
    }

    async fn scrape(&self) -> Scrape {
        self.acme().follow().await.unwrap();
        Scrape::of(self.app.running.operations.unwrap()).await
    }

    /// How many orders had this outcome.
    async fn orders(&self, outcome: &str) -> u32 {
        let scrape = self.scrape().await;
        let name = "platform_certificate_orders_total";
        let count = scrape.value(name, &[("outcome", outcome)]);
        let is_it = |number: &u32| (f64::from(*number) - count).abs() < 0.5;
        (0..10_000).find(is_it).unwrap()
    }

    async fn demo(&self) -> CertificateSummary {
        let all = self.acme().follow().await.unwrap();
        all.into_iter().find(|one| one.name == DEMO).unwrap()
    }

    /// Sets the clock to this time.
    fn set_clock(&self, to: i64) {
        self.app.clock.advance(to - self.app.clock.now());
    }
}

fn acme(app: &TestApp) -> &Acme {
    app.running.tls.as_ref().unwrap().acme().unwrap()
}

/// Waits until the platform has at least so many certificates, and returns their names.
async fn until_there(app: &TestApp, count: usize) -> Vec<String> {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let found = async {
        loop {
            looks.tick().await;
            let all = acme(app).follow().await.unwrap();
            let own = OWN
                .iter()
                .filter(|name| all.iter().any(|one| one.name == **name));
            let wildcard = all.iter().any(|one| one.name.starts_with('*'));
            if all.len() >= count && (own.count() == OWN.len() || wildcard) {
                return all.into_iter().map(|one| one.name).collect();
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.unwrap()
}

/// A client that trusts what the server issues.
fn client(root: &str, alpn: &[u8]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(root.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    config
}

async fn connect_as(
    config: ClientConfig,
    address: SocketAddr,
    name: &str,
) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream);
    tokio::time::timeout(PATIENCE, connected).await.unwrap()
}

/// Connects for this name, and trusts `root` alone.
pub(super) async fn connect(
    address: SocketAddr,
    root: &str,
    name: &str,
) -> io::Result<TlsStream<TcpStream>> {
    connect_as(client(root, HTTP_1), address, name).await
}

/// The certificate that the server shows for this name.
async fn shown(address: SocketAddr, root: &str, name: &str) -> CertificateDer<'static> {
    let stream = connect(address, root, name).await.unwrap();
    let chain = stream.get_ref().1.peer_certificates().unwrap();
    chain[0].clone().into_owned()
}

/// Asks for the page at `/`.
pub(super) async fn ask(stream: TlsStream<TcpStream>, name: &str) -> (StatusCode, String) {
    let asked = request("GET", &format!("https://{name}/"), &[]);
    let answer = if stream.get_ref().1.alpn_protocol() == Some(H2) {
        let mut sender = speak_http2(stream).await;
        whole(soon(sender.send_request(asked)).await.unwrap()).await
    } else {
        let mut sender = speak_http1(stream).await;
        whole(soon(sender.send_request(with_host(asked))).await.unwrap()).await
    };
    (answer.status(), answer.into_body())
}

/// What the server says to a visitor whose handshake it refuses.
fn refusal(refused: io::Result<TlsStream<TcpStream>>) -> String {
    refused.map(drop).unwrap_err().to_string()
}

#[tokio::test]
async fn the_first_visits_to_a_game_obtain_one_certificate_and_are_served() {
    let certified = Certified::start().await;
    let root = certified.pebble.root();
    let visits = (0..5).map(|number| {
        let alpn = if number % 2 == 0 { H2 } else { HTTP_1 };
        connect_as(client(&root, alpn), certified.address(), DEMO)
    });
    for visit in futures_util::future::join_all(visits).await {
        let (status, body) = ask(visit.unwrap(), DEMO).await;
        assert_eq!(status, 200);
        assert!(body.contains("runtime.js"), "{body}");
    }
    assert_eq!(certified.until_there(3).await, [OWN[0], DEMO, OWN[1]]);
    assert_eq!(certified.pebble.orders(), 3);
    assert_eq!(certified.orders("obtained").await, 3);
    let (status, _) = ask(
        connect(certified.address(), &root, OWN[1]).await.unwrap(),
        OWN[1],
    )
    .await;
    assert_eq!(status, 200);
    let scrape = certified.scrape().await;
    let value = |name: &str| scrape.value(name, &[]);
    assert!(value("platform_certificates") > 2.5);
    assert!(value("platform_certificates_expiring") < 0.5);
    assert!(value("platform_certificate_left_seconds") > 0.0);
    // No key is in the store as it is.
    let unsealed = "SELECT CAST(count(*) AS TEXT) FROM certificates WHERE NOT sealed";
    assert_eq!(certified.app.sql_text(unsealed), "0");
}

#[tokio::test]
async fn an_unknown_name_makes_no_order_and_ends_the_handshake() {
    let certified = Certified::start().await;
    let (root, address) = (certified.pebble.root(), certified.address());
    for name in [
        "nobody.platform.localhost",
        "a.demo.platform.localhost",
        "pane-9--dev-demo.platform.localhost",
        "evil.example",
    ] {
        let refused = refusal(connect(address, &root, name).await);
        assert!(refused.contains("AccessDenied"), "{name}: {refused}");
        let challenge = client(&root, b"acme-tls/1");
        let refused = refusal(connect_as(challenge, address, name).await);
        assert!(refused.contains("AccessDenied"), "{name}: {refused}");
    }
    // There is no challenge for this one.
    let challenge = client(&root, b"acme-tls/1");
    let refused = refusal(connect_as(challenge, address, DEMO).await);
    assert!(refused.contains("AccessDenied"), "{refused}");
    // Who asks for no name gets the certificate of the console.
    let mut nameless = client(&root, HTTP_1);
    nameless.enable_sni = false;
    connect_as(nameless, address, OWN[1]).await.unwrap();
    assert_eq!(certified.until_there(2).await, OWN);
    assert_eq!(certified.pebble.orders(), 2);
}

#[tokio::test]
async fn a_certificate_in_the_store_needs_no_order_and_no_acme_server() {
    let mut certified = Certified::start().await;
    let (root, port) = (certified.pebble.root(), &certified.port);
    let first = shown(certified.address(), &root, DEMO).await;
    certified.until_there(3).await;
    certified.pebble.kill();

    // The operator changes the secret that seals keys.
    let platform = &certified.app.running.state.platform;
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
    let with = |present: &str, former: Option<&str>| Config {
        key_secret: Some(Secret::new(present.repeat(32))),
        key_secret_old: former.map(|former| Secret::new(former.repeat(32))),
        ..Config::default()
    };
    let both = with("b", Some("a"));
    let resealed = kept::reseal(&both, &*platform.store, &entropy).await;
    // Three certificates, and the account.
    assert_eq!(resealed.unwrap(), 4);
    let again = kept::reseal(&both, &*platform.store, &entropy).await;
    assert_eq!(again.unwrap(), 0);

    let usual = settings(&certified.pebble, port.number());
    let app = certified.app.restart(|config| {
        usual(config);
        config.key_secret = Some(Secret::new("b".repeat(32)));
        // Signing keys were not sealed again.
        config.key_secret_old = Some(Secret::new("a".repeat(32)));
    });
    let app = app.await;
    assert_eq!(shown(app.running.address, &root, DEMO).await, first);
    assert_eq!(certified.pebble.orders(), 3);
}

#[tokio::test]
async fn a_certificate_is_renewed_when_a_third_of_its_life_is_left() {
    let certified = Certified::start().await;
    let (root, address) = (certified.pebble.root(), certified.address());
    let first = shown(address, &root, DEMO).await;
    let begun = connect(address, &root, DEMO).await.unwrap();
    let due = certified.demo().await.renewed_from();
    certified.set_clock(due - DAY);
    certified.acme().renew().await.unwrap();
    assert_eq!(shown(address, &root, DEMO).await, first);
    certified.set_clock(due + DAY);
    certified.acme().renew().await.unwrap();
    let second = shown(address, &root, DEMO).await;
    assert_ne!(second, first);
    assert_eq!(certified.pebble.orders(), 6);
    assert_eq!(ask(begun, DEMO).await.0, 200);
}

#[tokio::test]
async fn a_server_that_fails_is_asked_ever_less_and_certificates_stay_in_use() {
    let mut certified = Certified::start().await;
    let (root, address) = (certified.pebble.root(), certified.address());
    let first = shown(address, &root, DEMO).await;
    let demo = certified.demo().await;
    certified.pebble.kill();
    certified.set_clock(demo.renewed_from() + DAY);
    for _ in 0..3 {
        certified.acme().renew().await.unwrap();
    }
    assert_eq!(certified.orders("failed").await, 3, "one for each name");
    assert!(certified.orders("held-back").await >= 6);

    // For sixty days, twice as often as it is tried at most.
    for _ in 0..60 * 4 {
        certified.app.clock.advance(6 * HOUR);
        certified.acme().renew().await.unwrap();
    }
    let failed = certified.orders("failed").await / 3;
    assert!((100..140).contains(&failed), "{failed}");
    assert_eq!(shown(address, &root, DEMO).await, first);

    // It is shown even after its end, which browsers explain.
    certified.set_clock(demo.valid_until + DAY);
    assert_eq!(shown(address, &root, DEMO).await, first);
    let left = certified
        .scrape()
        .await
        .value("platform_certificate_left_seconds", &[]);
    assert!(left < -86_000.0, "{left}");

    // The server comes back, and knows the account no more.
    certified.pebble.restart();
    certified.app.clock.advance(DAY);
    certified.acme().renew().await.unwrap();
    let new = certified.pebble.root();
    assert_ne!(shown(address, &new, DEMO).await, first);
}

#[tokio::test]
async fn a_platform_that_cannot_get_its_own_certificates_is_degraded_until_it_has_them() {
    let port = ReservedPort::take().unwrap();
    let mut pebble = TestPebble::start(port.number());
    pebble.kill();
    let app = TestApp::with(settings(&pebble, port.number())).await;
    // The start tries it once, and fails.
    let operations = app.running.operations.unwrap();
    let state = async || {
        acme(&app).follow().await.unwrap();
        // The clock that this test sets ahead makes them old.
        app.running.state.auth.keys.refresh().await.unwrap();
        let scrape = Scrape::of(operations).await;
        let missing = scrape.value("platform_certificates_missing", &[]);
        let of = [("component", "certificates")];
        let degraded = scrape.value("platform_degraded", &of) > 0.5;
        let ready = scrape.value("platform_ready", &[]) > 0.5;
        (missing > 1.5, missing < 0.5, degraded, ready)
    };
    assert_eq!(state().await, (true, false, true, true));
    let (status, report) = ask_operations(operations, "node-1", "/readyz").await;
    assert_eq!(status, 200);
    assert!(report.contains("\"certificates\""), "{report}");

    pebble.restart();
    // A try of the start may end only now, and the next one comes an hour after that.
    for _ in 0..12 {
        app.clock.advance(HOUR);
        acme(&app).renew().await.unwrap();
        let there = until_there(&app, 2);
        if tokio::time::timeout(PATIENCE / 12, there).await.is_ok() {
            break;
        }
    }
    assert_eq!(state().await, (false, true, false, true));
    // One that has ended is missing, too.
    let all = acme(&app).follow().await.unwrap();
    let end = all.iter().map(|one| one.valid_until).max().unwrap();
    pebble.kill();
    app.clock.advance(end - app.clock.now());
    assert!(state().await.2);
}

#[tokio::test]
async fn a_game_that_is_gone_gets_no_new_certificate() {
    let certified = Certified::start().await;
    let store = &certified.app.running.state.platform.store;
    let old = platform_server::domain::certificate::StoredCertificate {
        name: "gone.platform.localhost".into(),
        directory: certified.pebble.directory(),
        chain: String::new(),
        private: Vec::new(),
        sealed: false,
        valid_from: 0,
        valid_until: 3 * DAY,
        obtained_at: 0,
    };
    store.put_certificate(old).await.unwrap();
    certified.acme().renew().await.unwrap();
    assert_eq!(certified.until_there(2).await, OWN);
    assert_eq!(certified.pebble.orders(), 2);
}

/// An account at an authority: the identifier and the text of its key.
const ACCOUNT: (&str, &str) = (
    "kid-1",
    "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W",
);

#[tokio::test]
async fn an_authority_that_wants_an_account_of_its_own_gets_that_of_the_settings() {
    let port = ReservedPort::take().unwrap();
    let pebble = TestPebble::bound_to(port.number(), ACCOUNT);
    let stranger = TestApp::with(settings(&pebble, 0)).await;
    let operations = stranger.running.operations.unwrap();
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let refused = async {
        let failed = [("outcome", "failed")];
        let orders = "platform_certificate_orders_total";
        while Scrape::of(operations).await.value(orders, &failed) < 0.5 {
            looks.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, refused).await.unwrap();
    assert_eq!(pebble.orders(), 0);

    let usual = settings(&pebble, port.number());
    let app = TestApp::with(|config| {
        usual(config);
        config.tls.acme.eab_kid = Some(ACCOUNT.0.to_owned());
        config.tls.acme.eab_key = Some(Secret::new(ACCOUNT.1.to_owned()));
    })
    .await;
    assert_eq!(until_there(&app, 2).await, OWN);
}

/// The program with certificates of this server, which can prove no name.
fn unproven(data: &Path, pebble: &TestPebble) -> Command {
    let mut command = program(data);
    command
        .env("PLATFORM_ORIGIN", "https://platform.localhost")
        .env("PLATFORM_TLS", "acme")
        .env("PLATFORM_ACME_DIRECTORY", pebble.directory())
        .env("PLATFORM_ACME_CA", pebble.ca());
    command
}

#[test]
fn the_log_says_of_a_failed_order_its_name_the_challenge_the_reason_and_the_next_try() {
    // Nobody listens where the ACME server proves names.
    let port = ReservedPort::take().unwrap();
    let pebble = TestPebble::start(port.number());
    let data = tempfile::tempdir().unwrap();
    let mut server = Server::start(&mut unproven(data.path(), &pebble));
    let (line, _log) = server.find_in_log("a certificate could not be obtained");
    for part in [
        "name=\"platform.localhost\" challenge=\"tls-alpn-01\"",
        "error=\"the ACME server could not prove the name: platform.localhost by tls-alpn-01: ",
        "again_in_seconds=60",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    // The type of the problem, as the server says it.
    assert!(
        line.contains("(connection)") || line.contains("(unauthorized)"),
        "{line}"
    );
    server.stop("-KILL");
}

#[test]
fn a_program_for_dns_that_cannot_be_run_stops_the_start() {
    let data = tempfile::tempdir().unwrap();
    let mut command = program(data.path());
    command
        .env("PLATFORM_ORIGIN", "https://play.example")
        .env("PLATFORM_TLS", "acme")
        .env("PLATFORM_ACME_DNS_COMMAND", "/nowhere/publish");
    let output = command.arg("serve").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = one_line(&output);
    let expected = "PLATFORM_ACME_DNS_COMMAND: there is no program /nowhere/publish";
    assert!(said.contains(expected), "{said}");
}

/// Publishes records with the management of the test's own DNS server.
const PUBLISH: &str = r#"#!/usr/bin/env python3
import json, sys, urllib.request
what, name, value = sys.argv[1:]
path = {"present": "set-txt", "cleanup": "clear-txt"}[what]
body = json.dumps({"host": name + ".", "value": value}).encode()
urllib.request.urlopen("http://127.0.0.1:PORT/" + path, body).read()
"#;

#[tokio::test]
async fn with_a_program_for_dns_one_certificate_is_for_all_games() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("publish");
    let certified = Certified::with(|config, pebble| {
        let script = PUBLISH.replace("PORT", &pebble.txt_port().to_string());
        std::fs::write(&program, script).unwrap();
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&program, mode).unwrap();
        config.tls.acme.dns_command = Some(program.clone());
    })
    .await;
    let (root, address) = (certified.pebble.root(), certified.address());
    connect(address, &root, OWN[0]).await.unwrap();
    for name in [OWN[1], DEMO, DEV_DEMO] {
        let stream = connect(address, &root, name).await.unwrap();
        assert_eq!(ask(stream, name).await.0, 200, "{name}");
    }
    assert_eq!(certified.until_there(1).await, ["*.platform.localhost"]);
    assert_eq!(certified.pebble.orders(), 1);
}

#[cfg(feature = "cluster")]
#[tokio::test]
async fn any_node_answers_the_challenge_of_another_one_and_each_certificate_is_renewed_once() {
    use platform_server::clock::SystemClock;
    use platform_test_postgres::TestDatabase;

    use crate::webhooks::eventually;

    let (database, files) = (TestDatabase::new(), tempfile::tempdir().unwrap());
    // Names are proved at the first node.
    let port = ReservedPort::take().unwrap();
    let pebble = TestPebble::start(port.number());
    let node = async |port: u16| {
        let shared = crate::postgres::settings(&database, files.path());
        let usual = settings(&pebble, port);
        TestApp::with(|config| {
            shared(config);
            usual(config);
        })
        .await
    };
    let one = node(port.number()).await;
    until_there(&one, 2).await;
    let other = node(0).await;
    let root = pebble.root();
    let first = shown(other.running.address, &root, DEMO).await;
    assert_eq!(pebble.orders(), 3);
    assert_eq!(shown(one.running.address, &root, DEMO).await, first);
    assert_eq!(pebble.orders(), 3);

    // A renewal by one node is followed by the other one.
    let all = acme(&one).follow().await.unwrap();
    let due = all
        .iter()
        .map(CertificateSummary::renewed_from)
        .max()
        .unwrap();
    one.clock.advance(due - one.clock.now());
    acme(&one).renew().await.unwrap();
    let second = shown(one.running.address, &root, DEMO).await;
    assert_ne!(second, first);
    acme(&other).follow().await.unwrap();
    assert_eq!(shown(other.running.address, &root, DEMO).await, second);
    assert_eq!(pebble.orders(), 6);

    // If both renew at once, each certificate is renewed once.
    let all = acme(&one).follow().await.unwrap();
    // A certificate has whole seconds: one of the same second would be due as well.
    let last = all.iter().map(|one| one.valid_from / 1_000).max();
    eventually("the next second", async || {
        Some(SystemClock.now() / 1_000) > last
    })
    .await;
    let due = all.iter().map(CertificateSummary::renewed_from);
    let due = due.max().unwrap();
    for node in [&one, &other] {
        node.clock.advance(due - node.clock.now());
    }
    let (by_one, by_other) = tokio::join!(acme(&one).renew(), acme(&other).renew());
    by_one.and(by_other).unwrap();
    assert_eq!(pebble.orders(), 9);
    let mut third = Vec::new();
    for node in [&one, &other] {
        acme(node).follow().await.unwrap();
        third.push(shown(node.running.address, &root, DEMO).await);
    }
    assert_ne!(third[0], second);
    assert_eq!(third[0], third[1]);
}
