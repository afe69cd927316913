//! A server with more requests than it can answer.

use std::net::{Ipv4Addr, SocketAddr};

use axum::body::Body;
use axum::http::{Request, header};
use axum::response::Response;
use http_body_util::BodyExt as _;
use platform_server::app::entry::App;
use platform_server::app::routes::routes;
use platform_server::web::serve::Application as _;

use crate::support::TestApp;

/// Sends a request without a connection, with the origin of a game's page.
async fn ask(platform: &App, app: &TestApp, method: &str, label: &str, path: &str) -> Response {
    let address = app.origin(label);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, address.trim_start_matches("http://"))
        .header(header::ORIGIN, app.origin("demo"));
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    platform
        .answer(peer, request.body(Body::empty()).unwrap())
        .await
}

#[tokio::test]
async fn a_refused_page_is_told_when_to_come_again_and_all_is_served_afterwards() {
    let app = TestApp::with(|config| config.overload_millis = 20).await;
    let state = app.running.state.clone();
    let platform = App::new(state.clone(), routes(&state));
    platform.overload.set_pressure(1.0);
    let logs = ask(&platform, &app, "POST", "demo", "/__platform/logs").await;
    assert_eq!(logs.status(), 503);
    let page = ask(&platform, &app, "GET", "demo", "/__platform/runtime.js").await;
    assert_eq!(page.status(), 200, "pages come after logs");

    platform.overload.set_pressure(3.0);
    let page = ask(&platform, &app, "GET", "demo", "/__platform/runtime.js").await;
    assert_eq!(page.status(), 503);
    let mut admitted = 0;
    for _ in 0..40 {
        let token = ask(&platform, &app, "POST", "auth", "/token").await;
        if token.status() == 200 {
            admitted += 1;
            continue;
        }
        assert_eq!(token.status(), 503);
        let headers = token.headers();
        let wait: u64 = headers[header::RETRY_AFTER]
            .to_str()
            .unwrap()
            .parse()
            .unwrap();
        assert!((1..=4).contains(&wait), "{wait}");
        let readable = &headers[header::ACCESS_CONTROL_ALLOW_ORIGIN];
        assert_eq!(readable, &app.origin("demo"));
        let body = token.into_body().collect().await.unwrap().to_bytes();
        let problem = String::from_utf8_lossy(&body).into_owned();
        assert!(problem.contains("/problems/unavailable"), "{problem}");
    }
    assert!((2..=3).contains(&admitted), "one of twenty: {admitted}");

    platform.overload.set_pressure(0.0);
    let page = ask(&platform, &app, "GET", "demo", "/__platform/runtime.js").await;
    assert_eq!(page.status(), 200);
}
