//! External providers: how often they are asked, and the effect of their failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use platform_openid::IdentityProvider;
use platform_server::config::{Config, Secret};
use platform_test_ports::ReservedPort;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::game;
use crate::browser::Browser;
use crate::support::TestApp;

/// A provider with metadata and an empty key set that counts its requests.
pub(crate) struct Metadata {
    pub(crate) issuer: String,
    asked: Arc<AtomicUsize>,
    pub(crate) down: Arc<AtomicUsize>,
    server: JoinSet<()>,
}

impl Metadata {
    pub(crate) async fn start(path: &str, says: impl FnOnce(&str) -> serde_json::Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::listen(listener, path, says)
    }

    /// Listens on a port where another one may follow.
    async fn start_on(port: &ReservedPort) -> Self {
        let listener = TcpListener::bind(port.address()).await.unwrap();
        Self::listen(listener, "", good)
    }

    fn listen(
        listener: TcpListener,
        path: &str,
        says: impl FnOnce(&str) -> serde_json::Value,
    ) -> Self {
        let port = listener.local_addr().unwrap().port();
        let issuer = format!("http://id.localhost:{port}{path}");
        let metadata = says(&issuer).to_string();
        let asked = Arc::new(AtomicUsize::new(0));
        let down = Arc::new(AtomicUsize::new(0));
        let (counter, is_down) = (Arc::clone(&asked), Arc::clone(&down));
        // No connection outlives the provider.
        let kind = || {
            [
                (header::CONTENT_TYPE, "application/json"),
                (header::CONNECTION, "close"),
            ]
        };
        let metadata = move || async move {
            counter.fetch_add(1, Ordering::SeqCst);
            match is_down.load(Ordering::SeqCst) {
                0 => Ok((kind(), metadata)),
                _ => Err(StatusCode::BAD_GATEWAY),
            }
        };
        let well_known = format!(
            "{}/.well-known/openid-configuration",
            path.trim_end_matches('/')
        );
        let routes = Router::new().route(&well_known, get(metadata)).route(
            "/jwks",
            get(move || async move { (kind(), r#"{"keys":[]}"#) }),
        );
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self {
            issuer,
            asked,
            down,
            server,
        }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Returns the metadata of a provider.
pub(crate) fn good(issuer: &str) -> serde_json::Value {
    let host = issuer.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{host}/authorize?tenant=1"),
        "token_endpoint": format!("{host}/token"),
        "jwks_uri": format!("{host}/jwks"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    })
}

/// Returns the settings of a provider.
pub(crate) fn named(id: &str, issuer: &str) -> IdentityProvider {
    IdentityProvider {
        id: id.to_owned(),
        name: id.to_owned(),
        issuer: issuer.to_owned(),
        client_id: "client".to_owned(),
        client_secret: Secret::new("secret".to_owned()),
        scopes: ["openid", "profile"].map(str::to_owned).to_vec(),
    }
}

async fn platform_with(providers: Vec<IdentityProvider>) -> TestApp {
    TestApp::with(|config: &mut Config| config.identity_providers = providers).await
}

#[tokio::test]
async fn a_sign_in_begins_with_all_that_the_standards_ask_for() {
    let provider = Metadata::start("/realms/play", good).await;
    let app = platform_with(vec![named("one", &provider.issuer)]).await;
    let mut browser = Browser::new(&app);
    let chosen = browser.choose("one", &game(&app)).await;
    assert!(chosen.location().contains("/authorize?tenant=1&"));
    let query = chosen.location_query();
    let callback = format!("{}/callback/one", app.origin("auth"));
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", "client"),
        ("scope", "openid profile"),
        ("code_challenge_method", "S256"),
        ("redirect_uri", &callback),
    ] {
        assert_eq!(query[name], value);
    }
    let again = browser.choose("one", &game(&app)).await.location_query();
    for random in ["state", "nonce", "code_challenge"] {
        assert_eq!(query[random].len(), 43, "256 bits in base64url");
        assert_ne!(query[random], again[random], "{random}");
    }
    assert!(!chosen.location().contains("secret"));
}

#[tokio::test]
async fn metadata_are_asked_for_once_in_ten_minutes() {
    let provider = Metadata::start("", good).await;
    let app = platform_with(vec![named("one", &provider.issuer)]).await;
    assert_eq!(provider.asked(), 0, "a start asks nobody");
    let mut browser = Browser::new(&app);
    for _ in 0..3 {
        browser.choose("one", &game(&app)).await.location();
    }
    assert_eq!(provider.asked(), 1);
    app.clock.advance(599_000);
    browser.choose("one", &game(&app)).await.location();
    assert_eq!(provider.asked(), 1);
    app.clock.advance(1_000);
    browser.choose("one", &game(&app)).await.location();
    assert_eq!(provider.asked(), 2);
}

#[tokio::test]
async fn those_who_come_at_once_ask_once() {
    let provider = Metadata::start("", good).await;
    let app = platform_with(vec![named("one", &provider.issuer)]).await;
    let redirect = game(&app);
    let begin = || async {
        let mut browser = Browser::new(&app);
        browser.choose("one", &redirect).await.location()
    };
    let all = futures_util::future::join_all((0..20).map(|_| begin())).await;
    assert_eq!(all.len(), 20);
    assert_eq!(provider.asked(), 1);
}

#[tokio::test]
async fn a_provider_that_was_down_is_asked_again() {
    let provider = Metadata::start("", good).await;
    provider.down.store(1, Ordering::SeqCst);
    let app = platform_with(vec![named("one", &provider.issuer)]).await;
    let mut browser = Browser::new(&app);
    let guest = browser.token().await.claims();
    for times in 1..=2 {
        let back = browser.choose("one", &game(&app)).await;
        let expected = ("provider-unavailable".to_owned(), Some(game(&app)));
        assert_eq!(back.setback(), expected);
        assert_eq!(provider.asked(), times);
    }
    provider.down.store(0, Ordering::SeqCst);
    let chosen = browser.choose("one", &game(&app)).await;
    assert!(chosen.location().starts_with(&provider.issuer));
    assert_eq!(browser.token().await.claims().sub, guest.sub);
}

#[tokio::test]
async fn a_provider_that_dies_while_somebody_signs_in_changes_nothing_and_is_used_again() {
    let port = ReservedPort::take().unwrap();
    let provider = Metadata::start_on(&port).await;
    let app = platform_with(vec![named("one", &provider.issuer)]).await;
    let mut browser = Browser::new(&app);
    let guest = browser.token().await.claims();
    let chosen = browser.choose("one", &game(&app)).await;
    let Metadata { mut server, .. } = provider;
    server.shutdown().await;
    let state = &chosen.location_query()["state"];
    let callback = format!("{}/callback/one?code=c&state={state}", app.origin("auth"));
    let back = browser.get(&callback).await;
    let unavailable = ("provider-unavailable".to_owned(), Some(game(&app)));
    assert_eq!(back.setback(), unavailable);
    assert_eq!(browser.token().await.claims().sub, guest.sub);
    // After a while it is noticed before the player is sent there.
    app.clock.advance(600_000);
    let chosen = browser.choose("one", &game(&app)).await;
    assert_eq!(chosen.setback(), unavailable);
    assert_eq!(browser.token().await.claims().sub, guest.sub);

    let provider = Metadata::start_on(&port).await;
    let chosen = browser.choose("one", &game(&app)).await;
    assert!(chosen.location().starts_with(&provider.issuer));
    assert_eq!(browser.token().await.claims().sub, guest.sub);
}

#[tokio::test]
async fn metadata_that_cannot_be_believed_begin_nothing() {
    let with = |name: &'static str, value: serde_json::Value| {
        move |issuer: &str| {
            let mut metadata = good(issuer);
            metadata[name] = value;
            metadata
        }
    };
    let slash = Metadata::start("", |issuer| good(&format!("{issuer}/"))).await;
    let other = Metadata::start("", with("issuer", json!("https://evil.example"))).await;
    let script = "javascript:alert(1)";
    let plain = "http://id.example/x";
    let authorize = Metadata::start("", with("authorization_endpoint", json!(script))).await;
    let token = Metadata::start("", with("token_endpoint", json!(plain))).await;
    let no_token = Metadata::start("", with("token_endpoint", json!(null))).await;
    let keys = Metadata::start("", with("jwks_uri", json!(plain))).await;
    let methods = json!(["private_key_jwt"]);
    let auth = "token_endpoint_auth_methods_supported";
    let method = Metadata::start("", with(auth, methods)).await;
    let closed = ReservedPort::take().unwrap();
    let nobody = format!("http://{}", closed.address());
    let all = [
        ("slash", slash.issuer.as_str()),
        ("other", &other.issuer),
        ("authorize", &authorize.issuer),
        ("token", &token.issuer),
        ("no-token", &no_token.issuer),
        ("keys", &keys.issuer),
        ("method", &method.issuer),
        ("nobody", &nobody),
        // No name server knows it, if one answers at all (RFC 6761 §6.4).
        ("no-name", "https://nowhere.invalid"),
    ];
    let app = platform_with(all.iter().map(|(id, issuer)| named(id, issuer)).collect()).await;
    let mut browser = Browser::new(&app);
    for (id, _) in all {
        let back = browser.choose(id, &game(&app)).await;
        assert_eq!(back.setback().0, "provider-unavailable", "{id}");
    }
}

#[tokio::test]
async fn an_answer_at_another_providers_callback_is_a_mix_up() {
    let one = Metadata::start("", good).await;
    let two = Metadata::start("", good).await;
    let providers = vec![named("one", &one.issuer), named("two", &two.issuer)];
    let app = platform_with(providers).await;
    let mut browser = Browser::new(&app);
    let chosen = browser.choose("one", &game(&app)).await;
    let state = &chosen.location_query()["state"];
    let callback = format!("{}/callback/two?code=c&state={state}", app.origin("auth"));
    let back = browser.get(&callback).await;
    assert_eq!(back.setback(), ("failed".to_owned(), Some(game(&app))));
    assert_eq!(two.asked(), 0, "nothing was sent to the other one");
}

#[tokio::test]
async fn a_sign_in_that_failed_makes_old_metadata_doubtful() {
    let provider = Metadata::start("", good).await;
    let app = platform_with(vec![named("one", &provider.issuer)]).await;
    let mut browser = Browser::new(&app);
    // There is nothing at the token endpoint.
    let fail = async |browser: &mut Browser<'_>| {
        let chosen = browser.choose("one", &game(&app)).await;
        let state = &chosen.location_query()["state"];
        let callback = format!("{}/callback/one?code=c&state={state}", app.origin("auth"));
        let back = browser.get(&callback).await;
        assert_eq!(back.setback(), ("failed".to_owned(), Some(game(&app))));
    };
    fail(&mut browser).await;
    fail(&mut browser).await;
    assert_eq!(provider.asked(), 1, "they were asked for just now");
    app.clock.advance(30_000);
    fail(&mut browser).await;
    assert_eq!(
        provider.asked(),
        1,
        "they are asked for when they are needed"
    );
    fail(&mut browser).await;
    assert_eq!(provider.asked(), 2);
}
