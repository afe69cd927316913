//! Bodies that arrive in pieces, and visitors who disconnect in between.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::IntoResponse as _;
use axum::routing::{get, post};
use futures_util::{StreamExt as _, stream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};

use super::{read_head, serve, serve_raw, soon};
use crate::support::TestApp;

/// Returns a sender and a body that streams what is sent.
fn pieces() -> (mpsc::UnboundedSender<&'static str>, Body) {
    let (sender, receiver) = mpsc::unbounded_channel::<&'static str>();
    let stream = stream::unfold(receiver, |mut receiver| async {
        let piece = receiver.recv().await?;
        Some((Ok::<_, std::io::Error>(Bytes::from(piece)), receiver))
    });
    (sender, Body::from_stream(stream))
}

#[tokio::test]
async fn an_answer_reaches_the_page_piece_by_piece() {
    let app = TestApp::start().await;
    let (sender, body) = pieces();
    let body = std::sync::Mutex::new(Some(body));
    let body = std::sync::Arc::new(body);
    let events = move || {
        let body = body.lock().unwrap().take().unwrap();
        async move { ([("content-type", "text/event-stream")], body).into_response() }
    };
    let backend = serve(Router::new().route("/api/events", get(events))).await;
    app.set_api(backend).await;

    // The head arrives before the first piece.
    let mut response = soon(app.get("demo", "/api/events").send()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    for piece in ["data: 1\n\n", ": alive\n\n", "data: 2\n\n"] {
        sender.send(piece).unwrap();
        let arrived = soon(response.chunk()).await.unwrap().unwrap();
        assert_eq!(arrived, piece);
    }
    drop(sender);
    assert_eq!(soon(response.chunk()).await.unwrap(), None);
}

#[tokio::test]
async fn a_request_reaches_the_backend_piece_by_piece() {
    let app = TestApp::start().await;
    let (arrived, mut seen) = mpsc::unbounded_channel();
    let upload = move |request: Request| {
        let arrived = arrived.clone();
        async move {
            let mut body = request.into_body().into_data_stream();
            while let Some(piece) = body.next().await {
                let _ = arrived.send(piece.unwrap());
            }
            "whole"
        }
    };
    let backend = serve(Router::new().route("/api/upload", post(upload))).await;
    app.set_api(backend).await;

    let head = format!(
        "POST /api/upload HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\
         Connection: close\r\n\r\n",
        app.demo()
    );
    let mut stream = app.send_raw(&head).await;
    for piece in ["one", "two", "six"] {
        let chunk = format!("3\r\n{piece}\r\n");
        stream.write_all(chunk.as_bytes()).await.unwrap();
        assert_eq!(soon(seen.recv()).await.unwrap(), piece);
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("whole"), "{answer}");
}

#[tokio::test]
async fn large_bodies_arrive_whole() {
    let app = TestApp::start().await;
    let echo = |request: Request| async move { request.into_body() };
    let backend = serve(Router::new().route("/api/echo", post(echo))).await;
    app.set_api(backend).await;
    let sent: Vec<u8> = (0..5_000_000_u32)
        .map(|number| (number % 251) as u8)
        .collect();
    let request = app.request(reqwest::Method::POST, "demo", "/api/echo");
    let answer = crate::support::send(request.body(sent.clone())).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body == sent, "five megabytes there and back");
}

/// A backend that reports the progress of a request: 1 when its head has arrived, 2 when the
/// connection has ended. It writes `answer` in between.
async fn watched(answer: &'static str) -> (std::net::SocketAddr, watch::Receiver<u8>) {
    let (progress, seen) = watch::channel(0);
    let address = serve_raw(move |mut stream| {
        let progress = progress.clone();
        async move {
            read_head(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
            progress.send_replace(1);
            let mut byte = [0];
            // The end of the connection, or a reset.
            let _ = stream.read(&mut byte).await;
            progress.send_replace(2);
        }
    })
    .await;
    (address, seen)
}

#[tokio::test]
async fn a_visitor_who_goes_away_takes_the_request_along() {
    let begun = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n";
    for answer in ["", begun] {
        let app = TestApp::start().await;
        let (backend, mut seen) = watched(answer).await;
        app.set_api(backend).await;
        let head = format!("GET /api/x HTTP/1.1\r\nHost: {}\r\n\r\n", app.demo());
        let mut stream = app.send_raw(&head).await;
        soon(seen.wait_for(|progress| *progress == 1))
            .await
            .unwrap();
        if !answer.is_empty() {
            read_head(&mut stream).await;
        }
        drop(stream);
        soon(seen.wait_for(|progress| *progress == 2))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_body_that_nobody_reads_any_more_ends_at_the_backend() {
    let app = TestApp::start().await;
    let (sender, body) = pieces();
    let body = std::sync::Arc::new(std::sync::Mutex::new(Some(body)));
    let answer = move || {
        let body = body.lock().unwrap().take().unwrap();
        async move { body }
    };
    let backend = serve(Router::new().route("/api/x", get(answer))).await;
    app.set_api(backend).await;
    let mut response = soon(app.get("demo", "/api/x").send()).await.unwrap();
    sender.send("one").unwrap();
    assert_eq!(soon(response.chunk()).await.unwrap().unwrap(), "one");
    drop(response);
    soon(sender.closed()).await;
}
