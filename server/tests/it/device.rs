//! Signing in a device without a browser: the device's requests, over plain HTTP, with a clock that
//! the tests move. The tests of the page are in `device_page`.

use insta::assert_snapshot;
use reqwest::Method;
use serde_json::Value;

use crate::browser::{Browser, hidden_field};
use crate::support::{Answer, TestApp, send};

/// A device that asks for access to an account.
pub(crate) struct Device<'app> {
    app: &'app TestApp,
    pub(crate) device_code: String,
    pub(crate) user_code: String,
    pub(crate) complete: String,
}

/// Sends a form as a program does.
pub(crate) async fn ask(app: &TestApp, path: &str, fields: &[(&str, &str)]) -> Answer {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    let request = app
        .request(Method::POST, "auth", path)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body);
    send(request).await
}

impl<'app> Device<'app> {
    pub(crate) async fn begin(app: &'app TestApp) -> Self {
        let fields = [("client_id", "platform-cli")];
        let answer = ask(app, "/device/authorization", &fields).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let begun: Value = answer.json();
        let text = |member: &str| begun[member].as_str().unwrap().to_owned();
        Self {
            app,
            device_code: text("device_code"),
            user_code: text("user_code"),
            complete: text("verification_uri_complete"),
        }
    }

    /// Polls whether the device has been approved.
    pub(crate) async fn poll(&self) -> Answer {
        let fields = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
            ("device_code", self.device_code.as_str()),
            ("client_id", "platform-cli"),
        ];
        ask(self.app, "/device/token", &fields).await
    }

    /// Opens the address with the code, and presses a button of the page with this browser after
    /// the reading time.
    pub(crate) async fn decide(&self, browser: &mut Browser<'app>, action: &str) -> Answer {
        let page = browser.type_address(&self.complete).await;
        self.app.clock.advance(2_000);
        self.press(browser, &page, action).await
    }

    /// Presses a button of `page` with this browser.
    pub(crate) async fn press(
        &self,
        browser: &mut Browser<'app>,
        page: &Answer,
        action: &str,
    ) -> Answer {
        let token = browser.form_token().to_owned();
        let [code, account, shown] =
            ["user_code", "account", "shown"].map(|name| hidden_field(page, name));
        let fields = [
            ("csrf", token.as_str()),
            ("user_code", code.as_str()),
            ("account", account.as_str()),
            ("shown", shown.as_str()),
            ("action", action),
        ];
        let address = format!("{}/device", self.app.origin("auth"));
        browser.post(&address, &fields).await
    }
}

/// Returns the browser of a person with an account.
pub(crate) async fn account<'app>(app: &'app TestApp, name: &str) -> Browser<'app> {
    let mut browser = Browser::new(app);
    let game = format!("{}/", app.origin("demo"));
    let signed_in = browser.sign_in(name, &game).await;
    assert_eq!(signed_in.location(), game);
    browser
}

/// Returns a device that is signed in, and the response with its tokens.
pub(crate) async fn signed_in<'app>(app: &'app TestApp, browser: &mut Browser<'app>) -> Answer {
    let device = Device::begin(app).await;
    device.decide(browser, "approve").await.location();
    let given = device.poll().await;
    assert_eq!(given.status, 200, "{}", given.text());
    given
}

pub(crate) fn refresh_token(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let token = &answer.json::<Value>()["refresh_token"];
    token.as_str().unwrap().to_owned()
}

pub(crate) async fn refresh(app: &TestApp, token: &str) -> Answer {
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", token),
        ("client_id", "platform-cli"),
    ];
    ask(app, "/device/token", &fields).await
}

async fn revoke(app: &TestApp, token: &str) -> Answer {
    let fields = [("token", token), ("client_id", "platform-cli")];
    ask(app, "/device/revoke", &fields).await
}

