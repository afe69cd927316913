//! Every response has a request id, whatever its status and its origin.

use axum::Router;
use axum::routing::get;
use platform_server::config::{Period, Rate};
use platform_test_ports::ReservedPort;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::caller::Caller;
use crate::support::{Answer, TestApp, send};

/// Returns the id of a response.
fn id(answer: &Answer, what: &str) -> String {
    let id = answer.header("x-request-id");
    let id = id.unwrap_or_else(|| panic!("{what} has no request id: {answer:?}"));
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    assert!((1..=64).contains(&id.len()), "{what}: {id}");
    assert!(id.bytes().all(allowed), "{what}: {id}");
    id.to_owned()
}

/// Sends a request, and checks the status and the id.
async fn ask(request: RequestBuilder, status: u16, what: &str) -> Answer {
    let answer = send(request).await;
    assert_eq!(answer.status, status, "{what}: {answer:?}");
    let id = id(&answer, what);
    if answer.header("content-type") == Some("application/problem+json") {
        answer.problem();
        assert_eq!(answer.json::<Value>()["request_id"], *id, "{what}");
    }
    answer
}

fn logs(app: &TestApp, content_type: &str, body: String) -> RequestBuilder {
    let request = app.request(Method::POST, "demo", "/__platform/logs");
    request.header("content-type", content_type).body(body)
}

#[tokio::test]
async fn answers_of_every_status_have_a_request_id() {
    let app = TestApp::start().await;
    let owner = Caller::account(&app).await;
    let get = |label, path| app.get(label, path);
    let records = json!({"page": "A".repeat(22), "records": []}).to_string();

    ask(get("", "/"), 200, "the console").await;
    ask(get("demo", "/"), 200, "a game").await;
    let script = ask(get("demo", "/__platform/runtime.js"), 200, "the runtime").await;
    ask(get("auth", "/problems/not-found"), 200, "a problem's page").await;
    ask(get("auth", "/.well-known/jwks.json"), 200, "the keys").await;
    let style = get("", "/static/console/any/console.css");
    ask(style, 200, "the stylesheet").await;
    ask(app.post_token(), 200, "a token").await;
    let head = app.request(Method::HEAD, "demo", "/");
    ask(head, 200, "only a head").await;
    let part = get("demo", "/").header("range", "bytes=0-1");
    ask(part, 206, "a part").await;
    let json = "application/json";
    ask(logs(&app, json, records.clone()), 204, "log records").await;
    let tag = script.header("etag").unwrap();
    let known = get("demo", "/__platform/runtime.js").header("if-none-match", tag);
    ask(known, 304, "what is known").await;

    let redirect = "/login?redirect=https://elsewhere.example/";
    ask(get("auth", redirect), 400, "a bad redirect").await;
    ask(get("", "/api/projects"), 401, "no token").await;
    let stranger = app.request(Method::POST, "auth", "/token");
    ask(stranger, 403, "a stranger's origin").await;
    ask(get("demo", "/nowhere"), 404, "no file").await;
    ask(get("demo", "/__platform/nowhere"), 404, "no endpoint").await;
    ask(get("nobody", "/"), 404, "no host").await;
    let page = get("demo", "/nowhere").header("sec-fetch-mode", "navigate");
    ask(page.header("accept", "text/html"), 404, "a page").await;
    let put = app.request(Method::PUT, "auth", "/token");
    ask(put, 405, "another method").await;
    assert_eq!(owner.create("game").await.status, 201);
    let again = owner.ask(Method::POST, "/api/projects");
    ask(again.json(&json!({"slug": "game"})), 409, "a taken name").await;
    let large = logs(&app, json, "x".repeat(70_000));
    ask(large, 413, "a large body").await;
    ask(logs(&app, "text/plain", records), 415, "another type").await;
    let part = get("demo", "/").header("range", "bytes=9999999-");
    ask(part, 416, "no such part").await;

    // From here on the platform is broken.
    app.sql("DROP TABLE sessions");
    let broken = app.post_token().header("cookie", &owner.cookie);
    let fault = ask(broken, 500, "a fault of ours").await;
    assert!(!fault.text().contains("sessions"), "{fault:?}");
}

