//! The administration pages: they are the same for everybody, without any player's data.

use crate::caller::Caller;
use crate::support::{TestApp, send};

const PAGES: [&str; 7] = [
    "/admin",
    "/admin/players/0190b3c4-0000-7000-8000-000000000000",
    "/admin/guests",
    "/admin/projects",
    "/admin/keys",
    "/admin/nodes",
    "/admin/events",
];

#[tokio::test]
async fn frames_are_the_same_for_everybody_and_run_their_own_modules_alone() {
    let app = TestApp::start().await;
    let admin = Caller::admin(&app).await;
    let auth = app.origin("auth");
    for path in PAGES {
        let page = send(app.get("", path)).await;
        assert_eq!(page.status, 200, "{path}");
        assert_eq!(
            page.header("content-security-policy"),
            Some(
                format!(
                    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                     connect-src 'self' {auth}; frame-src 'none'; form-action 'none'; base-uri \
                     'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                     trusted-types 'none'"
                )
                .as_str()
            ),
            "{path}"
        );
        let html = page.text();
        for inline in ["<style", " style=", " onclick=", "<script>"] {
            assert!(!html.contains(inline), "{path}: {inline}");
        }
        assert_eq!(html.matches("aria-current=").count(), 1, "{path}");
        let same = app.get("", path).header("cookie", &admin.cookie);
        let same = send(same.bearer_auth(&admin.token)).await;
        assert_eq!(same.text(), html, "{path}");
        // Every module that the page names exists.
        let (_, script) = html.split_once("<script type=\"module\" src=\"").unwrap();
        let script = script.split('"').next().unwrap();
        assert_eq!(send(app.get("", script)).await.status, 200, "{script}");
    }
}

#[tokio::test]
async fn what_can_be_no_player_has_no_page() {
    let app = TestApp::start().await;
    for path in [
        "/admin/players/me",
        "/admin/players/%3Cb%3E",
        "/admin/players/",
        "/admin/nothing",
    ] {
        let answer = send(app.get("", path)).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(!answer.text().contains("<b>"), "{path}");
    }
    let elsewhere = send(app.get("auth", "/admin")).await;
    assert_eq!(elsewhere.status, 404);
}

#[tokio::test]
async fn signing_in_leads_back_to_the_page() {
    let app = TestApp::start().await;
    let origin = app.running.origin.clone();
    for path in PAGES {
        let page = send(app.get("", path)).await;
        let back = format!("{origin}{path}");
        let back = back.replace(':', "%3A").replace('/', "%2F");
        let sign_in = format!("{}/login?redirect={back}\"", app.origin("auth"));
        assert!(page.text().contains(&sign_in), "{path}");
    }
}
