//! The platform over TLS of its own: both versions of it, and both protocols of HTTP.

mod acme;
mod limits;
mod load;
mod passed_sockets;
mod raw;
mod unread;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Request, Response, StatusCode};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use platform_protocol::names::Environment;
use platform_server::app::tls::files::CertificateFiles;
use platform_server::domain::errors::chain;
use platform_server::web::serve::{ConnectionLimits, serve_with};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{accept_async, client_async};

use crate::support::TestApp;

/// Much longer than anything here takes; reaching it is a failure.
const NEVER: Duration = Duration::from_secs(20);
const H2: &[u8] = b"h2";
const HTTP_1: &[u8] = b"http/1.1";

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(NEVER, what)
        .await
        .unwrap_or_else(|_| panic!("it did not happen in {NEVER:?}"))
}

/// Who signs the certificates of a test.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(authority, key).unwrap())
    }

    /// Writes a certificate for these names, and its key.
    fn certify(&self, folder: &Path, file: &str, names: &[&str]) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap();
        let certificate = certificate.signed_by(&key, &self.0).unwrap();
        std::fs::write(folder.join(format!("{file}.pem")), certificate.pem()).unwrap();
        std::fs::write(folder.join(format!("{file}.key")), key.serialize_pem()).unwrap();
    }

    fn config(&self, version: &'static SupportedProtocolVersion, alpn: &[&[u8]]) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(ring)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    }

    /// Connects to this socket, for this name.
    async fn connect(
        &self,
        address: SocketAddr,
        name: &str,
        alpn: &[u8],
    ) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        soon(self.config(&TLS13, &[alpn]).connect(name, stream)).await
    }
}

/// A platform with TLS, its own files, and who signed its certificate.
struct Secure {
    app: TestApp,
    authority: Authority,
}

const NAMES: [&str; 2] = ["platform.localhost", "*.platform.localhost"];

impl Secure {
    async fn start() -> Self {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        authority.certify(folder.path(), "one", &NAMES);
        authority.certify(folder.path(), "two", &["two.platform.localhost"]);
        let place = folder.path().to_owned();
        let app = TestApp::in_directory(folder, |config| {
            config.origin = Some("https://platform.localhost".parse().unwrap());
            config.tls.mode = platform_server::config::tls::TlsMode::Files;
            config.tls.certificates = ["one.pem", "two.pem"].map(|name| place.join(name)).into();
            config.tls.keys = ["one.key", "two.key"].map(|name| place.join(name)).into();
            config.tls.redirect_listen = Some("127.0.0.1:0".parse().unwrap());
            config.trusted_proxies = vec!["127.0.0.2/32".parse().unwrap()];
        })
        .await;
        Self { app, authority }
    }

    fn files(&self) -> &platform_server::app::tls::files::CertificateFiles {
        self.app.running.tls.as_ref().unwrap().files().unwrap()
    }

    /// Serves the same platform on another socket, with its own limits.
    async fn listen_with(
        &self,
        listener: TcpListener,
        limits: ConnectionLimits,
    ) -> (SocketAddr, watch::Sender<bool>, JoinHandle<()>) {
        let address = listener.local_addr().unwrap();
        let (stopping, stopped) = watch::channel(false);
        let state = self.app.running.state.clone();
        let routes = platform_server::app::routes::routes(&state);
        let app = platform_server::app::entry::App::new(state, routes);
        let https = self.app.running.tls.as_ref().unwrap().https();
        let serving = tokio::spawn(serve_with(listener, Some(https), app, limits, stopped));
        (address, stopping, serving)
    }

    async fn http2(&self, address: SocketAddr) -> http2::SendRequest<Full<Bytes>> {
        let stream = self
            .authority
            .connect(address, "demo.platform.localhost", H2);
        speak_http2(stream.await.unwrap()).await
    }
}

async fn speak_http2(stream: TlsStream<TcpStream>) -> http2::SendRequest<Full<Bytes>> {
    let io = TokioIo::new(stream);
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .max_header_list_size(1 << 20)
        .handshake(io)
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

async fn speak_http1(stream: TlsStream<TcpStream>) -> http1::SendRequest<Full<Bytes>> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

/// A request in the form of HTTP/2: the host is in the target.
fn request(method: &str, url: &str, headers: &[(&str, &str)]) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::default()).unwrap()
}

