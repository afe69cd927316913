//! The axum extractors over real HTTP.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use platform_verifier::{Player, SocketPlayer, ThroughPlatform, Verifier};
use serde_json::{Value, json};
use support::{AUDIENCE, ISSUER, Key, KeySetServer, ManualClock, NOW, SUB, with};

struct Backend {
    origin: String,
    keys: KeySetServer,
    key: Key,
    client: reqwest::Client,
}

impl Backend {
    async fn start() -> Self {
        let key = Key::new(1, "one");
        let keys = KeySetServer::start(&[&key]).await;
        let app = Router::new()
            .route("/me", get(async |Player(player): Player| player.sub))
            .route(
                "/socket",
                get(async |SocketPlayer(player): SocketPlayer| player.sub),
            )
            .route("/inside", get(async |_: ThroughPlatform| "inside"))
            .with_state::<()>(Arc::<Verifier>::new(keys.verifier(ManualClock::new())));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self {
            origin,
            keys,
            key,
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
        }
    }

    fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.client.get(format!("{}{path}", self.origin))
    }
}

async fn json_body(response: reqwest::Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

fn header<'a>(response: &'a reqwest::Response, name: &str) -> Option<&'a str> {
    response
        .headers()
        .get(name)
        .map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_bearer_token_names_the_player_whatever_the_case_of_the_scheme() {
    let backend = Backend::start().await;
    let token = backend.key.good_token();
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        let request = backend
            .get("/me")
            .header("authorization", format!("{scheme} {token}"));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{scheme}");
        assert_eq!(response.text().await.unwrap(), SUB);
    }
}

#[tokio::test]
async fn a_request_without_a_token_is_told_how_to_authenticate() {
    let backend = Backend::start().await;
    for authorization in [None, Some("Basic dXNlcjpwYXNz"), Some("Token x")] {
        let mut request = backend.get("/me");
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        // RFC 6750 §3.1: no error code where there were no credentials.
        assert_eq!(header(&response, "www-authenticate"), Some("Bearer"));
        let body = json_body(response).await;
        assert_eq!(body["type"], format!("{ISSUER}/problems/not-signed-in"));
    }
}

#[tokio::test]
async fn every_refused_token_gets_the_same_answer() {
    let backend = Backend::start().await;
    let good = backend.key.good_token();
    let forged = Key::new(2, "one").good_token();
    let unknown = Key::new(2, "unknown").good_token();
    let refused = [
        format!("Bearer {forged}"),
        format!("Bearer {unknown}"),
        "Bearer x".to_owned(),
        "Bearer ".to_owned(),
        "Bearer".to_owned(),
        format!("Bearer {good} {good}"),
        format!("Bearer {good}, Bearer {good}"),
    ];
    for authorization in refused {
        let request = backend.get("/me").header("authorization", &authorization);
        let response = request
            .header("x-request-id", "abc_DEF-1")
            .send()
            .await
            .unwrap();
        assert_eq!(
            response.status(),
            StatusCode::UNAUTHORIZED,
            "{authorization}"
        );
        let challenge = header(&response, "www-authenticate");
        assert_eq!(challenge, Some("Bearer error=\"invalid_token\""));
        assert_eq!(
            header(&response, "content-type"),
            Some("application/problem+json")
        );
        assert_eq!(header(&response, "cache-control"), Some("no-store"));
        assert_eq!(
            json_body(response).await,
            json!({
                "type": format!("{ISSUER}/problems/not-signed-in"),
                "title": "Not signed in",
                "status": 401,
                "detail": "The game did not recognise you. Please reload the page.",
                "request_id": "abc_DEF-1",
            })
        );
    }
}

