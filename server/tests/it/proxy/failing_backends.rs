//! Backends that do not exist, are too slow, or are no backends at all.

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::routing::get;
use platform_test_ports::ReservedPort;
use tokio::io::AsyncWriteExt as _;

use super::{answer_raw, read_head, serve, serve_raw, soon};
use crate::support::{TestApp, send};

/// A platform that waits one second for backends.
async fn impatient() -> TestApp {
    TestApp::with(|config| {
        config.backend_timeout_seconds = 1;
        config.backend_idle_seconds = 1;
    })
    .await
}

#[tokio::test]
async fn a_backend_that_cannot_be_asked_is_unreachable() {
    let app = TestApp::start().await;
    let closed = ReservedPort::take().unwrap();
    let refusing = closed.address();
    let closing = serve_raw(|mut stream| async move {
        read_head(&mut stream).await;
    });
    let half = answer_raw("HTTP/1.1 200 OK\r\nContent-Le").await;
    let other = answer_raw("SSH-2.0-OpenSSH_9.2\r\n").await;
    let bad_length = answer_raw("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n").await;
    let two_lengths =
        answer_raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab").await;
    let closing = closing.await;
    let plain = serve_raw(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    });
    let plain = plain.await;
    for url in [
        format!("http://{refusing}"),
        format!("http://{closing}"),
        format!("http://{half}"),
        format!("http://{other}"),
        format!("http://{bad_length}"),
        format!("http://{two_lengths}"),
        // RFC 6761 §6.4: this name never exists.
        "http://nowhere.invalid".to_owned(),
        // TLS to a backend that does not support it.
        format!("https://{plain}"),
    ] {
        app.set_backend(&url, &["/api/"]).await;
        let answer = soon(send(app.get("demo", "/api/x"))).await;
        assert_eq!(answer.status, 502, "{url}");
        assert_eq!(answer.problem(), "backend-unreachable", "{url}");
        assert!(!answer.text().contains("127.0.0.1"), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_backend_that_does_not_begin_to_answer_is_given_up() {
    let app = impatient().await;
    let silent = serve_raw(|mut stream| async move {
        read_head(&mut stream).await;
        std::future::pending::<()>().await;
    });
    app.set_api(silent.await).await;
    let answer = soon(send(app.get("demo", "/api/x"))).await;
    assert_eq!(answer.status, 504);
    assert_eq!(answer.problem(), "backend-timeout");
    let socket = app
        .get("demo", "/api/x")
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    let answer = soon(send(socket)).await;
    assert_eq!(answer.problem(), "backend-timeout");
}

#[tokio::test]
async fn an_answer_that_stops_in_its_middle_is_cut_off() {
    let app = impatient().await;
    let stopping = serve_raw(|mut stream| async move {
        read_head(&mut stream).await;
        let begun = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
        stream.write_all(begun.as_bytes()).await.unwrap();
        std::future::pending::<()>().await;
    });
    app.set_api(stopping.await).await;
    let mut response = soon(app.get("demo", "/api/x").send()).await.unwrap();
    assert_eq!(soon(response.chunk()).await.unwrap().unwrap(), "abc");
    assert!(soon(response.chunk()).await.is_err());
}

#[tokio::test]
async fn what_a_backend_answers_itself_is_passed_on_as_it_is() {
    let app = TestApp::start().await;
    let problem = r#"{"type":"about:blank","detail":"My own."}"#;
    let routes = Router::new()
        .route("/api/502", get((StatusCode::BAD_GATEWAY, "mine")))
        .route("/api/504", get((StatusCode::GATEWAY_TIMEOUT, "mine")))
        .route("/api/508", get((StatusCode::LOOP_DETECTED, "mine")))
        .route(
            "/api/500",
            get((
                StatusCode::INTERNAL_SERVER_ERROR,
                [("content-type", "application/problem+json")],
                problem,
            )),
        )
        .route(
            "/api/moved",
            get((StatusCode::FOUND, [("location", "http://10.0.0.1/secret")])),
        )
        .route("/api/none", get(StatusCode::NO_CONTENT))
        .route("/api/same", get(StatusCode::NOT_MODIFIED));
    app.set_api(serve(routes).await).await;
    for status in [502, 504, 508] {
        let answer = send(app.get("demo", &format!("/api/{status}"))).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (status, "mine"));
        assert_ne!(
            answer.header("content-type"),
            Some("application/problem+json")
        );
    }
    let answer = send(app.get("demo", "/api/500")).await;
    assert_eq!((answer.status.as_u16(), answer.text()), (500, problem));
    // The page has to follow a redirect itself.
    let answer = send(app.get("demo", "/api/moved")).await;
    assert_eq!(answer.status, 302);
    assert_eq!(answer.header("location"), Some("http://10.0.0.1/secret"));
    assert_eq!(send(app.get("demo", "/api/none")).await.status, 204);
    assert_eq!(send(app.get("demo", "/api/same")).await.status, 304);
}

#[tokio::test]
async fn a_connection_that_the_backend_closed_meanwhile_costs_no_request() {
    let app = TestApp::start().await;
    // It announces a persistent connection, and closes it after one response.
    let hasty = serve_raw(|mut stream| async move {
        read_head(&mut stream).await;
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok";
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    });
    app.set_api(hasty.await).await;
    for number in 0..50 {
        let answer = soon(send(app.get("demo", "/api/x"))).await;
        assert_eq!(answer.status, 200, "request {number}");
    }
}

#[tokio::test]
async fn an_answer_before_the_end_of_a_request_is_the_answer() {
    let app = TestApp::start().await;
    let refuse = || async { (StatusCode::UNAUTHORIZED, "no") };
    let answers = [
        serve(Router::new().fallback(refuse)).await,
        answer_raw("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno").await,
    ];
    let deaf = serve_raw(|mut stream| async move {
        read_head(&mut stream).await;
    });
    let deaf = deaf.await;
    for backend in answers {
        app.set_api(backend).await;
        for size in [60_000, 200_000, 1_500_000].repeat(12) {
            let sent = app
                .request(Method::POST, "demo", "/api/x")
                .body(vec![b'x'; size]);
            let answer = soon(send(sent)).await;
            assert_eq!((answer.status.as_u16(), answer.text()), (401, "no"));
        }
    }
    // A backend that closes without a response has not responded.
    app.set_api(deaf).await;
    let sent = app
        .request(Method::POST, "demo", "/api/x")
        .body(vec![b'x'; 1_500_000]);
    let answer = soon(send(sent)).await;
    assert_eq!(answer.problem(), "backend-unreachable");
}
