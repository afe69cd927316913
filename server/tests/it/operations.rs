//! Health checks, on a socket of their own.

use std::net::SocketAddr;

use reqwest::header::HOST;
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::program::{Server, program};
use crate::support::TestApp;

/// A server whose health checks are on a socket that the system chose.
pub(crate) async fn with_operations() -> (TestApp, SocketAddr) {
    let app = TestApp::with(|config| {
        config.operations_listen = Some("127.0.0.1:0".parse().unwrap());
    });
    let app = app.await;
    let operations = app.running.operations.unwrap();
    (app, operations)
}

/// The status and body of `GET path`, asked under the name `host`.
pub(crate) async fn ask(operations: SocketAddr, host: &str, path: &str) -> (u16, String) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client
        .get(format!("http://{operations}{path}"))
        .header(HOST, host);
    let response = request.send().await.unwrap();
    let headers = response.headers();
    assert_eq!(headers["cache-control"], "no-store");
    assert_eq!(headers["x-request-id"].len(), 22);
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn readiness(operations: SocketAddr) -> (u16, Value) {
    let (status, body) = ask(operations, "node-1", "/readyz").await;
    (status, serde_json::from_str(&body).unwrap())
}

#[tokio::test]
async fn a_node_that_can_serve_is_healthy_and_ready_under_any_name() {
    let (_app, operations) = with_operations().await;
    for host in ["10.0.0.1:9090", "node-1", "demo.platform.localhost"] {
        assert_eq!(
            ask(operations, host, "/healthz").await,
            (200, "ok\n".to_owned())
        );
        assert_eq!(ask(operations, host, "/readyz").await.0, 200);
    }
    let ready = json!({ "ready": true, "degraded": [] });
    assert_eq!(readiness(operations).await, (200, ready));
    let (status, body) = ask(operations, "node-1", "/console").await;
    assert_eq!(status, 404);
    assert!(body.contains("/problems/not-found"), "{body}");
}

#[tokio::test]
async fn the_health_checks_are_no_backend_of_a_game() {
    let (app, operations) = with_operations().await;
    let owner = Caller::account(&app).await;
    assert_eq!(owner.create("game").await.status, 201);
    let path = "/api/projects/game/environments/dev/backend";
    let backend = json!({ "url": format!("http://{operations}"), "paths": ["/api/"] });
    let refused = owner.put(path, backend).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.text().contains("platform itself"),
        "{}",
        refused.text()
    );
}

#[tokio::test]
async fn the_platforms_own_socket_has_no_health_checks() {
    let (app, _) = with_operations().await;
    for label in ["", "auth", "demo"] {
        for path in ["/healthz", "/readyz", "/metrics"] {
            let answer = app.get(label, path).send().await.unwrap();
            assert_eq!(answer.status(), 404, "{label} {path}");
        }
    }
}

#[tokio::test]
async fn a_node_that_is_about_to_stop_is_not_ready_and_goes_on_serving() {
    let (app, operations) = with_operations().await;
    assert_eq!(app.running.drain().as_secs(), 5);
    let draining = json!({ "ready": false, "because": ["draining"] });
    assert_eq!(readiness(operations).await, (503, draining));
    assert_eq!(ask(operations, "node-1", "/healthz").await.0, 200);
    let page = app.get("demo", "/").send().await.unwrap();
    assert_eq!(page.status(), 200);
}

#[tokio::test]
async fn without_health_checks_the_stop_has_no_delay() {
    let app = TestApp::start().await;
    assert!(app.running.operations.is_none());
    assert!(app.running.drain().is_zero());
}

#[test]
fn a_second_signal_ends_the_delay_before_the_stop() {
    let data = tempfile::tempdir().unwrap();
    let mut command = program(data.path());
    command.env("PLATFORM_SHUTDOWN_DELAY_SECONDS", "300");
    let mut server = Server::start(&mut command);
    server.signal("-TERM");
    let _log = server.read_log_until("not ready any more");
    let answer = server.ask("GET /", "demo.platform.localhost", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_, _, code) = server.stop("-TERM");
    assert_eq!(code, Some(0));
}

#[test]
fn health_checks_cannot_share_the_socket_of_visitors() {
    let data = tempfile::tempdir().unwrap();
    let mut command = program(data.path());
    command.env("PLATFORM_LISTEN", "127.0.0.1:9");
    command.env("PLATFORM_OPERATIONS_LISTEN", "127.0.0.1:9");
    let ended = command.arg("serve").output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        said.contains("operations_listen: it is the socket of listen"),
        "{said}"
    );
}
