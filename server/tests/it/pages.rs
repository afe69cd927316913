//! What people and verifiers read: pages, the key set, metadata.

use insta::assert_snapshot;
use platform_protocol::problem::ProblemCode;
use platform_server::domain::audit::Actor;
use serde_json::json;

use crate::support::{Answer, TestApp, send};

/// A page that works without a script.
pub(crate) fn assert_is_page(answer: &Answer, what: &str) {
    assert_nothing_is_inline(answer, what);
    assert!(!answer.text().contains("<script"), "{what} has a script");
}

fn assert_nothing_is_inline(answer: &Answer, what: &str) {
    assert_eq!(
        answer.header("content-type"),
        Some("text/html; charset=utf-8"),
        "{what}"
    );
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{what}");
    assert!(!policy.contains("unsafe"), "{what}");
    let html = answer.text();
    for inline in ["<style", " style=", " onclick="] {
        assert!(!html.contains(inline), "{what} has {inline}");
    }
    let count = |text| html.matches(text).count();
    let linked = count("<script type=\"module\" src=\"/");
    assert_eq!(count("<script"), linked, "{what} has an inline script");
    assert!(
        html.contains("<html lang=\"en\">") && html.contains("name=\"viewport\""),
        "{what}"
    );
}

#[tokio::test]
async fn every_problem_type_is_an_address_with_a_page() {
    let app = TestApp::start().await;
    for slug in ProblemCode::ALL {
        let answer = send(app.get("auth", &format!("/problems/{}", slug.as_str()))).await;
        assert_eq!(answer.status, 200, "{}", slug.as_str());
        assert_is_page(&answer, slug.as_str());
        assert!(answer.text().contains(slug.title()), "{}", slug.as_str());
    }
    // Those that the runtime finds by itself.
    for (slug, file) in [
        (
            "runtime-unavailable",
            include_str!("../../../loader/js/loader.js"),
        ),
        (
            "unsupported-context",
            include_str!("../../../runtime-wasm/src/web/page.js"),
        ),
    ] {
        assert!(file.contains(&format!("\"{slug}\"")), "{slug}");
        let answer = send(app.get("auth", &format!("/problems/{slug}"))).await;
        assert_eq!(answer.status, 200, "{slug}");
        assert_is_page(&answer, slug);
        assert!(answer.text().contains(slug), "{}", answer.text());
    }
    assert_eq!(
        send(app.get("auth", "/problems/nothing")).await.problem(),
        "not-found"
    );
}

#[tokio::test]
async fn pages_bring_their_stylesheet_along() {
    let app = TestApp::start().await;
    for label in ["", "auth"] {
        let answer = send(app.get(label, "/static/platform.css")).await;
        assert_eq!(
            answer.header("content-type"),
            Some("text/css; charset=utf-8")
        );
        assert!(answer.text().contains("prefers-color-scheme: dark"));
    }
    let console = send(app.get("", "/")).await;
    assert_nothing_is_inline(&console, "console");
    assert!(console.text().contains("href=\"/static/platform.css\""));
    assert!(
        console
            .text()
            .contains(&format!("href=\"{}/\"", app.origin("demo")))
    );
}

#[tokio::test]
async fn the_key_set_and_the_metadata_are_public() {
    let app = TestApp::start().await;
    let port = app.port().to_string();
    let metadata = send(app.get("auth", "/.well-known/oauth-authorization-server")).await;
    assert_snapshot!(metadata.text().replace(&port, "[port]"), @r#"{"issuer":"http://auth.platform.localhost:[port]","jwks_uri":"http://auth.platform.localhost:[port]/.well-known/jwks.json","device_authorization_endpoint":"http://auth.platform.localhost:[port]/device/authorization","token_endpoint":"http://auth.platform.localhost:[port]/device/token","token_endpoint_auth_methods_supported":["none"],"revocation_endpoint":"http://auth.platform.localhost:[port]/device/revoke","revocation_endpoint_auth_methods_supported":["none"],"response_types_supported":[],"grant_types_supported":["urn:ietf:params:oauth:grant-type:device_code","refresh_token"]}"#);
    let key_set = send(app.get("auth", "/.well-known/jwks.json")).await;
    for answer in [&metadata, &key_set] {
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("cache-control"), Some("public, max-age=600"));
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    }
    let mut keys: serde_json::Value = key_set.json();
    for member in ["x", "y", "kid"] {
        let value = keys["keys"][0][member].take();
        assert_eq!(
            value.as_str().map(str::len),
            Some(43),
            "256 bits in base64url"
        );
        keys["keys"][0][member] = format!("[{member}]").into();
    }
    let key = json!({"alg": "ES256", "crv": "P-256", "kid": "[kid]", "kty": "EC", "use": "sig", "x": "[x]", "y": "[y]"});
    assert_eq!(keys, json!({ "keys": [key] }));
}

