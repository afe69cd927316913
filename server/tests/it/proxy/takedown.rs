//! Open connections to a game's backend when the game is taken down, or its backend is changed.

use std::net::SocketAddr;

use axum::body::Body;
use futures_util::{SinkExt as _, StreamExt as _};
use platform_protocol::names::Environment;
use platform_server::domain::audit::Actor;
use platform_server::domain::environment_setting::EnvironmentSetting;
use platform_server::domain::takedown::Change;
use platform_server::web::request_context::Context;
use platform_server::web::request_id::RequestId;
use reqwest::Method;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::sockets::{Socket, echo, going_away, open_of};
use super::{read_head, serve_raw, soon};
use crate::caller::{Caller, archive};
use crate::support::{NOW, TestApp, send};

/// Creates an account with the project `game`, and a backend that echoes, as the demo has one.
async fn with_game(app: &TestApp) -> Caller<'_> {
    let owner = Caller::with_project(app).await;
    let backends = &app.running.state.hosting.backends;
    let backend = echo().await;
    for environment in Environment::ALL {
        let files = archive(&[("index.html", b"<!doctype html>game")]);
        let deployed = owner.deploy(environment.as_str(), files).await;
        assert_eq!(deployed.status, 201, "{}", deployed.text());
        backends.add("game", environment, backend);
    }
    backends.add("demo", Environment::Prod, backend);
    owner
}

async fn open(app: &TestApp, label: &str) -> Socket {
    let opened = open_of(app, label, app.running.address, None).await;
    let (mut socket, _) = opened.unwrap();
    soon(socket.next()).await.unwrap().unwrap();
    socket
}

async fn is_open(socket: &mut Socket) -> bool {
    let sent = Message::text("still there");
    socket.send(sent.clone()).await.is_ok()
        && matches!(soon(socket.next()).await, Some(Ok(message)) if message == sent)
}

/// Waits until the socket is closed, with a close frame that says so.
async fn ends(socket: &mut Socket) {
    assert_eq!(going_away(socket).await, CloseCode::Away);
}

/// A backend that streams without end, and does not respond at `/api/wait`; the receiver reports
/// each request.
async fn endless() -> (SocketAddr, mpsc::UnboundedReceiver<()>) {
    let (asked, seen) = mpsc::unbounded_channel();
    let address = serve_raw(move |mut stream| {
        let asked = asked.clone();
        async move {
            let head = read_head(&mut stream).await;
            let _ = asked.send(());
            if !head.contains("/api/wait") {
                let begun = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n";
                stream.write_all(begun).await.unwrap();
            }
            std::future::pending::<()>().await;
        }
    });
    (address.await, seen)
}

#[tokio::test]
async fn disabling_a_game_ends_its_websockets_and_those_of_no_other() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    let [mut prod, mut dev, mut other] = [
        open(&app, "game").await,
        open(&app, "dev-game").await,
        open(&app, "demo").await,
    ];
    let disabled = owner.post("/api/projects/game/disable", json!({})).await;
    assert_eq!(disabled.status, 200, "{}", disabled.text());
    ends(&mut prod).await;
    ends(&mut dev).await;
    assert!(is_open(&mut other).await);
    let enabled = send(owner.ask(Method::POST, "/api/projects/game/enable")).await;
    assert_eq!(enabled.status, 200);
    assert!(is_open(&mut open(&app, "game").await).await);
    send(owner.ask(Method::DELETE, "/api/projects/game")).await;
    assert!(is_open(&mut other).await);
}

#[tokio::test]
async fn disabling_a_game_ends_answers_on_their_way() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    let (backend, mut asked) = endless().await;
    let backends = &app.running.state.hosting.backends;
    backends.add("game", Environment::Prod, backend);
    let mut streamed = soon(app.get("game", "/api/x").send()).await.unwrap();
    assert_eq!(soon(streamed.chunk()).await.unwrap().unwrap(), "x");
    let waiting = tokio::spawn(send(app.get("game", "/api/wait")));
    for _ in 0..2 {
        soon(asked.recv()).await.unwrap();
    }
    owner.post("/api/projects/game/disable", json!({})).await;
    assert!(soon(streamed.chunk()).await.is_err(), "it was cut off");
    let answer = soon(waiting).await.unwrap();
    assert_eq!(answer.problem(), "backend-unreachable");
}