/// Returns the code of an error, after checking everything else about it.
#[track_caller]
pub(crate) fn error(answer: &Answer, status: u16) -> String {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("x-request-id").map(str::len), Some(22));
    let error: Value = answer.json();
    let description = error["error_description"].as_str().unwrap();
    assert!(description.ends_with('.'), "{description}");
    error["error"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_device_gets_its_codes() {
    let app = TestApp::start().await;
    let fields = [("client_id", "platform-cli")];
    let answer = ask(&app, "/device/authorization", &fields).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let begun: Value = answer.json();
    let text = |member: &str| begun[member].as_str().unwrap();
    assert!(text("device_code").starts_with("platform_dc_"));
    let masked = answer
        .text()
        .replace(text("device_code"), "[device code]")
        .replace(text("user_code"), "[user code]")
        .replace(&app.port().to_string(), "[port]");
    assert_snapshot!(masked, @r#"{"device_code":"[device code]","user_code":"[user code]","verification_uri":"http://auth.platform.localhost:[port]/device","verification_uri_complete":"http://auth.platform.localhost:[port]/device?user_code=[user code]","expires_in":600,"interval":5}"#);
}

#[tokio::test]
async fn an_approved_device_asks_as_its_account_and_stays_signed_in() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "ada").await;
    let game = browser.token().await.claims();
    let device = Device::begin(&app).await;
    assert_eq!(error(&device.poll().await, 400), "authorization_pending");
    device.decide(&mut browser, "approve").await.location();
    let given = device.poll().await;
    let claims = given.claims();
    assert_eq!(
        (claims.sub.as_str(), claims.username.as_str()),
        (game.sub.as_str(), game.username.as_str())
    );
    assert_eq!(claims.aud, "platform:console");
    assert_eq!(claims.iss, app.origin("auth"));
    assert_eq!(claims.exp - claims.iat, 300);
    assert!(!claims.is_anon);
    let members: Value = given.json();
    assert_eq!(members["token_type"], "Bearer");
    assert_eq!(members["expires_in"], 300);
    assert_eq!(given.header("cache-control"), Some("no-store"));
    let projects = app.get("", "/api/projects").bearer_auth(given.token());
    assert_eq!(send(projects).await.status, 200);
    // Codes work once.
    assert_eq!(error(&device.poll().await, 400), "invalid_grant");

    app.clock.advance(16 * 60_000);
    let projects = app.get("", "/api/projects").bearer_auth(given.token());
    assert_eq!(send(projects).await.problem(), "not-signed-in");
    let next = refresh(&app, &refresh_token(&given)).await;
    let projects = app.get("", "/api/projects").bearer_auth(next.token());
    assert_eq!(send(projects).await.status, 200);
    assert_ne!(refresh_token(&next), refresh_token(&given));
}

#[tokio::test]
async fn a_device_hears_what_became_of_its_code() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "ada").await;
    let denied = Device::begin(&app).await;
    denied.decide(&mut browser, "deny").await.location();
    assert_eq!(error(&denied.poll().await, 400), "access_denied");

    let hasty = Device::begin(&app).await;
    assert_eq!(error(&hasty.poll().await, 400), "authorization_pending");
    app.clock.advance(3_000);
    assert_eq!(error(&hasty.poll().await, 400), "slow_down");
    app.clock.advance(5_000);
    assert_eq!(error(&hasty.poll().await, 400), "slow_down");
    app.clock.advance(15_000);
    assert_eq!(error(&hasty.poll().await, 400), "authorization_pending");

    app.clock.advance(10 * 60_000);
    assert_eq!(error(&hasty.poll().await, 400), "expired_token");
}

#[tokio::test]
async fn a_token_that_comes_again_ends_the_device_and_a_lost_answer_does_not() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "ada").await;
    let first = refresh_token(&signed_in(&app, &mut browser).await);
    let lost = refresh_token(&refresh(&app, &first).await);
    app.clock.advance(30_000);
    let kept = refresh_token(&refresh(&app, &first).await);
    assert_ne!(lost, kept);
    let next = refresh_token(&refresh(&app, &kept).await);
    for token in [&lost, &next, &kept, &first] {
        assert_eq!(error(&refresh(&app, token).await, 400), "invalid_grant");
    }
}

#[tokio::test]
async fn revoking_is_answered_alike_whatever_is_revoked() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "ada").await;
    let given = signed_in(&app, &mut browser).await;
    let token = refresh_token(&given);
    for token in [&token, &token, &given.token(), &"nothing".to_owned()] {
        let answer = revoke(&app, token).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, ""));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    assert_eq!(error(&refresh(&app, &token).await, 400), "invalid_grant");
}

