//! Connections that last, and the others.

use std::net::SocketAddr;

use futures_util::StreamExt as _;
use platform_protocol::names::Environment;
use platform_server::http::serve::ConnectionLimits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Error;

use super::sockets::{Socket, echo, listen_with, open_of};
use super::{read_head, rest, serve_raw, soon};
use crate::support::TestApp;

/// A WebSocket of the demo.
async fn open(app: &TestApp, address: SocketAddr) -> Result<Socket, Error> {
    let (mut socket, _) = open_of(app, "demo", address, None).await?;
    soon(socket.next()).await.unwrap()?;
    Ok(socket)
}

/// A connection that has sent this request.
async fn ask(app: &TestApp, address: SocketAddr, label: &str, rest: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let origin = app.origin(label);
    let (_, host) = origin.split_once("://").unwrap();
    let head = format!("GET /api/x HTTP/1.1\r\nHost: {host}\r\n{rest}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// A backend that begins a stream of events.
async fn events() -> SocketAddr {
    serve_raw(|mut stream| async move {
        read_head(&mut stream).await;
        let begun = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: alive\n\n";
        stream.write_all(begun).await.unwrap();
        std::future::pending::<()>().await;
    })
    .await
}

#[tokio::test]
async fn websockets_and_streams_leave_a_quarter_of_all_connections_to_the_others() {
    let app = TestApp::start().await;
    app.set_api(echo().await).await;
    let backends = &app.running.state.backends;
    backends.add("demo", Environment::Dev, events().await);
    let limits = ConnectionLimits {
        all: 8,
        ..ConnectionLimits::default()
    };
    let (address, _stopping) = listen_with(&app, limits).await;
    let mut sockets = Vec::new();
    for _ in 0..5 {
        sockets.push(open(&app, address).await.unwrap());
    }
    let mut streamed = ask(&app, address, "dev-demo", "").await;
    let head = soon(read_head(&mut streamed)).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");

    let Err(Error::Http(refused)) = open(&app, address).await else {
        panic!("a seventh connection of eight lasts");
    };
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    let body = refused.into_body().unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    assert!(body.contains("/problems/unavailable"), "{body}");
    let refused = rest(ask(&app, address, "dev-demo", "Connection: close\r\n").await).await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");

    // Neither these nor connections that idle between requests keep anybody out.
    let mut idle = Vec::new();
    for _ in 0..10 {
        let mut one = ask(&app, address, "", "").await;
        let mut begun = [0; 12];
        soon(one.read_exact(&mut begun)).await.unwrap();
        idle.push(one);
    }
    for _ in 0..10 {
        let answer = rest(ask(&app, address, "", "Connection: close\r\n").await).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    }

    drop(sockets.pop());
    let again = async {
        while open(&app, address).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    soon(again).await;
}
