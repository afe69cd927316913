//! WebSockets through the platform.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use platform_server::app::entry::App;
use platform_server::app::routes::routes;
use platform_server::web::serve::{ConnectionLimits, serve as serve_platform};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async, client_async};

use super::{answer_raw, serve_raw, soon};
use crate::support::TestApp;

pub(super) type Socket = WebSocketStream<TcpStream>;

/// A backend that accepts the subprotocol `bearer`, reports the token and the origin that it
/// received, and then echoes. At `end` it closes with 4001.
#[expect(clippy::result_large_err, reason = "it is the callback's type")]
pub(crate) async fn echo() -> SocketAddr {
    serve_raw(|stream| async move {
        let mut shown = String::new();
        let accept = |request: &Request, mut response: Response| {
            let header = |name| {
                let value = request.headers().get(name);
                value.map_or("none", |value| value.to_str().unwrap())
            };
            let protocols = header("sec-websocket-protocol");
            shown = format!("{protocols} {} {}", header("origin"), header("cookie"));
            if protocols != "none" {
                let chosen = "bearer".parse().unwrap();
                response
                    .headers_mut()
                    .insert("sec-websocket-protocol", chosen);
            }
            Ok(response)
        };
        let mut socket = accept_hdr_async(stream, accept).await.unwrap();
        socket.send(Message::text(shown)).await.unwrap();
        while let Some(Ok(message)) = socket.next().await {
            match message {
                Message::Text(text) if text == "end" => {
                    let frame = close(4001, "the round is over");
                    socket.close(Some(frame)).await.unwrap();
                }
                Message::Text(_) | Message::Binary(_) => socket.send(message).await.unwrap(),
                _ => {}
            }
        }
    })
    .await
}

fn close(code: u16, reason: &'static str) -> CloseFrame {
    CloseFrame {
        code: CloseCode::from(code),
        reason: reason.into(),
    }
}

/// Opens a WebSocket of the demo on this socket of the platform.
async fn open_at(
    app: &TestApp,
    address: SocketAddr,
    protocols: Option<&str>,
) -> Result<(Socket, Response), Error> {
    open_of(app, "demo", address, protocols).await
}

/// Opens a WebSocket of the game at `label`.
pub(super) async fn open_of(
    app: &TestApp,
    label: &str,
    address: SocketAddr,
    protocols: Option<&str>,
) -> Result<(Socket, Response), Error> {
    let asked = asked_for(app, label, protocols);
    let stream = TcpStream::connect(address).await.unwrap();
    let (socket, response) = soon(client_async(asked, stream)).await?;
    Ok((socket, response.map(|_| ())))
}

/// Returns the request for a WebSocket of the game at `label`.
pub(super) fn asked_for(app: &TestApp, label: &str, protocols: Option<&str>) -> Request {
    let origin = app.origin(label);
    let mut request = format!("{}/api/socket?a=b", origin.replace("http:", "ws:"))
        .into_client_request()
        .unwrap();
    let headers = request.headers_mut();
    headers.insert("origin", origin.parse().unwrap());
    headers.insert("cookie", "a=1; platform-session=secret".parse().unwrap());
    if let Some(protocols) = protocols {
        headers.insert("sec-websocket-protocol", protocols.parse().unwrap());
    }
    request
}

async fn open(app: &TestApp) -> Socket {
    let opened = open_at(app, app.running.address, None).await;
    let (mut socket, _) = opened.unwrap();
    soon(socket.next()).await.unwrap().unwrap();
    socket
}

