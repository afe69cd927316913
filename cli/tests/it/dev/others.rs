//! Another dev server, and a backend, behind `platform dev`.

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{any, get};
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

use super::{BOUND, Dev, scene, serve};

/// A server that says which request it got.
fn echo() -> Router {
    async fn answer(request: Request) -> Response {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes().len());
        axum::Json(json!({
            "method": head.method.as_str(),
            "path": head.uri.path_and_query().unwrap().as_str(),
            "headers": shown(&head.headers),
            "bytes": body.ok(),
        }))
        .into_response()
    }
    Router::new()
        .route("/stream", get(stream))
        .fallback(any(answer))
}

/// One part now, and no end.
async fn stream() -> Response {
    let first = futures_util::stream::iter([Ok::<_, Infallible>(Bytes::from("data: 1\n\n"))]);
    Body::from_stream(first.chain(futures_util::stream::pending())).into_response()
}

fn shown(headers: &HeaderMap) -> Value {
    headers
        .iter()
        .map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// A WebSocket server that repeats what it hears, and returns its address.
async fn parrot() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let Ok(socket) = tokio_tungstenite::accept_async(stream).await else {
                    return;
                };
                let (mut say, mut hear) = socket.split();
                while let Some(Ok(message)) = hear.next().await {
                    if message.is_text() && say.send(message).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[tokio::test]
async fn another_server_is_asked_as_if_by_the_browser_itself() {
    let (_platform, home) = scene().await;
    let other = serve(echo()).await;
    let authority = other.strip_prefix("http://").unwrap();
    let dev = Dev::start(&home, &["--to", &other]).await;
    let own = format!("http://localhost:{}", dev.port);
    let headers = [
        ("origin", own.as_str()),
        ("connection", "x-mine, keep-alive"),
        ("x-mine", "1"),
        ("cookie", "a=1"),
    ];
    let seen = dev
        .send(Method::GET, "/src/main.ts?t=1", &headers)
        .await
        .json();
    assert_eq!(seen["path"], "/src/main.ts?t=1");
    assert_eq!(seen["headers"]["host"], authority);
    assert_eq!(seen["headers"]["origin"], other);
    assert_eq!(seen["headers"]["cookie"], "a=1");
    assert_eq!(
        seen["headers"]["x-forwarded-host"],
        own.strip_prefix("http://").unwrap()
    );
    assert_eq!(seen["headers"]["x-mine"], Value::Null, "of this connection");
    let foreign = [("origin", "http://evil.example")];
    let seen = dev.send(Method::GET, "/", &foreign).await.json();
    assert_eq!(seen["headers"]["origin"], "http://evil.example");

    let large = vec![7; 40 * 1024 * 1024];
    let upload = dev.open(Method::POST, "/upload", &[], large).await;
    assert_eq!(super::read(upload).await.json()["bytes"], 40 * 1024 * 1024);
    let mut stream = dev.open(Method::GET, "/stream", &[], "").await.into_body();
    let part = tokio::time::timeout(BOUND, stream.frame()).await.unwrap();
    let part = part.unwrap().unwrap().into_data().unwrap();
    assert_eq!(part, "data: 1\n\n", "before the response has ended");
    assert_eq!(dev.get("/__platform/login").await.status, 200);
}

#[tokio::test]
async fn a_redirect_to_the_other_servers_own_address_leads_back() {
    let (_platform, home) = scene().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let to = format!("http://localhost:{port}");
    let target = format!("http://127.0.0.1:{port}/deep?a=b");
    let router = Router::new()
        .route("/own", get(async move || Redirect::to(&target)))
        .route(
            "/away",
            get(async || Redirect::to("https://games.example/")),
        );
    tokio::spawn(async move { axum::serve(listener, router).await });
    let dev = Dev::start(&home, &["--to", &to]).await;
    let own = dev.get("/own").await;
    let expected = format!("http://localhost:{}/deep?a=b", dev.port);
    assert_eq!(own.header("location"), expected);
    let away = dev.get("/away").await;
    assert_eq!(away.header("location"), "https://games.example/");
}

#[tokio::test]
async fn websockets_of_both_servers_pass() {
    let (_platform, home) = scene().await;
    let (front, back) = (parrot().await, parrot().await);
    let arguments = ["--to", &front, "--backend", &back, "--path", "/play"];
    let dev = Dev::start(&home, &arguments).await;
    for path in ["/", "/play/room-1"] {
        let address = format!("ws://localhost:{}{path}", dev.port);
        let (mut socket, _) = tokio_tungstenite::connect_async(&address).await.unwrap();
        for word in ["one", "two"] {
            socket.send(Message::text(word)).await.unwrap();
            let heard = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
            assert_eq!(heard.unwrap().unwrap(), Message::text(word), "{path}");
        }
        socket.close(None).await.unwrap();
        let last = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
        assert!(
            matches!(last, Some(Ok(Message::Close(_)))),
            "{path}: {last:?}"
        );
    }
}

#[tokio::test]
async fn a_server_that_is_away_is_named() {
    let (_platform, home) = scene().await;
    let dev = Dev::start(
        &home,
        &[
            "--to",
            "http://localhost:1",
            "--backend",
            "http://localhost:2",
        ],
    )
    .await;
    let detail = dev.get("/main.js").await.problem(502);
    assert!(detail.contains("http://localhost:1 "), "{detail}");
    let page = dev.send(Method::GET, "/", &[("sec-fetch-dest", "document")]);
    let page = page.await;
    assert_eq!(page.status, 502);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(page.body.contains("http-equiv=\"refresh\""), "{page:?}");
    let detail = dev.get("/api/me").await.problem(502);
    assert!(detail.contains("http://localhost:2 "), "{detail}");
    for line in [
        &["--to", "localhost:5173"][..],
        &["--to", "https://localhost:5173"],
        &["--backend", "http://localhost:8788/api"],
        &["--backend", "http://localhost:8788", "--path", "api"],
        &["--path", "/api"],
        &["dist", "--to", "http://localhost:1"],
        &["--port", "5199", "--to", "http://127.0.0.1:5199"],
    ] {
        let line = [&["dev", "-p", "game"], line].concat();
        let outcome = home.run(&line).await.ended_with(2);
        assert_eq!(outcome.stdout, "", "{line:?}");
    }
}

#[tokio::test]
async fn a_backend_gets_what_the_platform_would_send() {
    let (_platform, home) = scene().await;
    let backend = serve(echo()).await;
    let mut dev = Dev::start(&home, &["--backend", &backend]).await;
    let block = dev.block().await;
    for line in [
        format!("Backend  /api/ passed on to {backend}"),
        "AUTH_AUDIENCE=game:dev-game".to_owned(),
    ] {
        assert!(block.contains(&line), "{line}: {block}");
    }
    let own = format!("localhost:{}", dev.port);
    let origin = format!("http://{own}");
    let headers = [
        ("authorization", "Bearer a.b.c"),
        ("origin", origin.as_str()),
        ("x-forwarded-for", "203.0.113.9"),
        ("x-real-ip", "203.0.113.9"),
        ("platform-assertion", "forged"),
        ("x_user", "root"),
    ];
    let seen = dev.send(Method::PUT, "/api/me?a=b", &headers).await.json();
    assert_eq!(
        (&seen["method"], &seen["path"]),
        (&json!("PUT"), &json!("/api/me?a=b"))
    );
    let seen = &seen["headers"];
    assert_eq!(seen["host"], backend.strip_prefix("http://").unwrap());
    assert_eq!(seen["authorization"], "Bearer a.b.c");
    assert_eq!(seen["origin"], origin.as_str());
    assert_eq!(seen["x-forwarded-for"], "127.0.0.1");
    assert_eq!(seen["x-forwarded-host"], own.as_str());
    let forwarded = format!("for=127.0.0.1;host=\"{own}\";proto=http");
    assert_eq!(seen["forwarded"], forwarded.as_str());
    for name in ["x-real-ip", "x_user"] {
        assert_eq!(seen[name], Value::Null, "{name}");
    }

    for path in ["/api", "/apix", "/other"] {
        assert_eq!(dev.get(path).await.status, 404, "{path} is no backend's");
    }
    for path in ["/api/../x", "/api/%2e%2e/x", "/api/a%2f..%2fb"] {
        let _ = dev.get(path).await.problem(400);
    }
    let trace = dev.send(Method::TRACE, "/api/me", &[]).await;
    assert_eq!(trace.status, StatusCode::METHOD_NOT_ALLOWED);
    let mebibytes = |count: usize| vec![7; count * 1024 * 1024];
    let upload = dev.open(Method::POST, "/api/upload", &[], mebibytes(32));
    assert_eq!(
        super::read(upload.await).await.json()["bytes"],
        32 * 1024 * 1024
    );
    let too_large = [
        ("content-length: 33554433", None),
        ("transfer-encoding: chunked", Some(mebibytes(32))),
    ];
    for (header, body) in too_large {
        let answer = announce(&dev, header, body).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{header}: {answer}");
        assert!(answer.contains("at most 32 MiB"), "{header}: {answer}");
    }
}

/// Announces more than 32 MiB, and sends `body` and one more byte as the beginning of a chunk. Nothing
/// is left unread, so the connection is not reset before the response is read.
async fn announce(dev: &Dev, header: &str, body: Option<Vec<u8>>) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", dev.port)).await.unwrap();
    let head = format!(
        "POST /api/upload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    if let Some(body) = body {
        let size = format!("{:x}\r\n", body.len() + 1);
        stream.write_all(size.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
        stream.write_all(b"!").await.unwrap();
    }
    let mut answer = String::new();
    let read = tokio::time::timeout(BOUND, stream.read_to_string(&mut answer)).await;
    read.unwrap().unwrap();
    answer
}

#[tokio::test]
async fn a_server_that_leads_back_here_makes_no_loop() {
    let (_platform, home) = scene().await;
    let other = serve(echo()).await;
    let dev = Dev::start(&home, &["--to", &other]).await;
    let via = dev.get("/").await.json()["headers"]["via"].clone();
    let headers = [("via", via.as_str().unwrap())];
    let detail = dev.send(Method::GET, "/", &headers).await.problem(502);
    assert!(detail.contains("leads back"), "{detail}");
}