#[tokio::test]
async fn suspending_an_owner_ends_the_websockets_of_their_games() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    let admin = Caller::admin(&app).await;
    let (mut game, mut other) = (open(&app, "game").await, open(&app, "demo").await);
    let path = format!("/api/admin/players/{}/suspension", owner.sub);
    let suspended = admin.put(&path, json!({ "reason": null })).await;
    assert_eq!(suspended.status, 200, "{}", suspended.text());
    ends(&mut game).await;
    assert!(is_open(&mut other).await);
    send(admin.ask(Method::DELETE, &path)).await;
    assert!(is_open(&mut open(&app, "game").await).await);
}

#[tokio::test]
async fn what_an_operators_command_takes_down_ends_when_the_games_are_read_again() {
    let app = TestApp::start().await;
    let _owner = with_game(&app).await;
    let (mut game, mut other) = (open(&app, "game").await, open(&app, "demo").await);
    let state = &app.running.state;
    let change = Change::Disable { reason: None };
    let changed = state
        .platform
        .store
        .change_standing("game", change, Actor::Operator.into(), NOW);
    changed.await.unwrap();
    assert!(is_open(&mut game).await, "nobody has told the server");
    // The work that it does twice a minute.
    app.learn_games().await;
    ends(&mut game).await;
    assert!(is_open(&mut other).await);
}

#[tokio::test]
async fn what_is_open_to_a_backend_outlives_a_change_of_its_address_and_not_the_backend() {
    let app = TestApp::start().await;
    app.set_api(echo().await).await;
    let mut first = open(&app, "demo").await;
    app.set_api(echo().await).await;
    let mut second = open(&app, "demo").await;
    assert!(is_open(&mut first).await && is_open(&mut second).await);
    let state = &app.running.state;
    let removed = state.platform.store.set_environment(
        "demo",
        Environment::Prod,
        EnvironmentSetting::Backend(None),
        Actor::Own.into(),
        0,
    );
    removed.await.unwrap();
    app.learn_games().await;
    ends(&mut first).await;
    ends(&mut second).await;
}

#[tokio::test]
async fn a_request_that_found_a_backend_before_it_was_removed_does_not_reach_it() {
    let app = TestApp::start().await;
    let (backend, mut asked) = endless().await;
    app.set_api(backend).await;
    let state = &app.running.state;
    let game = state.games.catalogue.find("demo").unwrap();
    let found = state.hosting.backends.find(&game, "/api/x").unwrap();
    let removed = state.platform.store.set_environment(
        "demo",
        Environment::Prod,
        EnvironmentSetting::Backend(None),
        Actor::Own.into(),
        0,
    );
    removed.await.unwrap();
    app.learn_games().await;
    // A new backend is not the one that the request had used.
    app.set_api(backend).await;

    let peer = SocketAddr::from(([127, 0, 0, 1], 9));
    let context = Context {
        id: RequestId::unknown(),
        peer,
        trusted_peer: false,
        client: peer.ip(),
    };
    let request = axum::http::Request::get("/api/x").body(Body::empty());
    let forwarded = state
        .hosting
        .backends
        .forward(&found, &game, &context, request.unwrap());
    let refusal = soon(forwarded).await.unwrap_err();
    assert_eq!(refusal.slug().as_str(), "backend-unreachable");
    assert!(asked.try_recv().is_err(), "it was asked");
    let found = state.hosting.backends.find(&game, "/api/x").unwrap();
    let request = axum::http::Request::get("/api/x").body(Body::empty());
    let forwarded = state
        .hosting
        .backends
        .forward(&found, &game, &context, request.unwrap());
    assert_eq!(soon(forwarded).await.unwrap().status(), 200);
}