#[tokio::test]
async fn messages_and_the_bearer_subprotocol_pass_both_ways() {
    let app = TestApp::start().await;
    app.set_api(echo().await).await;
    let opened = open_at(&app, app.running.address, Some("bearer, eyJ.a-b_c.x")).await;
    let (mut socket, response) = opened.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "bearer");
    assert!(response.headers().contains_key("x-request-id"));
    let shown = soon(socket.next()).await.unwrap().unwrap();
    let expected = format!("bearer, eyJ.a-b_c.x {} a=1", app.origin("demo"));
    assert_eq!(shown, Message::text(expected));

    let large = vec![7; 1_000_000];
    for message in [
        Message::text("ä🦦"),
        Message::binary(large),
        Message::text(""),
    ] {
        socket.send(message.clone()).await.unwrap();
        assert_eq!(soon(socket.next()).await.unwrap().unwrap(), message);
    }
    let ping = axum::body::Bytes::from_static(b"there?");
    socket.send(Message::Ping(ping.clone())).await.unwrap();
    assert_eq!(
        soon(socket.next()).await.unwrap().unwrap(),
        Message::Pong(ping)
    );
}

#[tokio::test]
async fn close_codes_pass_both_ways() {
    let app = TestApp::start().await;
    app.set_api(echo().await).await;
    let mut socket = open(&app).await;
    socket.send(Message::text("end")).await.unwrap();
    let end = soon(socket.next()).await.unwrap().unwrap();
    assert_eq!(end, Message::Close(Some(close(4001, "the round is over"))));
    assert!(soon(socket.next()).await.is_none());

    let (told, mut heard) = watch::channel(None);
    let backend = serve_raw(move |stream| {
        let told = told.clone();
        async move {
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            socket.send(Message::text("hello")).await.unwrap();
            while let Some(Ok(message)) = socket.next().await {
                told.send_replace(Some(message));
            }
        }
    });
    app.set_api(backend.await).await;
    let mut socket = open(&app).await;
    socket.close(Some(close(3999, "bye"))).await.unwrap();
    let heard = soon(heard.wait_for(Option::is_some)).await.unwrap().clone();
    assert_eq!(heard, Some(Message::Close(Some(close(3999, "bye")))));
    // The response to the close frame arrives.
    while let Some(message) = soon(socket.next()).await {
        assert!(message.unwrap().is_close());
    }
}

#[tokio::test]
async fn whoever_goes_away_without_a_word_is_gone_for_the_other_too() {
    let app = TestApp::start().await;
    let (told, mut heard) = watch::channel(false);
    let backend = serve_raw(move |stream| {
        let told = told.clone();
        async move {
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            socket.send(Message::text("hello")).await.unwrap();
            if let Some(Ok(_)) = socket.next().await {
                return;
            }
            told.send_replace(true);
        }
    });
    app.set_api(backend.await).await;
    drop(open(&app).await);
    soon(heard.wait_for(|heard| *heard)).await.unwrap();

    let mut socket = open(&app).await;
    socket.send(Message::text("go")).await.unwrap();
    assert!(!matches!(soon(socket.next()).await, Some(Ok(_))));
}

#[tokio::test]
async fn a_silent_websocket_is_not_cut() {
    let app = TestApp::with(|config| {
        config.backend_timeout_seconds = 1;
        config.backend_idle_seconds = 1;
    })
    .await;
    app.set_api(echo().await).await;
    // Every existing time limit, much shorter than the silence.
    let limits = ConnectionLimits {
        head: Duration::from_millis(200),
        stall: Duration::from_millis(200),
        ..ConnectionLimits::default()
    };
    let (address, _stopping) = listen_with(&app, limits).await;
    let (mut socket, _) = open_at(&app, address, None).await.unwrap();
    soon(socket.next()).await.unwrap().unwrap();
    let silence = tokio::time::timeout(Duration::from_secs(3), socket.next()).await;
    assert!(silence.is_err(), "{silence:?}");
    socket.send(Message::text("still there")).await.unwrap();
    let answer = soon(socket.next()).await.unwrap().unwrap();
    assert_eq!(answer, Message::text("still there"));
}

/// Serves the same platform on another socket.
pub(super) async fn listen_with(
    app: &TestApp,
    limits: ConnectionLimits,
) -> (SocketAddr, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stopping, stopped) = watch::channel(false);
    let state = app.running.state.clone();
    let routes = routes(&state);
    tokio::spawn(serve_platform(
        listener,
        App::new(state, routes),
        limits,
        stopped,
    ));
    (address, stopping)
}