#[tokio::test]
async fn what_is_no_request_is_told_in_the_form_of_oauth() {
    let app = TestApp::start().await;
    let code = "urn:ietf:params:oauth:grant-type:device_code";
    let client = ("client_id", "platform-cli");
    let token = "/device/token";
    for (path, fields, expected) in [
        ("/device/authorization", vec![], "invalid_request"),
        (
            "/device/authorization",
            vec![("client_id", "other")],
            "invalid_client",
        ),
        (
            "/device/authorization",
            vec![client, client],
            "invalid_request",
        ),
        (token, vec![client], "invalid_request"),
        (token, vec![client, ("grant_type", "")], "invalid_request"),
        (
            token,
            vec![client, ("grant_type", "password")],
            "unsupported_grant_type",
        ),
        (token, vec![client, ("grant_type", code)], "invalid_request"),
        (
            token,
            vec![client, ("grant_type", code), ("device_code", "x")],
            "invalid_grant",
        ),
        (
            token,
            vec![("grant_type", code), ("device_code", "x")],
            "invalid_request",
        ),
        (
            token,
            vec![
                client,
                ("grant_type", "refresh_token"),
                ("refresh_token", "\0"),
            ],
            "invalid_grant",
        ),
        ("/device/revoke", vec![client], "invalid_request"),
        ("/device/revoke", vec![("token", "x")], "invalid_request"),
    ] {
        let answer = ask(&app, path, &fields).await;
        assert_eq!(error(&answer, 400), expected, "{path} {fields:?}");
    }
    for path in ["/device/authorization", "/device/token", "/device/revoke"] {
        let json = app
            .request(Method::POST, "auth", path)
            .header("content-type", "application/json")
            .body("{}");
        assert_eq!(error(&send(json).await, 415), "invalid_request");
        let long = "x".repeat(10_000);
        let large = ask(&app, path, &[client, ("more", &long)]).await;
        assert_eq!(error(&large, 413), "invalid_request");
        let get = send(app.get("auth", path)).await;
        assert_eq!(get.problem(), "method-not-allowed");
    }
}

#[tokio::test]
async fn one_address_begins_no_more_than_thirty_a_minute() {
    let app = TestApp::start().await;
    for _ in 0..30 {
        Device::begin(&app).await;
    }
    let fields = [("client_id", "platform-cli")];
    let refused = ask(&app, "/device/authorization", &fields).await;
    assert_eq!(error(&refused, 429), "slow_down");
    assert_eq!(refused.header("retry-after"), Some("2"));
    app.clock.advance(2_000);
    Device::begin(&app).await;
}

#[tokio::test]
async fn a_suspended_account_gets_no_token_for_its_devices() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "ada").await;
    let token = refresh_token(&signed_in(&app, &mut browser).await);
    let late = Device::begin(&app).await;
    late.decide(&mut browser, "approve").await.location();
    let waiting = Device::begin(&app).await;
    let player = browser.token().await.claims().sub.parse().unwrap();
    app.suspend(player, Some("You sold lights.")).await;
    for answer in [refresh(&app, &token).await, late.poll().await] {
        assert_eq!(error(&answer, 400), "access_denied");
        assert!(answer.text().contains("You sold lights."));
    }
    let page = browser.get(&waiting.complete).await;
    assert_eq!(page.problem(), "account-suspended");

    app.unsuspend(player).await;
    assert_eq!(refresh(&app, &token).await.status, 200);
    assert_eq!(late.poll().await.status, 200);
}

#[tokio::test]
async fn a_device_is_forgotten_after_ninety_days_without_use() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "ada").await;
    let mut token = refresh_token(&signed_in(&app, &mut browser).await);
    for _ in 0..3 {
        app.clock.advance(89 * 24 * 60 * 60_000);
        token = refresh_token(&refresh(&app, &token).await);
    }
    app.clock.advance(90 * 24 * 60 * 60_000);
    assert_eq!(error(&refresh(&app, &token).await, 400), "invalid_grant");
}
