//! The return addresses of pages, over HTTP.

use reqwest::Method;

use crate::support::{TestApp, send};

/// A few of each kind; the whole table is next to the check.
const HOSTILE: [&str; 24] = [
    "",
    "/",
    "//evil.example",
    "/\\evil.example",
    "https://evil.example/",
    "javascript:alert(1)",
    "data:text/html,x",
    "http://AUTH/login",
    "http://HOST@evil.example/",
    "http://me@demo.HOST/",
    "http://demo.HOST.evil.example/",
    "http://evil.example/?redirect=http://demo.HOST/",
    "http://evil.example#http://demo.HOST/",
    "http://evil.example\\@demo.HOST/",
    "http:demo.HOST/",
    "http:///demo.HOST/",
    "https://demo.HOST/",
    "http://demo.HOST1/",
    "http://demo.HOST\\@evil.example/",
    " http://demo.HOST/",
    "http://demo.HOST/\r\nSet-Cookie: a=1",
    "http://demo.HOST/\t",
    "http://demo%2eHOST/",
    "http://demo\u{3002}HOST/",
];

#[tokio::test]
async fn no_page_leads_away_from_the_platform() {
    let app = TestApp::start().await;
    let first = send(app.post_token()).await;
    let opened = app.open("/profile", first.cookie()).await;
    let host = format!("platform.localhost:{}", app.port());
    for given in HOSTILE {
        let given = given
            .replace("AUTH", &format!("auth.{host}"))
            .replace("HOST", &host);
        for path in ["/login", "/profile"] {
            let request = app
                .get("auth", path)
                .header("cookie", &opened.cookies)
                .query(&[("redirect", &given)]);
            let answer = send(request).await;
            assert_eq!(answer.problem(), "invalid-redirect", "{path} {given:?}");
            assert_eq!(answer.status, 400);
            assert_eq!(answer.header("set-cookie"), None, "nothing else happens");
        }
        let fields = [
            ("csrf", opened.token()),
            ("redirect", &given),
            ("action", "rename"),
            ("username", "ada"),
        ];
        let answer = send(app.post_form("/profile", &opened.cookies, &fields)).await;
        assert_eq!(answer.problem(), "invalid-redirect", "{given:?}");
    }
    let name = send(app.post_token().header("cookie", first.cookie().unwrap())).await;
    assert_eq!(name.claims().username, first.claims().username);

    let game = format!("{}/", app.origin("demo"));
    for path in ["/login", "/profile"] {
        let twice = app
            .get("auth", path)
            .query(&[("redirect", &game), ("redirect", &game)]);
        assert_eq!(send(twice).await.problem(), "invalid-redirect");
    }
}

#[tokio::test]
async fn odd_spellings_of_good_addresses_come_out_in_one() {
    let app = TestApp::start().await;
    let port = app.port();
    for (given, expected) in [
        (
            format!("HTTP://DEMO.Platform.localhost:{port}"),
            format!("http://demo.platform.localhost:{port}/"),
        ),
        (
            format!("http://dev-demo.platform.localhost:{port}/a/../b?c=\u{e9}#d"),
            format!("http://dev-demo.platform.localhost:{port}/b?c=%C3%A9#d"),
        ),
        (
            format!("http://platform.localhost:{port}?x"),
            format!("http://platform.localhost:{port}/?x"),
        ),
    ] {
        let request = app.get("auth", "/login").query(&[("redirect", &given)]);
        let answer = send(request).await;
        assert_eq!(answer.status, 200, "{given}");
        let field = format!("name=\"redirect\" value=\"{expected}\"");
        assert!(answer.text().contains(&field), "{field}");
    }
}

#[tokio::test]
async fn a_project_without_a_deployment_is_an_address_all_the_same() {
    let app = TestApp::start().await;
    app.sql("DELETE FROM current_deployments WHERE environment = 'dev'");
    app.learn_games().await;
    let game = format!("{}/", app.origin("dev-demo"));
    let request = app
        .request(Method::GET, "auth", "/login")
        .query(&[("redirect", &game)]);
    let answer = send(request).await;
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("Back to demo (dev)"));
}
