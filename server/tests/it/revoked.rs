//! What ends a console token: its session, its device, its account, and its lifetime of five
//! minutes.

use platform_protocol::claims::ConsoleTokenClaims;
use serde_json::{Map, Value, json};

use crate::caller::{Caller, archive};
use crate::device::{account, refresh, refresh_token, signed_in};
use crate::support::{Answer, TestApp};

/// Returns the claims of a response's token, without verification.
fn payload(answer: &Answer) -> Map<String, Value> {
    use base64::Engine as _;
    let token = answer.token();
    let payload = token.split('.').nth(1).unwrap();
    let payload = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload);
    serde_json::from_slice(&payload.unwrap()).unwrap()
}

/// Asserts that a token which worked is refused: for reading and for deploying.
async fn is_over(caller: &Caller<'_>) {
    for answer in [
        caller.get("/api/projects").await,
        caller.create("another").await,
        caller
            .deploy("prod", archive(&[("index.html", b"x")]))
            .await,
    ] {
        assert_eq!(answer.problem(), "not-signed-in");
        assert_eq!(answer.status, 401);
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
}

#[tokio::test]
async fn a_console_token_ends_with_its_session() {
    let app = TestApp::start().await;
    let player = Caller::with_project(&app).await;
    app.sign_out(&player.cookie).await;
    is_over(&player).await;

    let other = Caller::account(&app).await;
    assert_eq!(other.get("/api/projects").await.status, 200);
    assert_eq!(app.end_sessions(other.sub).await, 1);
    is_over(&other).await;
}

#[tokio::test]
async fn a_console_token_ends_with_its_device_and_no_other() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "Ann").await;
    let player = Caller::of(&app, &browser).await;
    let (first, second) = (
        signed_in(&app, &mut browser).await,
        signed_in(&app, &mut browser).await,
    );
    let on_first = player.with_token(&first.token());
    let on_second = player.with_token(&second.token());
    assert_eq!(on_first.create("game").await.status, 201);
    let refreshed = refresh(&app, &refresh_token(&first)).await;
    let again = player.with_token(&refreshed.token());
    let devices = app
        .running
        .state
        .platform
        .store
        .list_devices(player.sub, 0)
        .await;
    assert_eq!(devices.unwrap().len(), 2);

    let revoke = [
        ("token", refresh_token(&refreshed)),
        ("client_id", "platform-cli".to_owned()),
    ];
    let revoke: Vec<_> = revoke
        .iter()
        .map(|(name, value)| (*name, &**value))
        .collect();
    let revoked = crate::device::ask(&app, "/device/revoke", &revoke).await;
    assert_eq!(revoked.status, 200);
    is_over(&on_first).await;
    is_over(&again).await;
    assert_eq!(on_second.get("/api/projects").await.status, 200);
    // The browser's own session does not belong to a device.
    assert_eq!(player.get("/api/projects").await.status, 200);

    assert_eq!(app.end_sessions(player.sub).await, 2);
    is_over(&on_second).await;
    is_over(&player).await;
}

#[tokio::test]
async fn a_console_token_lives_five_minutes_at_most_whatever_those_of_games_do() {
    for (setting, expected) in [(86_400, 300), (900, 300), (60, 60)] {
        let app = TestApp::with(|config| config.token_seconds = setting).await;
        let mut browser = account(&app, "Ann").await;
        let session = browser.cookie("platform-session").unwrap().to_owned();
        let console = app
            .console_token(&format!("platform-session={session}"))
            .await;
        let device = signed_in(&app, &mut browser).await;
        for answer in [&console, &device] {
            let claims = payload(answer);
            let life = claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap();
            assert_eq!(life, expected);
            assert_eq!(answer.json::<Value>()["expires_in"], expected);
        }
        let game = browser.token().await;
        assert_eq!(game.json::<Value>()["expires_in"], setting);
    }
}

#[tokio::test]
async fn a_game_token_has_its_nine_claims_and_a_console_token_says_what_it_ends_with() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "Ann").await;
    let game = browser.token().await;
    let mut names: Vec<_> = payload(&game).keys().cloned().collect();
    names.sort_unstable();
    let nine = [
        "aud",
        "exp",
        "iat",
        "is_anon",
        "iss",
        "jti",
        "principal_kind",
        "sub",
        "username",
    ];
    assert_eq!(names, nine);
    let session = browser.cookie("platform-session").unwrap().to_owned();
    let console = app
        .console_token(&format!("platform-session={session}"))
        .await;
    let device = signed_in(&app, &mut browser).await;
    assert_eq!(device.json::<Value>()["scope"], "projects");
    let read = |answer: &Answer| -> ConsoleTokenClaims {
        serde_json::from_value(Value::Object(payload(answer))).unwrap()
    };
    let (console, device) = (read(&console), read(&device));
    assert_eq!(console.scope, "projects administration");
    assert!(console.sid.is_some() && console.device.is_none());
    assert_eq!(device.scope, "projects");
    assert!(device.sid.is_none() && device.device.is_some());
    // The id of a session gives no access.
    let sid = console.sid.unwrap();
    assert_ne!(sid, session);
    let guest = app.console_token(&format!("platform-session={sid}")).await;
    assert_ne!(guest.claims().sub, console.player.sub);
    // The token for a game's backend gives no access to the platform's own API.
    let caller = Caller::of(&app, &browser).await.with_token(&game.token());
    assert_eq!(caller.get("/api/projects").await.problem(), "not-signed-in");
}

#[tokio::test]
async fn the_reason_of_a_suspension_reaches_the_api_at_once() {
    let app = TestApp::start().await;
    let player = Caller::account(&app).await;
    app.suspend(player.sub, Some("Why.")).await;
    let refused = player
        .post("/api/projects", json!({ "slug": "game" }))
        .await;
    assert_eq!(refused.problem(), "account-suspended");
    assert_eq!(refused.json::<Value>()["detail"], "Why.");
}