#[tokio::test]
async fn two_authorization_headers_are_refused() {
    let backend = Backend::start().await;
    let value = format!("Bearer {}", backend.key.good_token());
    let request = backend
        .get("/me")
        .header("authorization", &value)
        .header("authorization", &value);
    assert_eq!(
        request.send().await.unwrap().status(),
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn a_malformed_request_id_is_not_repeated() {
    let backend = Backend::start().await;
    for id in ["a b", "<script>", &"x".repeat(65)] {
        let response = backend
            .get("/me")
            .header("x-request-id", id)
            .send()
            .await
            .unwrap();
        assert_eq!(json_body(response).await.get("request_id"), None, "{id}");
    }
}

#[tokio::test]
async fn without_a_key_set_the_answer_is_unavailable() {
    let backend = Backend::start().await;
    backend
        .keys
        .answer(StatusCode::INTERNAL_SERVER_ERROR, String::new());
    let value = format!("Bearer {}", backend.key.good_token());
    let response = backend
        .get("/me")
        .header("authorization", value)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(header(&response, "www-authenticate"), None);
    let body = json_body(response).await;
    assert_eq!(body["type"], format!("{ISSUER}/problems/unavailable"));
    assert_eq!(body["status"], 503);
}

#[tokio::test]
async fn a_socket_takes_the_token_after_the_bearer_subprotocol() {
    let backend = Backend::start().await;
    let good = backend.key.good_token();
    let cases = [
        (format!("bearer, {good}"), StatusCode::OK),
        (format!("bearer,{good}"), StatusCode::OK),
        (format!("chat, bearer, {good}"), StatusCode::OK),
        (format!("bearer, {good}, chat"), StatusCode::OK),
        ("bearer".to_owned(), StatusCode::UNAUTHORIZED),
        ("bearer, x".to_owned(), StatusCode::UNAUTHORIZED),
        (format!("{good}, bearer"), StatusCode::UNAUTHORIZED),
        (format!("chat, {good}"), StatusCode::UNAUTHORIZED),
    ];
    for (protocols, expected) in cases {
        let request = backend
            .get("/socket")
            .header("sec-websocket-protocol", &protocols);
        assert_eq!(
            request.send().await.unwrap().status(),
            expected,
            "{protocols}"
        );
    }
    let by_header = backend
        .get("/socket")
        .header("authorization", format!("Bearer {good}"));
    assert_eq!(
        by_header.send().await.unwrap().status(),
        StatusCode::UNAUTHORIZED
    );
}

/// The claims of a good assertion.
fn assertion() -> Value {
    json!({
        "iss": ISSUER, "aud": format!("backend:{AUDIENCE}"), "host": "demo.platform.localhost",
        "exp": NOW + 120, "iat": NOW,
    })
}

#[tokio::test]
async fn only_requests_through_the_platform_are_let_in() {
    let backend = Backend::start().await;
    let key = &backend.key;
    let typed = with(key.header(), json!({ "typ": "platform-request+jwt" }));
    let ask = async |assertions: &[String]| {
        let mut request = backend.get("/inside");
        for assertion in assertions {
            request = request.header("platform-assertion", assertion);
        }
        request.send().await.unwrap()
    };
    let good = key.token(&typed, &assertion());
    for _ in 0..3 {
        let response = ask(std::slice::from_ref(&good)).await;
        assert_eq!(response.status(), StatusCode::OK);
    }
    let changed = |changes| key.token(&typed, &with(assertion(), changes));
    let bad = [
        ("none", vec![]),
        ("two", vec![good.clone(), good.clone()]),
        ("nonsense", vec!["nonsense".to_owned()]),
        ("a game token", vec![key.good_token()]),
        (
            "typ of a game token",
            vec![key.token(&key.header(), &assertion())],
        ),
        (
            "aud of a game token",
            vec![changed(json!({ "aud": AUDIENCE }))],
        ),
        (
            "another game's",
            vec![changed(json!({ "aud": "backend:game:other" }))],
        ),
        (
            "another platform's",
            vec![changed(json!({ "iss": "https://evil.example" }))],
        ),
        (
            "ended",
            vec![changed(json!({ "iat": NOW - 180, "exp": NOW - 60 }))],
        ),
        (
            "of tomorrow",
            vec![changed(json!({ "iat": NOW + 900, "exp": NOW + 1_000 }))],
        ),
        ("for an hour", vec![changed(json!({ "exp": NOW + 3_600 }))]),
        ("without a host", vec![changed(json!({ "host": null }))]),
        (
            "another key",
            vec![Key::new(9, "one").token(&typed, &assertion())],
        ),
    ];
    for (name, assertions) in bad {
        let response = ask(&assertions).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{name}");
        assert_eq!(
            header(&response, "content-type"),
            Some("application/problem+json"),
            "{name}"
        );
        let body = json_body(response).await;
        assert_eq!(
            body["type"],
            format!("{ISSUER}/problems/not-allowed"),
            "{name}"
        );
    }
    // An assertion is not a game token.
    let request = backend
        .get("/me")
        .header("authorization", format!("Bearer {good}"));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_known_assertion_ends_with_its_life() {
    let key = Key::new(1, "one");
    let keys = KeySetServer::start(&[&key]).await;
    let clock = ManualClock::new();
    let verifier = keys.verifier(clock.clone());
    let typed = with(key.header(), json!({ "typ": "platform-request+jwt" }));
    let assertion = key.token(&typed, &assertion());
    verifier.verify_assertion(&assertion).await.unwrap();
    // Within the leeway it is verified again.
    clock.advance(179);
    verifier.verify_assertion(&assertion).await.unwrap();
    clock.advance(1);
    let ended = verifier.verify_assertion(&assertion).await;
    assert_eq!(ended, Err(platform_verifier::VerifyError::Expired));
}