/// The same request in the form of HTTP/1.1.
fn with_host(mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    let host = request.uri().authority().unwrap().as_str().parse().unwrap();
    request.headers_mut().insert("host", host);
    *request.uri_mut() = request.uri().path_and_query().unwrap().clone().into();
    request
}

async fn whole<B>(response: Response<B>) -> Response<String>
where
    B: hyper::body::Body,
    B::Error: std::fmt::Debug,
{
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Response::from_parts(parts, String::from_utf8_lossy(&body).into_owned())
}

/// A backend that responds with the head that it received.
async fn echo_heads() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", head.len());
                stream.write_all(answer.as_bytes()).await.unwrap();
                stream.write_all(&head).await.unwrap();
            });
        }
    });
    address
}

#[tokio::test]
async fn both_versions_of_tls_and_both_protocols_give_the_same_answer() {
    let secure = Secure::start().await;
    let address = secure.app.running.address;
    let page = || request("GET", "https://demo.platform.localhost/", &[]);
    let mut bodies = Vec::new();
    for version in [&TLS12, &TLS13] {
        for alpn in [&[H2, HTTP_1][..], &[H2], &[HTTP_1], &[]] {
            let stream = TcpStream::connect(address).await.unwrap();
            let name = ServerName::try_from("demo.platform.localhost").unwrap();
            let connector = secure.authority.config(version, alpn);
            let stream = soon(connector.connect(name, stream)).await.unwrap();
            let chosen = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
            assert_eq!(chosen.as_deref(), alpn.first().copied());
            let response = if chosen.as_deref() == Some(H2) {
                let mut sender = speak_http2(stream).await;
                whole(soon(sender.send_request(page())).await.unwrap()).await
            } else {
                let mut sender = speak_http1(stream).await;
                whole(soon(sender.send_request(with_host(page()))).await.unwrap()).await
            };
            assert_eq!(response.status(), 200);
            let secure_for = &response.headers()["strict-transport-security"];
            assert_eq!(secure_for, "max-age=31536000");
            assert_eq!(response.headers()["x-request-id"].len(), 22);
            bodies.push(response.into_body());
        }
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1);
    assert!(bodies[0].contains("runtime.js"), "{}", bodies[0]);
}

#[tokio::test]
async fn a_head_has_no_body_and_the_headers_of_a_get_over_http_2() {
    let secure = Secure::start().await;
    let mut sender = secure.http2(secure.app.running.address).await;
    for path in ["/game.js", "/", "/missing", "/__platform/runtime.js"] {
        let url = format!("https://demo.platform.localhost{path}");
        let mut answers = Vec::new();
        for method in ["GET", "HEAD"] {
            let sent = sender.send_request(request(method, &url, &[]));
            answers.push(whole(soon(sent).await.unwrap()).await);
        }
        let [get, head] = &answers[..] else { panic!() };
        assert_eq!(get.status(), head.status(), "{path}");
        let length = |answer: &Response<String>| answer.headers().get("content-length").cloned();
        assert_eq!(length(get), length(head), "{path}");
        assert!(!get.body().is_empty() && head.body().is_empty(), "{path}");
    }
}

#[tokio::test]
async fn a_player_has_a_cookie_of_the_host_and_origins_are_checked_over_http_2() {
    let secure = Secure::start().await;
    let mut sender = secure.http2(secure.app.running.address).await;
    let token = |headers: &[(&str, &str)]| {
        request("POST", "https://auth.platform.localhost/token", headers)
    };
    let demo = ("origin", "https://demo.platform.localhost");
    let response = soon(sender.send_request(token(&[demo]))).await.unwrap();
    assert_eq!(response.status(), 200);
    let cookie = response.headers()["set-cookie"].to_str().unwrap();
    assert!(cookie.starts_with("__Host-platform-session="), "{cookie}");
    assert!(cookie.contains("; Secure"), "{cookie}");
    let pair = cookie.split(';').next().unwrap().to_owned();
    // As browsers send them, each in a line of its own.
    let lines = [
        demo,
        ("cookie", "a=1"),
        ("cookie", &pair),
        ("cookie", "b=2"),
    ];
    let again = soon(sender.send_request(token(&lines))).await.unwrap();
    assert_eq!(again.status(), 200);
    assert_eq!(secure.app.count_players(), 1, "it is the same player");
    for origin in ["https://evil.example", "http://demo.platform.localhost"] {
        let refused = soon(sender.send_request(token(&[("origin", origin)]))).await;
        let refused = whole(refused.unwrap()).await;
        assert_eq!(refused.status(), 403, "{origin}");
        assert!(refused.body().contains("request_id"), "{}", refused.body());
    }
    let host = ("host", "auth.platform.localhost");
    let demo = request("GET", "https://demo.platform.localhost/", &[host]);
    let refused = whole(soon(sender.send_request(demo)).await.unwrap()).await;
    assert_eq!(refused.status(), 400, "two hosts");
}

