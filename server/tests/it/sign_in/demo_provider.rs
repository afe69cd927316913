//! The built-in demo provider is a provider like any other.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::game;
use crate::browser::{Browser, hidden_field};
use crate::support::{TestApp, send};

fn endpoint(app: &TestApp, path: &str) -> String {
    format!("{}/demo-provider{path}", app.origin("auth"))
}

#[tokio::test]
async fn it_says_of_itself_what_a_provider_says() {
    let app = TestApp::start().await;
    let answer = send(app.get("auth", "/demo-provider/.well-known/openid-configuration")).await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let metadata: Value = answer.json();
    assert_eq!(metadata["issuer"], endpoint(&app, ""));
    assert_eq!(metadata["token_endpoint"], endpoint(&app, "/token"));
    let keys: Value = send(app.get("auth", "/demo-provider/jwks.json"))
        .await
        .json();
    assert_eq!(keys["keys"][0]["alg"], "ES256");
    assert!(keys["keys"][0].get("d").is_none(), "no private key");
    let platform: Value = send(app.get("auth", "/.well-known/jwks.json")).await.json();
    assert_ne!(
        platform["keys"][0]["kid"], keys["keys"][0]["kid"],
        "it cannot sign game tokens"
    );
}

#[tokio::test]
async fn it_is_there_only_where_no_other_is_and_nothing_leaves_the_machine() {
    let with_other = TestApp::with(|config| {
        config.identity_providers = vec![platform_openid::IdentityProvider {
            id: "other".to_owned(),
            name: "Other".to_owned(),
            issuer: "http://localhost:1/".to_owned(),
            client_id: "c".to_owned(),
            client_secret: platform_server::config::Secret::new("s".to_owned()),
            scopes: vec!["openid".to_owned()],
        }];
    })
    .await;
    let elsewhere = TestApp::with(|config| {
        config.origin = Some("https://games.example".parse().unwrap());
    })
    .await;
    let metadata = "/demo-provider/.well-known/openid-configuration";
    let answer = send(with_other.get("auth", metadata)).await;
    assert_eq!(answer.problem(), "not-found");
    let names: Vec<_> = with_other.running.state.auth.providers.list().collect();
    assert_eq!(names, [("other", "Other")]);
    let request = elsewhere.request_host(reqwest::Method::GET, "auth.games.example", metadata);
    assert_eq!(send(request).await.problem(), "not-found");
    assert_eq!(elsewhere.running.state.auth.providers.list().count(), 0);
}

#[tokio::test]
async fn its_page_has_no_script_and_its_form_leads_back_to_the_game() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    let chosen = browser.choose("demo", &game(&app)).await;
    let page = browser.get(&chosen.location()).await;
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("form-action 'self' https: http:;"),
        "{policy}"
    );
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn it_asks_again_for_a_name_that_is_none() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    let long = "x".repeat(65);
    for name in ["", "  ", &long, "a\u{7}b"] {
        let fields = [("name", name), ("action", "sign-in")];
        let asked = browser.at_demo_provider(&game(&app), &fields).await;
        assert_eq!(asked.status, 422);
        assert!(asked.text().contains("role=\"alert\""));
        let request = hidden_field(&asked, "request");
        let fields = [("request", request.as_str()), ("name", "<b>\"x\"")];
        let answered = browser.post(&endpoint(&app, "/authorize"), &fields).await;
        assert!(answered.location().contains("code="));
        let again = browser.post(&endpoint(&app, "/authorize"), &fields).await;
        assert_eq!(again.problem(), "invalid-request", "a page works once");
    }
}

