//! A visitor of a platform behind TLS, as browsers are: pages, tokens, log streams and WebSockets, which all
//! must pass through whatever is in front of the server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::program::subject;
use crate::support::NOW;

/// Much longer than anything here takes; reaching it is a failure.
pub(crate) const NEVER: Duration = Duration::from_secs(60);
/// The platform's name, where `deploy/` says `play.example`.
pub(crate) const NAME: &str = "platform.localhost";
/// The name of games on a site of their own, where `deploy/` says `games.example`.
pub(crate) const GAMES: &str = "games.localhost";

/// Somebody who trusts one authority alone.
pub(crate) struct Visitor {
    /// Where TLS is spoken.
    pub(crate) https: SocketAddr,
    /// Where it is not.
    pub(crate) http: SocketAddr,
    pub(crate) client: TlsConnector,
}

impl Visitor {
    /// Connects to an address of the platform.
    async fn connect(&self, label: &str) -> Option<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.https).await.ok()?;
        let name = ServerName::try_from(host(label)).unwrap();
        self.client.connect(name, stream).await.ok()
    }

    /// Sends a request, and returns the whole response as text; `None` if there is none.
    pub(crate) async fn try_ask(&self, request: &str, label: &str, rest: &str) -> Option<String> {
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
    pub(crate) async fn ask(&self, request: &str, label: &str, rest: &str) -> String {
        self.try_ask(request, label, rest).await.unwrap()
    }

    /// Sends JSON with a request such as `POST /path`.
    pub(crate) async fn send(
        &self,
        request: &str,
        label: &str,
        headers: &str,
        body: &Value,
    ) -> String {
        let body = body.to_string();
        let rest = format!(
            "{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.ask(request, label, &rest).await
    }

    /// Asks for a token at this origin.
    pub(crate) async fn token(&self, label: &str, cookie: &str) -> String {
        let origin = format!("Origin: https://{}\r\n", host(label));
        let forged = "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: http\r\n";
        let rest = format!("{origin}{cookie}{forged}Content-Length: 0\r\n");
        self.ask("POST /token", "auth", &rest).await
    }

    /// Opens the console, the auth service and the demo, and gets the demo's runtime.
    pub(crate) async fn opens_pages(&self) {
        for (label, path) in [("", "/"), ("auth", "/.well-known/jwks.json"), ("demo", "/")] {
            let page = self.ask(&format!("GET {path}"), label, "").await;
            assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        }
        let runtime = self.ask("GET /__platform/runtime.js", "demo", "").await;
        assert!(
            runtime.contains("200") && runtime.len() > 1_000,
            "{runtime}"
        );
    }

    /// Plays the demo, comes back and is the same player. Returns the player's id and the header with the
    /// cookie.
    pub(crate) async fn comes_back(&self) -> (String, String) {
        let first = self.token("demo", "").await;
        assert!(first.contains("__Host-platform-session="), "{first}");
        let (sub, cookie) = (subject_in(&first), cookie_of(&first));
        assert_eq!(subject_in(&self.token("demo", &cookie).await), sub);
        (sub, cookie)
    }

    /// Follows the demo's logs with this token of the console: the stream shows a record as soon as a page has
    /// sent it.
    pub(crate) async fn streams_logs(&self, token: &str) {
        let mut stream = self.connect("").await.unwrap();
        let request = format!(
            "GET /api/projects/demo/logs/stream?env=prod HTTP/1.1\r\nHost: {NAME}\r\n\
             Authorization: Bearer {token}\r\nAccept: text/event-stream\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut shown = String::new();
        read_until(&mut stream, &mut shown, "text/event-stream").await;
        let record =
            json!({"time": NOW, "level": "info", "source": "console", "message": "I am here"});
        let records = json!({"page": "AAAAAAAAAAAAAAAAAAAAAA", "records": [record]});
        let sent = self
            .send("POST /__platform/logs", "demo", "", &records)
            .await;
        assert!(sent.starts_with("HTTP/1.1 204"), "{sent}");
        read_until(&mut stream, &mut shown, "I am here").await;
    }

    /// Deploys a game that is larger than proxies allow unless they are told to, to the platform with this data
    /// folder: it begins to arrive before its end was sent.
    pub(crate) async fn uploads(&self, token: &str, data: &Path) {
        const BYTES: usize = 3 << 20;
        let authorization = format!("Authorization: Bearer {token}\r\n");
        let project = json!({"slug": "large"});
        let made = self
            .send("POST /api/projects", "", &authorization, &project)
            .await;
        assert!(made.starts_with("HTTP/1.1 201"), "{made}");
        let mut stream = self.connect("").await.unwrap();
        let head = format!(
            "PUT /api/projects/large/environments/prod/deployment HTTP/1.1\r\nHost: {NAME}\r\n{authorization}\
             Content-Type: application/gzip\r\nContent-Length: {BYTES}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // Nothing that can be unpacked.
        stream.write_all(&[7; BYTES / 2]).await.unwrap();
        stream.flush().await.unwrap();
        let uploads = data.join("uploads");
        let arriving = async {
            while std::fs::read_dir(&uploads).map_or(0, Iterator::count) == 0 {
                tokio::task::yield_now().await;
            }
        };
        let arrived = tokio::time::timeout(NEVER, arriving).await;
        assert!(arrived.is_ok(), "nothing arrives before the end");
        stream.write_all(&[7; BYTES / 2]).await.unwrap();
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(NEVER, stream.read_to_end(&mut answer)).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 422"), "{answer}");
        assert!(answer.contains("deployment-invalid"), "{answer}");
    }

    /// Opens a WebSocket to the demo's backend, which must be [`echo`](crate::proxy::echo) for `/ws/`.
    pub(crate) async fn echoes_over_a_web_socket(&self) {
        let stream = self.connect("demo").await.unwrap();
        let mut request = format!("ws://{}/ws/1", host("demo"))
            .into_client_request()
            .unwrap();
        let origin = format!("https://{}", host("demo")).parse().unwrap();
        request.headers_mut().insert("origin", origin);
        let (mut socket, _) = client_async(request, stream).await.unwrap();
        // The backend says first what it got.
        let greeting = socket.next().await.unwrap().unwrap();
        assert!(greeting.is_text(), "{greeting:?}");
        socket.send(Message::text("round and round")).await.unwrap();
        let answer = socket.next().await.unwrap().unwrap();
        assert_eq!(answer, Message::text("round and round"));
    }

    /// Without TLS, is sent to the same address of this host with it.
    pub(crate) async fn is_redirected(&self, host: &str) {
        let mut stream = TcpStream::connect(self.http).await.unwrap();
        let request = format!("GET /a?b HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let to = format!("ocation: https://{host}");
        assert!(answer.contains(" 308 ") && answer.contains(&to), "{answer}");
        assert!(answer.contains("/a?b"), "{answer}");
    }
}

/// Returns the host of an address of the platform. A whole name is taken as it is.
pub(crate) fn host(label: &str) -> String {
    match label {
        "" => NAME.to_owned(),
        name if name.contains('.') => name.to_owned(),
        label => format!("{label}.{NAME}"),
    }
}

/// Writes certificates for the platform and for games on a site of their own, their keys, and both in one
/// file. Returns the client that trusts them.
pub(crate) fn certify(folder: &Path) -> TlsConnector {
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

/// Returns the access token in a response.
pub(crate) fn access_token(answer: &str) -> String {
    let (_, rest) = answer
        .split_once("\"access_token\":\"")
        .unwrap_or_else(|| panic!("{answer}"));
    rest.split('"').next().unwrap().to_owned()
}

/// Returns the header with the cookie that a response sets.
pub(crate) fn cookie_of(answer: &str) -> String {
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

/// Returns `sub` of the token in a response, whose body may be in chunks.
pub(crate) fn subject_in(answer: &str) -> String {
    subject(&format!(
        "\r\n\r\n{{\"access_token\":\"{}\"}}",
        access_token(answer)
    ))
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