#[tokio::test]
async fn a_backend_hears_the_same_over_http_2() {
    let secure = Secure::start().await;
    let backends = &secure.app.running.state.hosting.backends;
    backends.add("demo", Environment::Prod, echo_heads().await);
    let address = secure.app.running.address;
    let asked = || {
        let headers = [
            ("x-forwarded-for", "203.0.113.7"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-host", "evil.example"),
            ("x-request-id", "mine"),
            ("accept", "text/plain"),
        ];
        request("GET", "https://demo.platform.localhost/api/x?y=z", &headers)
    };
    let stream = secure
        .authority
        .connect(address, "demo.platform.localhost", HTTP_1);
    let mut http1 = speak_http1(stream.await.unwrap()).await;
    let one = http1.send_request(with_host(asked()));
    let one = whole(soon(one).await.unwrap()).await.into_body();
    let mut http2 = secure.http2(address).await;
    let two = http2.send_request(asked());
    let two = whole(soon(two).await.unwrap()).await.into_body();
    // What differs for each request: its id, and its signature.
    let same = |head: &str| {
        let lines = head.lines().filter(|line| {
            !line.starts_with("x-request-id")
                && !line.contains("assertion")
                && !line.contains("signature")
        });
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(same(&one), same(&two));
    assert!(two.starts_with("GET /api/x?y=z HTTP/1.1\r\n"), "{two}");
    for line in ["x-forwarded-for: 127.0.0.1", "x-forwarded-proto: https"] {
        assert!(two.contains(line), "{two}");
    }
    assert!(
        !two.contains("203.0.113.7") && !two.contains("evil.example"),
        "{two}"
    );
}

#[tokio::test]
async fn a_body_of_unknown_length_reaches_the_backend_over_http_2() {
    let secure = Secure::start().await;
    let routes = axum::Router::new().route("/api/x", axum::routing::post(async |body: Bytes| body));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let backend = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let backends = &secure.app.running.state.hosting.backends;
    backends.add("demo", Environment::Prod, backend);
    let stream =
        secure
            .authority
            .connect(secure.app.running.address, "demo.platform.localhost", H2);
    let io = TokioIo::new(stream.await.unwrap());
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    let pieces = (0..100).map(|_| Ok::<_, io::Error>(Bytes::from(vec![b'x'; 10_000])));
    let body = axum::body::Body::from_stream(futures_util::stream::iter(pieces));
    let request = Request::post("https://demo.platform.localhost/api/x")
        .body(body)
        .unwrap();
    let response = whole(soon(sender.send_request(request)).await.unwrap()).await;
    assert_eq!(
        (response.status(), response.body().len()),
        (StatusCode::OK, 1_000_000)
    );
}

#[tokio::test]
async fn a_stream_and_a_websocket_go_on_over_tls() {
    let secure = Secure::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let backend = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = accept_async(stream).await.unwrap();
        while let Some(Ok(message)) = socket.next().await {
            socket.send(message).await.unwrap();
        }
    });
    let backends = &secure.app.running.state.hosting.backends;
    backends.add("demo", Environment::Prod, backend);
    let address = secure.app.running.address;
    let stream = secure
        .authority
        .connect(address, "demo.platform.localhost", HTTP_1);
    let mut asked = "wss://demo.platform.localhost/api/socket"
        .into_client_request()
        .unwrap();
    let origin = "https://demo.platform.localhost".parse().unwrap();
    asked.headers_mut().insert("origin", origin);
    let (mut socket, _) = soon(client_async(asked, stream.await.unwrap()))
        .await
        .unwrap();
    for text in ["one", "two", &"x".repeat(100_000)] {
        socket.send(Message::text(text)).await.unwrap();
        assert_eq!(
            soon(socket.next()).await.unwrap().unwrap(),
            Message::text(text)
        );
    }

    let (pieces, waiting) = futures_channel();
    let routes = axum::Router::new().route(
        "/api/events",
        axum::routing::get(async move || {
            let body = axum::body::Body::from_stream(waiting.lock().unwrap().take().unwrap());
            ([("content-type", "text/event-stream")], body)
        }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    backends.add("demo", Environment::Prod, listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let mut sender = secure.http2(address).await;
    let events = request("GET", "https://demo.platform.localhost/api/events", &[]);
    let mut events = soon(sender.send_request(events)).await.unwrap();
    for number in 0..3 {
        let text = format!("data: {number}\n\n");
        pieces.send(Ok(Bytes::from(text.clone()))).unwrap();
        let frame = soon(events.body_mut().frame()).await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), text);
    }
}

type Pieces = tokio::sync::mpsc::UnboundedSender<io::Result<Bytes>>;
type Waiting =
    Arc<std::sync::Mutex<Option<futures_util::stream::BoxStream<'static, io::Result<Bytes>>>>>;

/// A body that a test sends piece by piece.
fn futures_channel() -> (Pieces, Waiting) {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    let stream = futures_util::stream::unfold(receiver, async |mut receiver| {
        receiver.recv().await.map(|piece| (piece, receiver))
    });
    (
        sender,
        Arc::new(std::sync::Mutex::new(Some(stream.boxed()))),
    )
}

/// Asks over plain HTTP, and returns the whole response.
async fn ask_without_tls(address: SocketAddr, request: &str, host: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("{request} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    answer
}

#[tokio::test]
async fn what_programs_send_without_tls_is_refused_and_not_redirected() {
    let secure = Secure::start().await;
    let tls = secure.app.running.tls.as_ref().unwrap();
    let address = tls.redirecting.unwrap();
    for (request, headers) in [
        ("POST /token", ""),
        ("PUT /a", ""),
        ("GET /api/projects", ""),
        ("GET /", "Authorization: Bearer secret\r\n"),
    ] {
        let answer = ask_without_tls(address, request, "platform.localhost", headers).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{request}: {answer}");
        assert!(answer.contains("needs https"), "{request}: {answer}");
        assert!(!answer.contains("location:"), "{request}: {answer}");
    }
    // A host that is not ours is not told more.
    let other = ask_without_tls(address, "POST /token", "evil.example", "").await;
    assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
}

#[tokio::test]
async fn plain_http_is_redirected_to_the_address_with_https() {
    let secure = Secure::start().await;
    let tls = secure.app.running.tls.as_ref().unwrap();
    let address = tls.redirecting.unwrap();
    let asked = async |host: &str, target: &str| {
        ask_without_tls(address, &format!("GET {target}"), host, "").await
    };
    for (host, target, location) in [
        ("platform.localhost", "/", "https://platform.localhost/"),
        (
            "Demo.platform.localhost:80",
            "/a/b?c=d",
            "https://demo.platform.localhost/a/b?c=d",
        ),
    ] {
        let answer = asked(host, target).await;
        assert!(answer.starts_with("HTTP/1.1 308 "), "{answer}");
        assert!(
            answer.contains(&format!("location: {location}\r\n")),
            "{answer}"
        );
        assert!(!answer.contains("strict-transport-security"), "{answer}");
    }
    let answer = asked("evil.example", "/").await;
    assert!(
        answer.starts_with("HTTP/1.1 404 ") && answer.contains("unknown-host"),
        "{answer}"
    );
}

/// Returns the certificate that the server shows for this name.
async fn shown(secure: &Secure, name: &str) -> CertificateDer<'static> {
    let address = secure.app.running.address;
    let stream = secure
        .authority
        .connect(address, name, HTTP_1)
        .await
        .unwrap();
    let certificates = stream.get_ref().1.peer_certificates().unwrap();
    certificates[0].clone().into_owned()
}

/// The same after the server has looked at its files.
async fn shown_now(secure: &Secure, name: &str) -> CertificateDer<'static> {
    // What it finds is tested with other ones.
    let _ = secure.files().look_again().await;
    shown(secure, name).await
}

