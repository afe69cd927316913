//! Requests of other sites: pages that are open in the same browser, and names that were made to
//! resolve to this machine.

use axum::Router;
use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Dev, scene, serve};

const TOKEN: &str = "/__platform/token/user/3";

#[tokio::test]
async fn a_name_that_was_led_here_gets_nothing() {
    let (platform, home) = scene().await;
    let router = Router::new().fallback(async || "of the other server");
    let other = serve(router).await;
    for arguments in [&[][..], &["--to", &other], &["--backend", &other]] {
        let dev = Dev::start(&home, arguments).await;
        let port = dev.port;
        for name in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "evillocalhost",
        ] {
            for host in [name.to_owned(), format!("{name}:{port}")] {
                let origin = format!("http://{host}");
                let headers = [
                    ("host", host.as_str()),
                    ("origin", &origin),
                    ("sec-fetch-site", "same-origin"),
                ];
                let _ = dev.send(Method::POST, TOKEN, &headers).await.problem(403);
                for path in ["/", "/api/x", "/__platform/login", "/__platform/runtime.js"] {
                    let _ = dev
                        .send(Method::GET, path, &headers[..1])
                        .await
                        .problem(403);
                }
            }
        }
        for host in ["localhost", "my-game.localhost:1", "127.0.0.1", "[::1]"] {
            let headers = [("host", host)];
            let login = dev.send(Method::GET, "/__platform/login", &headers).await;
            assert_eq!(login.status, StatusCode::OK, "{host}");
        }
    }
    assert_eq!(platform.seen("/api/projects/game/test-tokens").len(), 0);
}

#[tokio::test]
async fn another_site_gets_no_token() {
    let (platform, home) = scene().await;
    let dev = Dev::start(&home, &[]).await;
    let own = format!("http://localhost:{}", dev.port);
    let other_port = format!("http://localhost:{}", dev.port ^ 1);
    let post = async |headers: &[(&str, &str)]| dev.send(Method::POST, TOKEN, headers).await;
    for site in ["cross-site", "same-site", "none"] {
        let answer = post(&[("sec-fetch-site", site), ("origin", &own)]).await;
        let _ = answer.problem(403);
    }
    for origin in [
        &other_port,
        "http://localhost",
        "http://evil.example",
        "null",
    ] {
        let _ = post(&[("origin", origin)]).await.problem(403);
        let headers = [("origin", origin), ("sec-fetch-site", "same-origin")];
        let _ = post(&headers).await.problem(403);
    }
    assert_eq!(platform.seen("/api/projects/game/test-tokens").len(), 0);
    assert_eq!(post(&[("origin", &own)]).await.status, 200);
    assert_eq!(post(&[]).await.status, 200);
}

#[tokio::test]
async fn heads_that_no_browser_sends_are_refused() {
    let (_platform, home) = scene().await;
    let dev = Dev::start(&home, &[]).await;
    let own = format!("localhost:{}", dev.port);
    for (target, hosts) in [
        ("/", &[][..]),
        ("/", &[own.as_str(), "evil.example"]),
        ("/", &["evil.example", own.as_str()]),
        ("http://evil.example/", &[own.as_str()]),
        ("//[", &[own.as_str()]),
        ("http://[", &[own.as_str()]),
        ("/%", &[own.as_str()]),
        ("/..%2f..%2fetc/passwd", &[own.as_str()]),
    ] {
        let mut stream = TcpStream::connect(("127.0.0.1", dev.port)).await.unwrap();
        let mut head = format!("GET {target} HTTP/1.1\r\nConnection: close\r\n");
        for host in hosts {
            head.push_str(&format!("Host: {host}\r\n"));
        }
        stream
            .write_all(format!("{head}\r\n").as_bytes())
            .await
            .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert_eq!(answer.get(9..10), Some("4"), "{target} {hosts:?}: {answer}");
    }
    assert_eq!(dev.get("/").await.status, 200, "nothing stopped it");
}
