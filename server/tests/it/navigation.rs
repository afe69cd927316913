//! What a person sees who opens an address that does not exist.

use platform_protocol::problem::ProblemCode;
use reqwest::{Method, RequestBuilder};

use crate::support::{TestApp, send};

/// The `Accept` header of a browser that opens an address.
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

fn opened(request: RequestBuilder) -> RequestBuilder {
    request
        .header("accept", BROWSER)
        .header("sec-fetch-mode", "navigate")
}

#[tokio::test]
async fn who_opens_what_is_not_there_reads_a_page_with_a_way_onward() {
    let app = TestApp::start().await;
    for (method, label, path, status, title) in [
        (Method::GET, "nobody", "/", 404, "Unknown host"),
        (Method::GET, "", "/nothing", 404, "Not found"),
        (Method::GET, "auth", "/", 404, "Not found"),
        (Method::GET, "auth", "/problems/nothing", 404, "Not found"),
        (Method::GET, "demo", "/nothing", 404, "Not found"),
        (Method::GET, "demo", "/__platform/", 404, "Not found"),
        (Method::POST, "auth", "/login", 405, "Method not allowed"),
        (Method::POST, "", "/", 405, "Method not allowed"),
    ] {
        let what = format!("{method} {label} {path}");
        let answer = send(opened(app.request(method.clone(), label, path))).await;
        assert_eq!(answer.status, status, "{what}");
        assert_eq!(
            answer.header("content-type"),
            Some("text/html; charset=utf-8"),
            "{what}"
        );
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{what}");
        assert_eq!(answer.headers.contains_key("allow"), status == 405);
        let home = &app.running.origin;
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with(&format!("default-src 'none'; style-src {home};"))
                && !policy.contains("unsafe"),
            "{policy}"
        );
        let id = answer.header("x-request-id").unwrap();
        let html = answer.text();
        for part in [
            format!("<h1>{title}</h1>"),
            format!("href=\"{home}/\""),
            format!("href=\"{home}/static/platform.css\""),
            format!("<code>{id}</code>"),
        ] {
            assert!(html.contains(&part), "{what} has {part}: {html}");
        }
        for accept in ["*/*", "application/json"] {
            let request = app.request(method.clone(), label, path);
            let answer = send(request.header("accept", accept)).await;
            assert_eq!(answer.status, status, "{what}");
            let slug = title.to_ascii_lowercase().replace(' ', "-");
            assert_eq!(answer.problem(), slug, "{what}");
            let vary: Vec<_> = answer.headers.get_all("vary").iter().collect();
            assert!(
                vary.iter()
                    .any(|value| value.to_str().unwrap().contains("Accept,")),
                "{what}: {vary:?}"
            );
        }
    }
}

#[tokio::test]
async fn what_the_runtime_alone_asks_has_no_page() {
    let app = TestApp::start().await;
    let answer = send(opened(app.get("auth", "/token"))).await;
    assert_eq!(answer.problem(), "method-not-allowed");
    assert_eq!(answer.header("vary"), Some("Origin"));
}

#[tokio::test]
async fn problems_that_signing_in_solves_lead_there() {
    let app = TestApp::start().await;
    let home = format!("href=\"{}/\"", app.running.origin);
    let sign_in = format!("href=\"{}/login\"", app.origin("auth"));
    for slug in ProblemCode::ALL {
        let answer = send(app.get("auth", &format!("/problems/{}", slug.as_str()))).await;
        assert!(answer.text().contains(&home), "{}", slug.as_str());
        assert_eq!(
            answer.text().contains(&sign_in),
            matches!(
                slug,
                ProblemCode::SessionExpired | ProblemCode::GuestLimitReached
            ),
            "{}",
            slug.as_str()
        );
    }
}

#[tokio::test]
async fn the_platforms_hosts_have_an_icon() {
    let app = TestApp::start().await;
    for label in ["", "auth"] {
        for path in ["/favicon.ico", "/static/platform.svg"] {
            let answer = send(app.get(label, path)).await;
            assert_eq!(answer.status, 200, "{label}{path}");
            assert_eq!(answer.header("content-type"), Some("image/svg+xml"));
            assert!(answer.text().starts_with("<svg "));
        }
    }
    assert!(
        send(app.get("", "/"))
            .await
            .text()
            .contains("href=\"/static/platform.svg\"")
    );
}

#[tokio::test]
async fn the_first_page_names_games_by_their_titles() {
    let app = TestApp::start().await;
    let console = send(app.get("", "/")).await;
    let html = console.text();
    for part in [
        "<span class=\"name\"><bdi>Firefly</bdi></span>",
        "/__platform/runtime.js",
        &format!("href=\"{}/.well-known/jwks.json\"", app.origin("auth")),
        &format!("demo.platform.localhost:{}", app.port()),
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
}
