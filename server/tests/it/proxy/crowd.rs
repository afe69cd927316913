//! Long-lived connections, and all other connections.

use std::net::SocketAddr;

use futures_util::StreamExt as _;
use platform_protocol::names::Environment;
use platform_server::web::serve::ConnectionLimits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Error;

use super::sockets::{Socket, asked_for, echo, listen_with, open_of};
use super::{read_head, rest, serve_raw, soon};
use crate::support::TestApp;

/// Opens a WebSocket of the demo.
async fn open(app: &TestApp, address: SocketAddr) -> Result<Socket, Error> {
    let (mut socket, _) = open_of(app, "demo", address, None).await?;
    soon(socket.next()).await.unwrap()?;
    Ok(socket)
}

/// Opens a connection and sends this request.
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
    let backends = &app.running.state.hosting.backends;
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

    // Neither these nor idle connections between requests keep other clients out.
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

/// Opens a WebSocket of the game at `label`, through a proxy on this machine.
async fn open_for(
    client: &str,
    app: &TestApp,
    label: &str,
    address: SocketAddr,
) -> Result<Socket, Error> {
    let mut asked = asked_for(app, label, None);
    let client = client.parse().unwrap();
    asked.headers_mut().insert("x-forwarded-for", client);
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut socket, _) = soon(client_async(asked, stream)).await?;
    soon(socket.next()).await.unwrap()?;
    Ok(socket)
}

#[tokio::test]
async fn behind_a_trusted_proxy_no_client_takes_all_lasting_places() {
    let app = TestApp::with(|config| {
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    app.set_api(echo().await).await;
    let backends = &app.running.state.hosting.backends;
    backends.add("demo", Environment::Dev, echo().await);
    // 24 connections may be long-lived: two per client, three per surrounding network, and six per
    // game once there are more than twelve.
    let limits = ConnectionLimits {
        all: 32,
        ..ConnectionLimits::default()
    };
    let (address, _stopping) = listen_with(&app, limits).await;
    let mut sockets = Vec::new();
    for client in ["192.0.2.1", "192.0.2.1", "192.0.2.2"] {
        sockets.push(open_for(client, &app, "demo", address).await.unwrap());
    }
    for full in ["192.0.2.1", "192.0.2.3"] {
        let Err(Error::Http(refused)) = open_for(full, &app, "demo", address).await else {
            panic!("{full} has a further one");
        };
        assert_eq!(refused.status(), 503);
        assert!(refused.headers().contains_key("retry-after"));
        let forwarded = format!("X-Forwarded-For: {full}\r\nConnection: close\r\n");
        let answer = rest(ask(&app, address, "", &forwarded).await).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    }
    for number in 0..9 {
        let client = format!("198.51.{number}.1");
        sockets.push(open_for(&client, &app, "demo", address).await.unwrap());
    }
    let crowded = open_for("198.51.9.1", &app, "demo", address).await;
    assert!(crowded.is_err(), "a game has more than half");
    let other = open_for("198.51.9.1", &app, "dev-demo", address).await;
    assert!(other.is_ok(), "another game has its part");
    drop(sockets.remove(0));
    let again = async {
        while open_for("192.0.2.1", &app, "dev-demo", address)
            .await
            .is_err()
        {
            tokio::task::yield_now().await;
        }
    };
    soon(again).await;
}
