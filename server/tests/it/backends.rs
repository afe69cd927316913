//! What a game's backend receives, and what it may respond.

use std::net::SocketAddr;
use std::sync::Arc;

use platform_protocol::names::Environment;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::support::TestApp;

/// A backend that reads a request head, sends it to the receiver, and responds with 204 once it has
/// read `then` more bytes.
async fn backend(then: usize) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (heads, seen) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let heads = heads.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else {
                        return;
                    };
                    head.push(byte);
                }
                let _ = heads.send(String::from_utf8(head).unwrap());
                let mut left = then;
                let mut piece = vec![0; 65_536];
                while left > 0 {
                    match stream.read(&mut piece).await {
                        Ok(0) | Err(_) => return,
                        Ok(read) => left = left.saturating_sub(read),
                    }
                }
                let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
                let _ = stream.write_all(answer).await;
            });
        }
    });
    (address, seen)
}

/// Sends these bytes to the platform, and returns the whole response.
async fn ask(app: &TestApp, pieces: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(app.running.address).await.unwrap();
    for piece in pieces {
        // A refusal may arrive before everything is written.
        if stream.write_all(piece).await.is_err() {
            break;
        }
    }
    let mut answer = Vec::new();
    // If the request was refused, the rest is not read, and the connection may be reset.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_backend_hears_only_what_the_platform_says_of_a_request() {
    let app = TestApp::start().await;
    let (address, mut seen) = backend(0).await;
    let backends = &app.running.state.hosting.backends;
    backends.add("demo", Environment::Prod, address);
    let host = format!("demo.platform.localhost:{}", app.port());
    let head = format!(
        "GET http://{host}/api/x HTTP/1.1\r\nHost: a\";for=evil;b=\"\r\n\
         X-Forwarded-For: 198.51.100.9\r\nX-Forwarded-Host: evil.example\r\n\
         X-Forwarded-Proto: gopher\r\nX-Forwarded-Prefix: /evil\r\nForwarded: for=evil\r\n\
         X-Real-IP: 198.51.100.9\r\nTrue-Client-IP: 198.51.100.9\r\nX_Forwarded_For: evil\r\n\
         Proxy: evil\r\nForwarded-For: evil\r\nX-Cluster-Client-IP: evil\r\n\
         Fastly-Client-IP: evil\r\nX-Host: evil\r\nPlatform-Assertion: evil\r\n\
         X-Original-URL: /evil\r\nX-Rewrite-URL: /evil\r\nX-Other: kept\r\nX-Hop: evil\r\n\
         Proxy-Authorization: evil\r\nKeep-Alive: evil\r\nTE: evil\r\nTrailer: evil\r\n\
         Connection: close, x-request-id, x-hop, x-forwarded-for\r\n\r\n"
    );
    let answer = ask(&app, &[head.as_bytes()]).await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    let head = seen.recv().await.unwrap().to_ascii_lowercase();
    assert!(!head.contains("evil") && !head.contains("198.51"), "{head}");
    assert!(!head.contains("gopher"), "{head}");
    for line in [
        "x-forwarded-for: 127.0.0.1".to_owned(),
        format!("x-forwarded-host: {host}"),
        "x-forwarded-proto: http".to_owned(),
        format!("forwarded: for=127.0.0.1;host=\"{host}\";proto=http"),
        "x-other: kept".to_owned(),
    ] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line}: {head}");
    }
    assert!(head.contains("\r\nx-request-id: "), "{head}");
}