#[tokio::test]
async fn a_websocket_counts_as_a_connection_of_its_network_until_it_ends() {
    let app = TestApp::start().await;
    app.set_api(echo().await).await;
    let limits = ConnectionLimits {
        per_loopback: 1,
        ..ConnectionLimits::default()
    };
    let (address, _stopping) = listen_with(&app, limits).await;
    let (mut socket, _) = open_at(&app, address, None).await.unwrap();
    soon(socket.next()).await.unwrap().unwrap();
    assert!(open_at(&app, address, None).await.is_err());
    drop(socket);
    let again = async {
        while open_at(&app, address, None).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    soon(again).await;
}

/// The status of the close frame that comes next. The library answers it.
pub(super) async fn going_away(socket: &mut Socket) -> CloseCode {
    let Some(Ok(Message::Close(Some(frame)))) = soon(socket.next()).await else {
        panic!("no close frame came");
    };
    while soon(socket.next()).await.is_some_and(|next| next.is_ok()) {}
    frame.code
}

#[tokio::test]
async fn the_stop_ends_websockets_on_both_sides_and_does_not_wait_for_them() {
    let app = TestApp::start().await;
    let (told, mut heard) = watch::channel(false);
    let backend = serve_raw(move |stream| {
        let told = told.clone();
        async move {
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            socket.send(Message::text("hello")).await.unwrap();
            assert_eq!(going_away(&mut socket).await, CloseCode::Away);
            told.send_replace(true);
        }
    });
    app.set_api(backend.await).await;
    let mut socket = open(&app).await;
    let started = tokio::time::Instant::now();
    let stopping = tokio::spawn(app.running.stop());
    assert_eq!(going_away(&mut socket).await, CloseCode::Away);
    soon(stopping).await.unwrap().unwrap();
    assert!(started.elapsed() < Duration::from_secs(5));
    soon(heard.wait_for(|heard| *heard)).await.unwrap();
}

#[tokio::test]
async fn a_refused_upgrade_is_answered_as_the_backend_did() {
    let app = TestApp::start().await;
    let refusal = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 5\r\nX-Own: 1\r\n\r\nwrong";
    app.set_api(answer_raw(refusal).await).await;
    let Err(Error::Http(answer)) = open_at(&app, app.running.address, None).await else {
        panic!("the upgrade was not refused");
    };
    assert_eq!(answer.status(), 401);
    assert_eq!(answer.headers()["x-own"], "1");

    // Not a WebSocket at all, whatever the backend claims.
    let nonsense = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                    Upgrade: websocket\r\nSec-WebSocket-Accept: AAAA\r\n\r\n";
    app.set_api(answer_raw(nonsense).await).await;
    let Err(Error::Http(answer)) = open_at(&app, app.running.address, None).await else {
        panic!("the upgrade was not refused");
    };
    assert_eq!(answer.status(), 502);
}

#[tokio::test]
async fn a_websocket_gives_way_to_nobody() {
    let app = TestApp::start().await;
    app.set_api(echo().await).await;
    let limits = ConnectionLimits {
        all: 2,
        ..ConnectionLimits::default()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_stopping, stopped) = watch::channel(false);
    let state = app.running.state.clone();
    let routes = routes(&state);
    tokio::spawn(serve_platform(
        listener,
        App::new(state, routes),
        limits,
        stopped,
    ));
    let (mut socket, _) = open_at(&app, address, None).await.unwrap();
    soon(socket.next()).await.unwrap().unwrap();
    for _ in 0..50 {
        // Each replaces the previous one.
        drop(TcpStream::connect(address).await.unwrap());
        let mut idle = TcpStream::connect(address).await.unwrap();
        let _ = idle.write_all(b"GET / HT").await;
    }
    soon(socket.send(Message::text("still here")))
        .await
        .unwrap();
    let echoed = soon(socket.next()).await.unwrap().unwrap();
    assert_eq!(echoed, Message::text("still here"));
}
