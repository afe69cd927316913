//! What a game's backend gets to see, and what it may take.

use std::net::SocketAddr;

use platform_protocol::names::Environment;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::support::TestApp;

/// A backend that reads to the end of a head, hands it over, and answers 204
/// once it has read `then` more bytes.
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

/// Sends these bytes to the platform, and answers all that comes back.
async fn ask(app: &TestApp, pieces: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(app.running.address).await.unwrap();
    for piece in pieces {
        // A refusal may come before all is written.
        if stream.write_all(piece).await.is_err() {
            break;
        }
    }
    let mut answer = Vec::new();
    // Where it was refused the rest is not read, and the end may be a reset.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_backend_hears_only_what_the_platform_says_of_a_request() {
    let app = TestApp::start().await;
    let (address, mut seen) = backend(0).await;
    let backends = &app.running.state.backends;
    backends.add("demo", Environment::Prod, address);
    let host = format!("demo.platform.localhost:{}", app.port());
    let head = format!(
        "GET http://{host}/api/x HTTP/1.1\r\nHost: a\";for=evil;b=\"\r\n\
         X-Forwarded-For: 198.51.100.9\r\nX-Forwarded-Host: evil.example\r\n\
         X-Forwarded-Proto: gopher\r\nX-Forwarded-Prefix: /evil\r\nForwarded: for=evil\r\n\
         X-Real-IP: 198.51.100.9\r\nTrue-Client-IP: 198.51.100.9\r\nX_Forwarded_For: evil\r\n\
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
    let backends = &app.running.state.backends;
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
    let backends = &app.running.state.backends;
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