#[tokio::test]
async fn what_is_forwarded_is_signed_for_one_game_and_a_minute() {
    use axum::extract::FromRequestParts as _;
    use platform_verifier::{ThroughPlatform, Verifier, VerifierConfig};

    let app = TestApp::start().await;
    let backends = &app.running.state.hosting.backends;
    let (address, mut seen) = backend(0).await;
    backends.add("demo", Environment::Prod, address);
    let mut forwarded = async || {
        let head = format!(
            "GET /api/x HTTP/1.1\r\nHost: demo.platform.localhost:{}\r\nConnection: close\r\n\r\n",
            app.port()
        );
        let answer = ask(&app, &[head.as_bytes()]).await;
        assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
        let head = seen.recv().await.unwrap();
        let mut values = head
            .lines()
            .filter_map(|line| line.strip_prefix("platform-assertion: "));
        let value = values.next().unwrap().to_owned();
        assert_eq!(values.next(), None);
        value
    };
    let first = forwarded().await;
    app.clock.advance(59_999);
    assert_eq!(
        forwarded().await,
        first,
        "one signature is enough for a minute"
    );
    app.clock.advance(1);
    let second = forwarded().await;
    assert_ne!(second, first);
    // A revoked key signs nothing more.
    let kid = app.running.state.auth.keys.list()[0].kid.clone();
    let revoked = app
        .running
        .state
        .auth
        .keys
        .revoke(&kid, platform_server::domain::audit::Actor::Own);
    revoked.await.unwrap();
    let third = forwarded().await;
    assert_ne!(third, second);

    let verifier = |audience: &str| {
        let config = VerifierConfig {
            issuer: app.running.state.platform.auth_url.clone(),
            audience: audience.into(),
            jwks_url: format!(
                "{}/.well-known/jwks.json",
                app.running.state.platform.auth_url
            ),
        };
        let clock = app.clock.clone();
        Arc::new(Verifier::with_clock(config, Arc::new(Moved(clock))).unwrap())
    };
    let verify = async |audience: &str, assertion: &str| {
        let request = axum::http::Request::get("/").header("platform-assertion", assertion);
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let verifier = verifier(audience);
        ThroughPlatform::from_request_parts(&mut parts, &verifier)
            .await
            .is_ok()
    };
    assert!(verify("game:demo", &third).await);
    assert!(!verify("game:dev-demo", &third).await);
    assert!(!verify("game:demo", &second).await, "its key is gone");
    app.clock.advance(180_000);
    assert!(!verify("game:demo", &third).await, "it has ended");
}

/// The test's clock for a verifier.
#[derive(Debug)]
struct Moved(Arc<platform_server::clock::ManualClock>);

impl platform_verifier::Clock for Moved {
    fn now(&self) -> std::time::Duration {
        use platform_server::clock::Clock as _;
        std::time::Duration::from_millis(self.0.now().try_into().unwrap())
    }
}

#[tokio::test]
async fn a_request_that_would_be_echoed_never_reaches_a_backend() {
    let app = TestApp::start().await;
    let (address, mut seen) = backend(0).await;
    let backends = &app.running.state.hosting.backends;
    backends.add("demo", Environment::Prod, address);
    for method in ["TRACE", "TRACK", "track"] {
        let head = format!(
            "{method} /api/x HTTP/1.1\r\nHost: demo.platform.localhost:{}\r\nConnection: close\r\n\r\n",
            app.port()
        );
        let answer = ask(&app, &[head.as_bytes()]).await;
        assert!(answer.starts_with("HTTP/1.1 405"), "{method}: {answer}");
        assert!(answer.contains("/problems/method-not-allowed"), "{answer}");
        assert!(
            answer.to_ascii_lowercase().contains("\r\nallow: get, "),
            "{answer}"
        );
    }
    assert!(seen.try_recv().is_err());
}

#[cfg(unix)]
#[tokio::test]
async fn the_demos_databases_are_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let app = TestApp::start().await;
    let folder = app.directory.path().join("demo");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for name in ["prod.db", "dev.db"] {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn behind_a_trusted_proxy_a_backend_hears_of_the_client() {
    let app = TestApp::with(|config| {
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let (address, mut seen) = backend(0).await;
    let backends = &app.running.state.hosting.backends;
    backends.add("demo", Environment::Prod, address);
    let head = format!(
        "GET /api/x HTTP/1.1\r\nHost: demo.platform.localhost:{}\r\n\
         X-Forwarded-For: 198.51.100.9, 203.0.113.7\r\nConnection: close\r\n\r\n",
        app.port()
    );
    let answer = ask(&app, &[head.as_bytes()]).await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    let head = seen.recv().await.unwrap();
    assert!(
        head.contains("\r\nx-forwarded-for: 203.0.113.7\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn an_upload_that_is_too_large_or_malformed_is_told_so() {
    let app = TestApp::start().await;
    let (address, _seen) = backend(usize::MAX).await;
    let backends = &app.running.state.hosting.backends;
    backends.add("demo", Environment::Prod, address);
    let head = format!(
        "POST /api/x HTTP/1.1\r\nHost: demo.platform.localhost:{}\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        app.port()
    );
    let chunk = [b"100000\r\n".as_slice(), &vec![b'a'; 0x10_0000], b"\r\n"].concat();
    let mut pieces = vec![head.as_bytes()];
    pieces.extend([chunk.as_slice(); 32]);
    pieces.push(b"1\r\na\r\n");
    let answer = ask(&app, &pieces).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("/payload-too-large"), "{answer}");

    let answer = ask(&app, &[head.as_bytes(), b"1\r\na\r\n", b"no length\r\n"]).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("/invalid-request"), "{answer}");
}
