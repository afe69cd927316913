//! How a session of a game begins and ends with that of the auth service, and in frames.

use platform_server::domain::audit::Actor;
use platform_server::domain::clock::Clock as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::browser::{Browser, apart, games, pressed, session, session_code, sign_in};
use crate::support::send;

#[tokio::test]
async fn who_signs_in_keeps_the_guest_in_every_game_and_who_signs_out_leaves_all() {
    let app = apart().await;
    let (one, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let auth = app.origin("auth");
    let mut browser = Browser::new(&app);
    browser.open(&format!("{one}/")).await;
    browser.open(&format!("{other}/")).await;
    let guest = browser.player(&one).await;
    // The demo provider signs a person in.
    sign_in(&mut browser, &auth, &one, "Ann").await;
    let claims = browser.token(&one).await.claims();
    assert_eq!((claims.sub.clone(), claims.is_anon), (guest.clone(), false));
    let claims = browser.token(&other).await.claims();
    assert_eq!(
        (claims.sub, claims.is_anon),
        (guest.clone(), false),
        "it followed"
    );

    // A second browser becomes the same account, and leaves its guest.
    let mut second = Browser::new(&app);
    second.open(&format!("{one}/")).await;
    second.open(&format!("{other}/")).await;
    assert_ne!(second.player(&one).await, guest);
    second.player(&other).await;
    sign_in(&mut second, &auth, &one, "Ann").await;
    assert_eq!(second.player(&one).await, guest);
    assert_eq!(second.token(&other).await.problem(), "session-expired");
    assert_eq!(second.open(&format!("{other}/")).await.answers.len(), 4);
    assert_eq!(second.player(&other).await, guest);

    // Signing out in one game ends all, at once.
    let code: Value = browser.post(&one, "/__platform/sign-out").await.json();
    let code = code["code"].as_str().unwrap().to_owned();
    assert!(!browser.has(&one, "platform-game"));
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("redirect", &format!("{one}/"))
        .append_pair("code", &code)
        .finish();
    let away = format!("{auth}/sign-out?{query}");
    // The code of another browser ends nothing at once.
    let shown = second.open(&away).await;
    assert!(shown.page().1.text().contains("Sign out of every game?"));
    let code: Value = browser.post(&other, "/__platform/sign-out").await.json();
    let query = query.replace(&session_code(&query), code["code"].as_str().unwrap());
    browser.open(&format!("{auth}/sign-out?{query}")).await;
    assert_ne!(browser.player(&one).await, guest);
    assert_ne!(browser.player(&other).await, guest);
    assert_eq!(second.player(&one).await, guest, "the other browser stays");
}

#[tokio::test]
async fn a_suspended_player_does_not_leave_the_suspension_by_signing_out() {
    let app = apart().await;
    let game = games(&app, "demo");
    let mut browser = Browser::new(&app);
    let sub = browser.player(&game).await.parse().unwrap();
    let now = app.clock.now();
    let store = &app.running.state.platform.store;
    let suspended = store.suspend_player(sub, None, Actor::Operator.into(), now);
    suspended.await.unwrap();
    assert_eq!(browser.token(&game).await.problem(), "account-suspended");
    browser.post(&game, "/__platform/sign-out").await;
    assert_eq!(browser.token(&game).await.problem(), "account-suspended");
    assert_eq!(browser.open(&format!("{game}/")).await.answers.len(), 1);
}

#[tokio::test]
async fn who_is_suspended_gets_no_code_with_which_to_sign_out() {
    let app = apart().await;
    let game = games(&app, "demo");
    let mut browser = Browser::new(&app);
    browser.open(&format!("{game}/")).await;
    let sub = browser.player(&game).await.parse().unwrap();
    let store = &app.running.state.platform.store;
    let suspended = store.suspend_player(sub, None, Actor::Operator.into(), app.clock.now());
    suspended.await.unwrap();
    let left = browser.post(&game, "/__platform/sign-out").await;
    assert_eq!(left.json::<Value>()["code"], Value::Null);
    assert_eq!(browser.token(&game).await.problem(), "account-suspended");
}

#[tokio::test]
async fn a_session_that_the_operator_ends_ends_in_every_game() {
    let app = apart().await;
    let game = games(&app, "demo");
    let auth = app.origin("auth");
    let mut browser = Browser::new(&app);
    browser.open(&format!("{game}/")).await;
    let cookie = app.sign_in("ann", None).await;
    let jar = browser.jar.entry(Browser::host(&auth)).or_default();
    jar.insert("platform-session".to_owned(), session(&cookie));
    browser
        .open(&format!("{game}/__platform/continue?to=%2F"))
        .await;
    let claims = browser.token(&game).await.claims();
    assert!(!claims.is_anon);
    let player = claims.sub.parse().unwrap();
    let state = &app.running.state;
    let now = app.clock.now();
    let ended = state
        .platform
        .store
        .end_other_sessions(player, None, Actor::Operator.into(), now);
    ended.await.unwrap();
    assert_eq!(browser.token(&game).await.problem(), "session-expired");
    // Its page is shown, and not sent away again and again.
    browser.open(&format!("{game}/")).await;
    assert_eq!(browser.open(&format!("{game}/")).await.answers.len(), 1);
    assert_eq!(browser.token(&game).await.problem(), "session-expired");
}

#[tokio::test]
async fn a_frame_of_another_site_has_a_player_of_its_own_and_gets_the_browsers_from_a_tab() {
    let app = apart().await;
    let game = games(&app, "demo");
    let auth = app.origin("auth");
    let mut frame = Browser::new(&app);
    let answer = frame.post(&game, "/__platform/token?framed").await;
    let cookie = answer.header("set-cookie").unwrap();
    assert!(
        cookie.contains("SameSite=None") && cookie.contains("Partitioned"),
        "{cookie}"
    );
    assert!(
        cookie.contains("Secure") && cookie.contains("HttpOnly"),
        "{cookie}"
    );
    let guest = answer.claims().sub;

    // The page that its login address names, in a tab of the same browser.
    let mut tab = Browser::new(&app);
    let secret = "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA";
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("to", &game)
        .append_pair("state", secret)
        .finish();
    let page = format!("{auth}/frame?{query}");
    let login = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("redirect", &page)
        .finish();
    let login = tab.open(&format!("{auth}/login?{login}")).await;
    assert_eq!(login.page().1.status, StatusCode::OK);
    assert_eq!(login.page().1.header("cross-origin-opener-policy"), None);
    let html = pressed(&mut tab, &page).await;
    let attribute = |name: &str| {
        let (_, rest) = html.split_once(&format!("data-{name}=\"")).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    assert_eq!(attribute("to"), game, "nobody else hears the code");
    let redeem = |code: String, state: String| {
        let body = json!({ "code": code, "state": state }).to_string();
        app.request_host(Method::POST, &Browser::host(&game), "/__platform/continue")
            .header("origin", &game)
            .header("sec-fetch-site", "same-origin")
            .header("content-type", "application/json")
            .body(body)
    };
    let wrong = "CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCA";
    let refused = send(redeem(attribute("code"), wrong.to_owned())).await;
    assert_eq!(refused.problem(), "not-allowed");
    let taken = send(redeem(attribute("code"), attribute("state"))).await;
    assert_eq!(taken.status, StatusCode::NO_CONTENT);
    frame.keep(&game, &taken);
    let player = frame.post(&game, "/__platform/token?framed").await.claims();
    assert_ne!(player.sub, guest);
    tab.open(&format!("{game}/")).await;
    assert_eq!(tab.player(&game).await, player.sub);
    // Other return addresses of the auth service are no pages for it.
    let other = page.replace("/frame?", "/frame?x=1&");
    let login = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("redirect", &other)
        .finish();
    let refused = tab.open(&format!("{auth}/login?{login}")).await;
    assert_eq!(refused.page().1.status, StatusCode::BAD_REQUEST);
}
