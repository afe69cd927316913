//! Hosts, request ids, and the problems of all addresses.

use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{TestApp, send};

#[tokio::test]
async fn unknown_hosts_never_fall_through_to_another_site() {
    let app = TestApp::start().await;
    let port = app.port();
    for host in [
        "localhost".to_owned(),
        format!("localhost:{port}"),
        format!("127.0.0.1:{port}"),
        "platform.localhost".to_owned(),
        format!("platform.localhost.:{port}"),
        format!("nobody.platform.localhost:{port}"),
        format!("a.demo.platform.localhost:{port}"),
        format!("demo.platform.localhost.evil.example:{port}"),
        "demo.platform.localhost:1".to_owned(),
    ] {
        let answer = send(app.request_host(Method::GET, &host, "/")).await;
        assert_eq!(
            (answer.status.as_u16(), answer.problem().as_str()),
            (404, "unknown-host"),
            "{host}"
        );
    }
    for host in [
        format!("DEMO.Platform.localhost:{port}"),
        format!("demo.platform.localhost:{port}"),
    ] {
        assert_eq!(
            send(app.request_host(Method::GET, &host, "/")).await.status,
            200,
            "{host}"
        );
    }
}

/// Sends unmodified bytes and reads the response to the end of the connection.
async fn raw(app: &TestApp, request: &str) -> String {
    let mut stream = TcpStream::connect(app.running.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_request_names_exactly_one_host() {
    let app = TestApp::start().await;
    let host = format!("demo.platform.localhost:{}", app.port());
    for headers in [String::new(), format!("Host: {host}\r\nHost: {host}\r\n")] {
        let answer = raw(
            &app,
            &format!("GET / HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"),
        )
        .await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("problems/invalid-request"), "{answer}");
    }
    // The target takes precedence over the header (RFC 9112 §3.2.2).
    let answer = raw(
        &app,
        &format!("GET http://{host}/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"),
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn every_answer_has_a_request_id_of_its_own() {
    let app = TestApp::start().await;
    let mut seen = std::collections::HashSet::new();
    for (label, path) in [
        ("demo", "/"),
        ("demo", "/nothing"),
        ("demo", "/__platform/runtime.js"),
        ("demo", "/api/me"),
        ("auth", "/.well-known/jwks.json"),
        ("auth", "/token"),
        ("", "/"),
        ("nobody", "/"),
    ] {
        let answer = send(app.get(label, path).header("x-request-id", "mine")).await;
        let id = answer.header("x-request-id").unwrap().to_owned();
        assert_eq!(id.len(), 22, "{label}{path}: 128 bits in base64url");
        assert!(seen.insert(id), "{label}{path}");
    }
}

#[tokio::test]
async fn a_trusted_proxy_says_id_host_and_client() {
    let app = TestApp::with(|config| {
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        config.forwarded_host = true;
        config.guest_rate = platform_server::config::Config::default().guest_rate;
    })
    .await;
    let host = format!("auth.platform.localhost:{}", app.port());
    let ask = |client: &str, id: &str| {
        app.request_host(Method::POST, "inside.example", "/token")
            .header("x-forwarded-host", &host)
            .header("x-forwarded-for", client)
            .header("x-request-id", id)
            .header("origin", app.origin("demo"))
    };
    let answer = send(ask("203.0.113.1", "from_the-proxy")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("x-request-id"), Some("from_the-proxy"));
    assert_ne!(
        send(ask("203.0.113.1", "not well formed"))
            .await
            .header("x-request-id"),
        Some("not well formed")
    );
    for _ in 2..30 {
        assert_eq!(send(ask("203.0.113.1", "x")).await.status, 200);
    }
    assert_eq!(send(ask("203.0.113.1", "x")).await.status, 429);
    // A client that adds invented addresses to the left of its own is still identified.
    assert_eq!(
        send(ask("198.51.100.1, 203.0.113.1", "x")).await.status,
        429
    );
    assert_eq!(send(ask("203.0.113.2", "x")).await.status, 200);
    // A household with a whole /64 counts as one address.
    for last in 0..30 {
        assert_eq!(
            send(ask(&format!("2001:db8::{last:x}"), "x")).await.status,
            200
        );
    }
    assert_eq!(send(ask("2001:db8::ffff:1", "x")).await.status, 429);
    assert_eq!(send(ask("2001:db8:0:1::1", "x")).await.status, 200);
}

#[tokio::test]
async fn a_forwarded_host_is_ignored_unless_the_operator_believes_it() {
    let app = TestApp::with(|config| {
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let forwarded = format!("auth.platform.localhost:{}", app.port());
    // Most proxies do not append to this header, but pass on what the visitor wrote.
    let asked = app.get("demo", "/").header("x-forwarded-host", &forwarded);
    let answer = send(asked).await;
    assert_eq!(answer.status, 200, "the game, not the auth service");
    let asked = app
        .request_host(Method::GET, "inside.example", "/")
        .header("x-forwarded-host", &forwarded);
    assert_eq!(send(asked).await.problem(), "unknown-host");
}

#[tokio::test]
async fn wrong_paths_and_methods_are_problems_everywhere() {
    let app = TestApp::start().await;
    for (method, label, path, slug) in [
        (Method::GET, "", "/nothing", "not-found"),
        (Method::POST, "", "/", "method-not-allowed"),
        (Method::GET, "auth", "/nothing", "not-found"),
        (
            Method::DELETE,
            "auth",
            "/.well-known/jwks.json",
            "method-not-allowed",
        ),
        (Method::GET, "demo", "/nothing", "not-found"),
        (Method::POST, "demo", "/index.html", "method-not-allowed"),
        (Method::GET, "demo", "/__platform/", "not-found"),
        (Method::GET, "demo", "/__platform", "not-found"),
        (Method::GET, "demo", "/__platform/other", "not-found"),
        (Method::GET, "demo", "/%5f_platform/other", "not-found"),
        (
            Method::POST,
            "demo",
            "/__platform/runtime.js",
            "method-not-allowed",
        ),
    ] {
        let answer = send(app.request(method.clone(), label, path)).await;
        assert_eq!(answer.problem(), slug, "{method} {label} {path}");
    }
    // Sent unmodified, since a client's own parser would resolve the dots.
    let host = format!("demo.platform.localhost:{}", app.port());
    for path in [
        "/api/../x",
        "/api/%2e%2e/x",
        "/api/a%2F..%2fx",
        "/api/..%5cx",
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = raw(&app, &request).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{path}: {answer}");
        assert!(
            answer.contains("problems/invalid-request"),
            "{path}: {answer}"
        );
    }
    let head = send(app.request(Method::HEAD, "demo", "/")).await;
    let get = send(app.get("demo", "/")).await;
    assert!(head.body.is_empty());
    assert_eq!(head.header("content-length"), get.header("content-length"));
    assert_eq!(head.header("etag"), get.header("etag"));
}