#[tokio::test]
async fn new_files_are_used_and_bad_ones_change_nothing() {
    let secure = Secure::start().await;
    let folder = secure.app.directory.path();
    // The server looks at them as well, at times of its own.
    let settings = &secure.app.running.state.platform.config.tls;
    let files = CertificateFiles::open(settings).await.unwrap();
    let first = shown(&secure, "demo.platform.localhost").await;
    assert!(!files.look_again().await.unwrap(), "nothing has changed");
    secure.authority.certify(folder, "one", &NAMES);
    assert!(files.look_again().await.unwrap());
    let second = shown_now(&secure, "demo.platform.localhost").await;
    assert_ne!(first, second);
    for (file, content, said) in [
        ("one.pem", "", "no certificate"),
        ("one.pem", "-----BEGIN CERTIFICATE-----\nMII\n", "one.pem"),
        ("one.key", "", "no private key"),
    ] {
        let path = folder.join(file);
        let before = std::fs::read(&path).unwrap();
        std::fs::write(&path, content).unwrap();
        let refusal = chain(&files.look_again().await.unwrap_err());
        assert!(
            refusal.contains(said) && refusal.contains(file),
            "{refusal}"
        );
        assert!(!files.look_again().await.unwrap(), "it is said once");
        assert_eq!(shown_now(&secure, "demo.platform.localhost").await, second);
        std::fs::write(&path, before).unwrap();
        assert!(files.look_again().await.unwrap());
    }
    let other = KeyPair::generate().unwrap();
    std::fs::write(folder.join("one.key"), other.serialize_pem()).unwrap();
    let refusal = chain(&files.look_again().await.unwrap_err());
    assert!(refusal.contains("another certificate"), "{refusal}");
    std::fs::remove_file(folder.join("two.pem")).unwrap();
    let refusal = chain(&files.look_again().await.unwrap_err());
    assert!(refusal.contains("cannot be read"), "{refusal}");
    assert_eq!(shown_now(&secure, "demo.platform.localhost").await, second);
}

