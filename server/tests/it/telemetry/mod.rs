//! Traces and log lines for a receiver of OpenTelemetry: what it gets, and that nobody waits for it.

mod collector;
mod failures;
mod program;

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use platform_server::config::Config;
use serde_json::{Value, json};

use self::collector::{Collector, attribute};
use crate::browser::Browser;
use crate::caller::Caller;
use crate::support::{TestApp, send};
use crate::webhooks::{Receiver, WEBHOOK};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// `traceparent` of somebody who traces their request, or does not.
fn parent(trace: &str, is_traced: bool) -> String {
    format!("00-{trace}-{CALLER}-0{}", u8::from(is_traced))
}

/// Traces every request for which nobody has decided it.
fn traced(config: &mut Config, collector: &Collector) {
    config.otlp.endpoint = Some(collector.endpoint.parse().unwrap());
    config.otlp.sample = 1.0;
}

/// Trusts this machine.
fn behind_a_proxy(config: &mut Config) {
    config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
}

/// Whether it is the span of such a request.
fn answers(span: &Span, name: &str) -> bool {
    span.kind == SpanKind::Server as i32 && span.name == name
}

#[tokio::test]
async fn a_request_belongs_to_the_trace_of_a_trusted_proxy() {
    let mut collector = Collector::start().await;
    let app = TestApp::with(|config| {
        traced(config, &collector);
        behind_a_proxy(config);
    })
    .await;
    let other = "1".repeat(32);
    let not_traced = app
        .post_token()
        .header("traceparent", parent(&other, false));
    assert_eq!(send(not_traced).await.status, 200);
    let request = app
        .post_token()
        .header("traceparent", parent(TRACE, true))
        .header("tracestate", "vendor=1");
    assert_eq!(send(request).await.status, 200);
    let span = collector
        .span("the request's", |span| answers(span, "POST /token"))
        .await;
    assert_eq!(hex(&span.trace_id), TRACE);
    assert_eq!(hex(&span.parent_span_id), CALLER);
    assert_eq!(span.trace_state, "vendor=1");
    let named = |name: &str| attribute(&span.attributes, name).unwrap_or_default();
    for (name, value) in [
        ("http.request.method", "POST"),
        ("http.route", "/token"),
        ("http.response.status_code", "200"),
        ("platform.host", "auth"),
        ("server.address", "platform.localhost"),
        ("url.scheme", "http"),
    ] {
        assert_eq!(named(name), value, "{name}");
    }
    assert_eq!(span.attributes.len(), 6, "{span:?}");
    let write = collector
        .span("the store's", |span| span.name == "store write")
        .await;
    assert_eq!(write.trace_id, span.trace_id);
    assert_eq!(write.parent_span_id, span.span_id);
    assert_eq!(write.events[0].name, "transaction");
    assert_eq!(
        attribute(&write.attributes, "db.system.name").as_deref(),
        Some("sqlite")
    );
    // It was sent before, and its sender did not want it.
    assert!(!collector.has(|span| hex(&span.trace_id) == other));
    app.running.stop().await.unwrap();
}

#[tokio::test]
async fn everybody_else_gets_a_trace_of_their_own() {
    let mut collector = Collector::start().await;
    let app = TestApp::with(|config| traced(config, &collector)).await;
    for is_traced in [true, false] {
        let request = app.get("", "/no/such/page/swift-otter");
        let request = request.header("traceparent", parent(TRACE, is_traced));
        assert_eq!(send(request).await.status, 404);
        let span = collector
            .span("the request's", |span| answers(span, "GET (none)"))
            .await;
        assert_ne!(hex(&span.trace_id), TRACE);
        assert!(span.parent_span_id.is_empty(), "{span:?}");
    }
    app.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_webhook_gets_the_trace_of_its_delivery() {
    let mut collector = Collector::start().await;
    let app = TestApp::with(|config| traced(config, &collector)).await;
    let owner = Caller::with_project(&app).await;
    let mut receiver = Receiver::start(&[]).await;
    let set = owner.put(WEBHOOK, json!({ "url": receiver.url })).await;
    assert_eq!(set.status, 200, "{}", set.text());
    let test = owner.post(&format!("{WEBHOOK}/test"), json!({})).await;
    assert_eq!(test.json::<Value>()["status"], 204);
    let got = receiver.next().await;
    let span = collector
        .span("the delivery's", |span| span.name == "webhook delivery")
        .await;
    let expected = format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id));
    assert_eq!(got.header("traceparent"), expected);
    let request = collector
        .span("the request's", |found| {
            found.span_id == span.parent_span_id
        })
        .await;
    assert!(answers(&request, "POST /api/projects/{slug}/webhook/test"));
    app.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_games_backend_gets_the_trace_unless_its_page_has_one() {
    let mut collector = Collector::start().await;
    let app = TestApp::with(|config| traced(config, &collector)).await;
    let mut backend = Receiver::start(&[]).await;
    let address = backend.url.split("/hook").next().unwrap().to_owned();
    app.set_backend(&address, &["/api/"]).await;
    let post = || app.request(reqwest::Method::POST, "demo", "/api/echo");
    assert_eq!(send(post()).await.status, 204);
    let got = backend.next().await;
    let span = collector
        .span("the backend's", |span| span.name == "game backend request")
        .await;
    let expected = format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id));
    assert_eq!(got.header("traceparent"), expected);
    let request = collector
        .span("the request's", |found| {
            found.span_id == span.parent_span_id
        })
        .await;
    assert!(answers(&request, "POST (backend)"), "{request:?}");
    // What a game's own page sends is the game's.
    let own = parent(TRACE, true);
    assert_eq!(send(post().header("traceparent", &own)).await.status, 204);
    assert_eq!(backend.next().await.header("traceparent"), own);
    app.running.stop().await.unwrap();
}

#[tokio::test]
async fn nothing_of_a_player_is_sent() {
    let mut collector = Collector::start().await;
    let app = TestApp::with(|config| {
        traced(config, &collector);
        behind_a_proxy(config);
    })
    .await;
    let mut browser = Browser::new(&app);
    let token = browser.token().await.token();
    let game = format!("{}/", app.origin("demo"));
    let signed_in = browser.sign_in("Ada Lovelace", &game).await;
    let session = browser.cookie("platform-session").unwrap().to_owned();
    assert!(signed_in.location().starts_with(&app.origin("demo")));
    let secret = "c2VjcmV0LW9mLWEtcGxheWVy";
    let request = app
        .get("demo", &format!("/{secret}?code={secret}"))
        .header("cookie", format!("platform-session={secret}"))
        .header("authorization", format!("Bearer {secret}"))
        .header("user-agent", secret)
        .header("x-forwarded-for", "203.0.113.77")
        .header("x-request-id", secret);
    assert_eq!(send(request).await.status, 404);
    collector
        .span("the sign-in's", |span| {
            answers(span, "GET /callback/{provider}")
        })
        .await;
    collector
        .span("the last request's", |span| answers(span, "GET (files)"))
        .await;
    let form_token = browser.form_token().to_owned();
    app.running.stop().await.unwrap();
    let sent = collector.everything();
    assert!(contains(&sent, "http.route"));
    let claims: Vec<&str> = token.split('.').collect();
    for hidden in [
        secret,
        session.as_str(),
        claims[1],
        claims[2],
        &form_token,
        "Lovelace",
        "203.0.113",
    ] {
        assert!(!contains(&sent, hidden), "{hidden} was sent");
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