#[tokio::test]
async fn a_rotated_key_is_published_before_it_signs() {
    let app = TestApp::start().await;
    let header = |answer: &Answer| answer.token().split('.').next().unwrap().to_owned();
    let before = header(&send(app.post_token()).await);
    app.running
        .state
        .auth
        .keys
        .rotate(Actor::Operator)
        .await
        .unwrap();
    let keys: serde_json::Value = send(app.get("auth", "/.well-known/jwks.json")).await.json();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2);
    app.clock.advance(20 * 60 * 1_000);
    assert_eq!(header(&send(app.post_token()).await), before);
    app.clock.advance(60 * 1_000);
    assert_ne!(header(&send(app.post_token()).await), before);
}

#[tokio::test]
async fn every_answer_of_a_platform_over_https_keeps_browsers_there() {
    let public = TestApp::with(|config| {
        config.origin = Some("https://play.example".parse().unwrap());
        config.demo = false;
    })
    .await;
    for (host, path) in [
        ("play.example", "/"),
        ("auth.play.example", "/.well-known/jwks.json"),
        ("auth.play.example", "/nothing"),
        ("nobody.play.example", "/"),
    ] {
        let asked = public.request_host(reqwest::Method::GET, host, path);
        let answer = send(asked).await;
        assert_eq!(
            answer.header("strict-transport-security"),
            Some("max-age=31536000"),
            "{host}{path}"
        );
    }
    let local = TestApp::start().await;
    let answer = send(local.get("", "/")).await;
    assert_eq!(answer.header("strict-transport-security"), None);
}

#[tokio::test]
async fn what_pages_of_any_host_look_like_may_be_loaded_there() {
    let app = TestApp::start().await;
    for path in ["/static/platform.css", "/static/platform.svg"] {
        let answer = send(app.get("", path)).await;
        let policy = answer.header("cross-origin-resource-policy");
        assert_eq!(policy, Some("cross-origin"), "{path}");
    }
    let page = send(app.get("", "/")).await;
    assert_eq!(
        page.header("cross-origin-resource-policy"),
        Some("same-origin")
    );
    assert_eq!(page.header("origin-agent-cluster"), Some("?1"));
}

#[tokio::test]
async fn whoever_finds_a_weakness_is_told_where_to_report_it() {
    let app = TestApp::with(|config| {
        config.security_contact = Some("mailto:security@play.example".to_owned());
    })
    .await;
    let path = "/.well-known/security.txt";
    for label in ["", "auth"] {
        let answer = send(app.get(label, path)).await;
        assert_eq!(answer.status, 200, "{label}");
        assert_eq!(
            answer.header("content-type"),
            Some("text/plain; charset=utf-8")
        );
        let (auth, port) = (app.origin("auth"), app.port());
        assert_eq!(
            answer.text(),
            format!(
                "Contact: mailto:security@play.example\nExpires: 2026-06-30T00:00:00Z\n\
                 Canonical: http://platform.localhost:{port}{path}\nCanonical: {auth}{path}\n"
            )
        );
    }
    // On a game's address, these paths belong to the game.
    assert_eq!(send(app.get("demo", path)).await.status, 404);
    let silent = TestApp::start().await;
    assert_eq!(send(silent.get("", path)).await.problem(), "not-found");
}