#[tokio::test]
async fn the_certificate_for_the_name_is_shown() {
    let secure = Secure::start().await;
    let wildcard = shown(&secure, "two.platform.localhost").await;
    // The first one is for this name, too.
    assert_eq!(wildcard, shown(&secure, "platform.localhost").await);
    let origin = &secure.app.running.state.platform.origin;
    assert!(secure.files().missing(origin, origin).is_empty());
    let folder = secure.app.directory.path();
    secure
        .authority
        .certify(folder, "one", &["platform.localhost"]);
    let own = shown_now(&secure, "two.platform.localhost").await;
    assert_ne!(own, shown(&secure, "platform.localhost").await);
    let missing = ["auth.platform.localhost", "any-game.platform.localhost"];
    assert_eq!(secure.files().missing(origin, origin), missing);
}

/// The status of a request for `host`, on a connection for `name`.
async fn status_at(secure: &Secure, protocol: &[u8], name: &str, host: &str) -> u16 {
    let address = secure.app.running.address;
    let stream = secure.authority.connect(address, name, protocol).await;
    let page = request("GET", &format!("https://{host}/"), &[]);
    let answered = if protocol == H2 {
        soon(speak_http2(stream.unwrap()).await.send_request(page)).await
    } else {
        let page = with_host(page);
        soon(speak_http1(stream.unwrap()).await.send_request(page)).await
    };
    answered.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_request_on_a_connection_of_another_certificate_is_misdirected() {
    let secure = Secure::start().await;
    let (console, demo) = ("platform.localhost", "demo.platform.localhost");
    for protocol in [H2, HTTP_1] {
        // One certificate is for both, and browsers use its connections for both.
        assert_eq!(status_at(&secure, protocol, demo, console).await, 200);
    }
    let folder = secure.app.directory.path();
    secure.authority.certify(folder, "one", &[console]);
    secure.authority.certify(folder, "two", &[demo]);
    // What it finds is tested with other ones.
    let _ = secure.files().look_again().await;
    for protocol in [H2, HTTP_1] {
        assert_eq!(status_at(&secure, protocol, demo, console).await, 421);
        assert_eq!(status_at(&secure, protocol, console, demo).await, 421);
        assert_eq!(status_at(&secure, protocol, demo, demo).await, 200);
    }
}