#[tokio::test]
async fn it_answers_this_platform_alone() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    let chosen = browser.choose("demo", &game(&app)).await.location();
    let good = url::Url::parse(&chosen).unwrap();
    let changed = |name: &str, value: Option<&str>| {
        let mut address = good.clone();
        let pairs: Vec<(String, String)> = good
            .query_pairs()
            .into_owned()
            .filter(|(found, _)| found != name)
            .chain(value.map(|value| (name.to_owned(), value.to_owned())))
            .collect();
        address.query_pairs_mut().clear().extend_pairs(pairs);
        address.to_string()
    };
    for (name, value) in [
        ("client_id", Some("other")),
        ("client_id", None),
        ("redirect_uri", Some("https://evil.example/")),
        ("redirect_uri", None),
    ] {
        let answer = browser.get(&changed(name, value)).await;
        assert_eq!(answer.problem(), "invalid-request", "{name} {value:?}");
    }
    for (name, value, error) in [
        ("response_type", Some("token"), "unsupported_response_type"),
        ("response_type", None, "unsupported_response_type"),
        ("scope", Some("email"), "invalid_scope"),
        ("code_challenge", None, "invalid_request"),
        ("code_challenge", Some("short"), "invalid_request"),
        ("code_challenge_method", Some("plain"), "invalid_request"),
        ("code_challenge_method", None, "invalid_request"),
    ] {
        let answer = browser.get(&changed(name, value)).await;
        assert_eq!(answer.location_query()["error"], error, "{name} {value:?}");
    }
}

#[tokio::test]
async fn a_code_is_its_clients_alone() {
    let app = TestApp::start().await;
    let registration = app
        .running
        .state
        .auth
        .demo_provider
        .as_ref()
        .unwrap()
        .registration();
    let id = registration.client_id.as_str();
    let secret = registration.client_secret.expose();
    let redirect = format!("{}/callback/demo", app.origin("auth"));
    let wrong_verifier = "v".repeat(43);
    for (user, password, changed, status, error) in [
        (id, "wrong", None, 401, "invalid_client"),
        ("other", secret, None, 401, "invalid_client"),
        (
            id,
            secret,
            Some(("grant_type", "password")),
            400,
            "unsupported_grant_type",
        ),
        (id, secret, Some(("code", "unknown")), 400, "invalid_grant"),
        (
            id,
            secret,
            Some(("redirect_uri", "https://evil.example/")),
            400,
            "invalid_grant",
        ),
        (
            id,
            secret,
            Some(("code_verifier", &*wrong_verifier)),
            400,
            "invalid_grant",
        ),
    ] {
        let mut browser = Browser::new(&app);
        let fields = [("name", "Ada"), ("action", "sign-in")];
        let answered = browser.at_demo_provider(&game(&app), &fields).await;
        let code = answered.location_query()["code"].clone();
        let mut fields = BTreeMap::from([
            ("grant_type", "authorization_code"),
            ("code", &*code),
            ("redirect_uri", &*redirect),
            ("code_verifier", &*wrong_verifier),
        ]);
        fields.extend(changed);
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&fields)
            .finish();
        let request = app
            .request(reqwest::Method::POST, "auth", "/demo-provider/token")
            .basic_auth(user, Some(password))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body);
        let answer = send(request).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.json::<Value>()["error"], error);
    }
}

#[tokio::test]
async fn a_code_lives_less_than_a_minute() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    let fields = [("name", "Ada"), ("action", "sign-in")];
    let callback = browser
        .at_demo_provider(&game(&app), &fields)
        .await
        .location();
    app.clock.advance(60_000);
    let late = browser.get(&callback).await;
    assert_eq!(late.setback().0, "failed");
}

#[tokio::test]
async fn a_platform_that_has_spoken_to_itself_stops_at_once() {
    let app = TestApp::start().await;
    Browser::new(&app)
        .sign_in("Ada", &game(&app))
        .await
        .location();
    let stopped = tokio::time::timeout(Duration::from_secs(5), app.running.stop()).await;
    stopped.expect("no connection is waited for").unwrap();
}

#[tokio::test]
async fn a_guest_is_told_that_the_demo_provider_renames_them() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    let first = browser.token().await.claims();
    let login = format!("{}/login?redirect={}", app.origin("auth"), game(&app));
    let page = browser.get(&login).await;
    let told = "play under the name that you type, if it is free";
    assert!(page.text().contains(told), "{}", page.text());
    assert!(!page.text().contains("keep this name"), "{}", page.text());
    let chosen = browser.choose("demo", &game(&app)).await;
    let asked = browser.get(&chosen.location()).await;
    assert!(asked.text().contains("is renamed"), "{}", asked.text());
    browser.sign_in("Grace", &game(&app)).await;
    let second = browser.token().await.claims();
    assert_eq!(first.sub, second.sub, "the same player");
    assert_eq!(second.username, "Grace");
}