#[tokio::test]
async fn answers_about_limits_have_a_request_id() {
    let app = TestApp::with(|config| {
        let one = 1.try_into().unwrap();
        let once = Rate {
            count: one,
            period: Period::Hour,
            burst: one,
        };
        config.guest_rate = once;
        config.log_rate = once;
    })
    .await;
    ask(app.post_token(), 200, "a guest").await;
    let edge = ask(app.post_token(), 429, "the edge limit").await;
    assert_eq!(
        edge.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    let records = json!({"page": "A".repeat(22), "records": []}).to_string();
    let json = "application/json";
    ask(logs(&app, json, records.clone()), 204, "the first").await;
    let limited = ask(logs(&app, json, records), 429, "too many records").await;
    assert_eq!(limited.problem(), "too-many-requests");
}

#[tokio::test]
async fn answers_of_a_backend_and_about_one_have_a_request_id() {
    let app = TestApp::with(|config| config.backend_timeout_seconds = 1).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = listener.local_addr().unwrap();
    let theirs = Router::new().route(
        "/api/x",
        get(|| async { ([("x-request-id", "own")], "hi") }),
    );
    tokio::spawn(async move { axum::serve(listener, theirs).await });
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = ReservedPort::take().unwrap();
    for (backend, path, status) in [
        (here, "/api/x", 200),
        (here, "/api/nowhere", 404),
        (closed.address(), "/api/x", 502),
        (silent.local_addr().unwrap(), "/api/x", 504),
    ] {
        app.set_backend(&format!("http://{backend}"), &["/api/"])
            .await;
        let answer = ask(app.get("demo", path), status, path).await;
        assert_ne!(answer.header("x-request-id"), Some("own"));
    }
}

/// Sends these bytes and reads until the other side closes the connection.
async fn talk(app: &TestApp, bytes: &str) -> String {
    let mut stream = TcpStream::connect(app.running.address).await.unwrap();
    let (mut reading, mut writing) = stream.split();
    let mut answer = Vec::new();
    let talking = async {
        // The connection may be closed before everything is sent.
        let sending = writing.write_all(bytes.as_bytes());
        let (_, read) = tokio::join!(sending, reading.read_to_end(&mut answer));
        read.unwrap();
    };
    let bound = std::time::Duration::from_secs(20);
    tokio::time::timeout(bound, talking).await.unwrap();
    String::from_utf8(answer).unwrap()
}

/// Checks the last response on a connection: its status, id and problem.
fn check_unread(answer: &str, status: u16) {
    let head = format!("HTTP/1.1 {status} ");
    assert!(answer.starts_with(&head), "{status}: {answer}");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let field = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        let value = lines.find(|(known, _)| known.eq_ignore_ascii_case(name));
        value.unwrap_or_else(|| panic!("no {name}: {head}")).1
    };
    assert_eq!(field("content-type"), "application/problem+json");
    assert_eq!(field("content-length"), body.len().to_string());
    assert_eq!(field("connection"), "close");
    assert_eq!(field("cache-control"), "no-store");
    assert_eq!(field("x-content-type-options"), "nosniff");
    assert!(!field("date").is_empty());
    let problem: Value = serde_json::from_str(body).unwrap();
    assert_eq!(problem["status"], status);
    assert_eq!(problem["request_id"], field("x-request-id"));
    let kind = problem["type"].as_str().unwrap();
    assert!(kind.ends_with("/problems/invalid-request"), "{kind}");
    assert!(problem["detail"].as_str().unwrap().ends_with('.'));
}

#[tokio::test]
async fn a_head_that_cannot_be_read_is_answered_with_a_request_id_and_a_problem() {
    let app = TestApp::start().await;
    let long = "x".repeat(70_000);
    let many = "Cookie: a=b\r\n".repeat(5_000);
    let large = format!("Cookie: {}\r\n", "x".repeat(2 * 1024 * 1024));
    for (bytes, status) in [
        ("nonsense\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nHost\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/7.0\r\nHost: x\r\n\r\n".to_owned(), 400),
        (
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n".to_owned(),
            400,
        ),
        (format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"), 414),
        (format!("GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n"), 431),
        (format!("GET / HTTP/1.1\r\nHost: x\r\n{large}\r\n"), 431),
    ] {
        check_unread(&talk(&app, &bytes).await, status);
    }
}

#[tokio::test]
async fn what_a_game_answers_is_never_taken_for_a_refusal_of_the_platform() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let lure = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let files = [
        ("index.html", lure.as_bytes()),
        ("lure.txt", lure.as_bytes()),
    ];
    let deployed = owner.deploy("prod", crate::caller::archive(&files)).await;
    assert_eq!(deployed.status, 201);
    let ask = |path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: game.platform.localhost:{}\r\n\r\n",
            app.port()
        )
    };
    // After two valid requests there is an unreadable one.
    let answers = talk(&app, &(ask("/") + &ask("/lure.txt") + "nonsense\r\n\r\n")).await;
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
    assert_eq!(answers.matches(lure).count(), 2, "{answers}");
    let (good, refused) = answers.rsplit_once(lure).unwrap();
    assert_eq!(good.matches("x-request-id: ").count(), 2, "{good}");
    check_unread(refused, 400);
}
