//! How long a player of games apart is known: after sweeps, after years, after failures.

use platform_server::clock::Clock as _;
use platform_server::domain::game_session::{
    BLANK_MILLIS, HAND_OFF_AGAIN_MILLIS, HAND_OFF_MILLIS, PER_PARENT,
};
use platform_server::domain::player::UNCONFIRMED_MILLIS;
use platform_server::domain::session::RENEW_MILLIS;
use reqwest::{Method, StatusCode};

use super::browser::{Browser, NAVIGATION, Visit, apart, games, sign_in, stopped};
use crate::support::{Answer, TestApp};

async fn sweep(app: &TestApp) -> usize {
    let store = &app.running.state.platform.store;
    store.sweep_sessions(app.clock.now(), 1_000).await.unwrap()
}

/// What a response sets a cookie to, with its attributes.
fn set<'answer>(answer: &'answer Answer, name: &str) -> Option<&'answer str> {
    let lines = answer.headers.get_all("set-cookie").iter();
    let mut lines = lines.map(|line| line.to_str().unwrap());
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

/// The mark that a visit has left in the browser, after which it is not sent away again.
fn mark(visit: &Visit) -> Option<&str> {
    let mut marks = visit.answers.iter();
    marks.find_map(|answer| set(answer, "platform-tried"))
}

#[tokio::test]
async fn a_guest_of_one_game_whose_row_was_swept_is_not_that_of_the_browser() {
    let app = apart().await;
    let (game, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let mut browser = Browser::new(&app);
    // The browser could not be sent away, played for a moment, and comes back.
    let before = browser.token(&game).await.claims();
    app.clock.advance(UNCONFIRMED_MILLIS);
    sweep(&app).await;
    assert_eq!(app.count_players(), 0);
    // It goes over the auth service, and what the game's cookie says is not taken there.
    browser.open(&format!("{game}/")).await;
    let sub = browser.player(&game).await;
    assert_ne!(sub, before.sub);
    browser.open(&format!("{other}/")).await;
    assert_eq!(browser.player(&other).await, sub);
    assert_eq!(app.count_players(), 1);
}

#[tokio::test]
async fn a_guest_of_the_auth_service_whose_row_was_swept_comes_back_by_a_hand_off() {
    let app = apart().await;
    let (game, auth) = (games(&app, "demo"), app.origin("auth"));
    let console = app.running.state.platform.origin.to_string();
    let mut browser = Browser::new(&app);
    let address = format!("{auth}/token");
    let headers = [("origin", console.as_str())];
    let first = browser.request(Method::POST, &address, &headers).await;
    let before = first.claims();
    app.clock.advance(UNCONFIRMED_MILLIS);
    sweep(&app).await;
    // Two tabs bring the same old cookie.
    let mut late = browser.copy();
    browser.open(&format!("{game}/")).await;
    late.open(&format!("{game}/")).await;
    let back = browser.token(&game).await.claims();
    assert_eq!((&back.sub, back.username), (&before.sub, before.username));
    assert_eq!(late.player(&game).await, before.sub);
    let again = browser.request(Method::POST, &address, &headers).await;
    assert_eq!(again.claims().sub, before.sub);
    assert_eq!(app.count_players(), 1);
}

#[tokio::test]
async fn who_asks_the_console_first_is_the_guest_whom_a_hand_off_brought_back() {
    let app = apart().await;
    let (game, auth) = (games(&app, "demo"), app.origin("auth"));
    let console = app.running.state.platform.origin.to_string();
    let mut browser = Browser::new(&app);
    let address = format!("{auth}/token");
    let headers = [("origin", console.as_str())];
    let first = browser.request(Method::POST, &address, &headers).await;
    let sub = first.claims().sub;
    app.clock.advance(UNCONFIRMED_MILLIS);
    sweep(&app).await;
    browser.open(&format!("{game}/")).await;
    let again = browser.request(Method::POST, &address, &headers).await;
    assert_eq!(again.claims().sub, sub);
    assert_eq!(browser.player(&game).await, sub);
}

#[tokio::test]
async fn the_old_cookie_of_a_guest_who_has_signed_out_is_one_player_in_all_games() {
    let app = apart().await;
    let (game, other, auth) = (
        games(&app, "demo"),
        games(&app, "dev-demo"),
        app.origin("auth"),
    );
    let console = app.running.state.platform.origin.to_string();
    let mut browser = Browser::new(&app);
    let address = format!("{auth}/token");
    let headers = [("origin", console.as_str())];
    let first = browser.request(Method::POST, &address, &headers).await;
    let before = first.claims().sub;
    app.clock.advance(UNCONFIRMED_MILLIS);
    sweep(&app).await;
    let mut old = browser.copy();
    let back = browser.request(Method::POST, &address, &headers).await;
    assert_eq!(back.claims().sub, before);
    let sign_out = format!("{auth}/sign-out");
    let left = browser.request(Method::POST, &sign_out, &headers).await;
    assert_eq!(left.status, StatusCode::NO_CONTENT);
    // The guest waits to be restored, and does not come back by itself.
    old.open(&format!("{game}/")).await;
    let sub = old.player(&game).await;
    assert_ne!(sub, before);
    old.open(&format!("{other}/")).await;
    assert_eq!(old.player(&other).await, sub);
}

#[tokio::test]
async fn a_blank_session_that_is_swept_while_a_code_is_on_its_way_keeps_its_guest_to_be() {
    let app = apart().await;
    let (one, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let mut browser = Browser::new(&app);
    browser.open(&format!("{one}/")).await;
    app.clock.advance(BLANK_MILLIS);
    let code = stopped(&mut browser, &other).await;
    assert_eq!(sweep(&app).await, 1, "the session of the first game");
    let visit = browser.open(&code).await;
    assert_eq!(visit.page().1.status, StatusCode::OK);
    let sub = browser.player(&other).await;
    browser.open(&format!("{one}/")).await;
    assert_eq!(browser.player(&one).await, sub);
    assert_eq!(app.count_players(), 1);
}

#[tokio::test]
async fn a_game_that_was_opened_and_not_played_follows_the_player_of_another_game() {
    let app = apart().await;
    let (one, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let mut browser = Browser::new(&app);
    browser.open(&format!("{one}/")).await;
    browser.open(&format!("{other}/")).await;
    let sub = browser.player(&other).await;
    // Its page stays open for days before it asks.
    app.clock.advance(3 * BLANK_MILLIS);
    sweep(&app).await;
    assert_eq!(browser.player(&one).await, sub);
}

#[tokio::test]
async fn who_plays_one_game_alone_keeps_the_cookie_at_the_auth_service() {
    let app = apart().await;
    let (game, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let mut browser = Browser::new(&app);
    browser.open(&format!("{game}/")).await;
    let sub = browser.player(&game).await;
    for _ in 0..4 {
        app.clock.advance(HAND_OFF_AGAIN_MILLIS / 4);
        assert_eq!(browser.player(&game).await, sub);
    }
    let visit = browser.open(&format!("{game}/")).await;
    assert_eq!(visit.answers.len(), 4, "it passes over the auth service");
    let renewed = set(&visit.answers[1], "platform-session").unwrap();
    assert!(renewed.contains("Max-Age=34560000"), "{renewed}");
    assert_eq!(browser.player(&game).await, sub);
    assert_eq!(browser.open(&format!("{game}/")).await.answers.len(), 1);
    // Every way over the auth service renews it, but that of a session that is new.
    let visit = browser.open(&format!("{other}/")).await;
    assert!(set(&visit.answers[1], "platform-session").is_some());
    let mut fresh = Browser::new(&app);
    fresh.open(&format!("{game}/")).await;
    fresh.player(&game).await;
    let visit = fresh.open(&format!("{other}/")).await;
    assert_eq!(set(&visit.answers[1], "platform-session"), None);
    app.clock.advance(RENEW_MILLIS);
    let again = format!("{other}/__platform/continue?to=%2F");
    let visit = fresh.open(&again).await;
    assert!(
        visit
            .answers
            .iter()
            .any(|answer| set(answer, "platform-session").is_some())
    );
}

#[tokio::test]
async fn a_player_whom_the_auth_service_has_forgotten_stays_in_the_game() {
    let app = apart().await;
    let (game, auth) = (games(&app, "demo"), app.origin("auth"));
    let mut browser = Browser::new(&app);
    browser.open(&format!("{game}/")).await;
    let sub = browser.player(&game).await;
    // Some browsers remove the cookies of sites on which nobody acts.
    browser.jar.remove(&Browser::host(&auth));
    let again = format!("{game}/__platform/continue?to=%2F");
    let visit = browser.open(&again).await;
    assert_eq!(visit.page().0, format!("{game}/"));
    assert_eq!(browser.player(&game).await, sub);
    let mark = mark(&visit).unwrap();
    assert!(mark.contains("Max-Age=2592000"), "{mark}");
}

#[tokio::test]
async fn a_player_stays_in_the_game_though_another_game_has_made_the_next_guest() {
    let app = apart().await;
    let (game, other, auth) = (
        games(&app, "demo"),
        games(&app, "dev-demo"),
        app.origin("auth"),
    );
    let mut browser = Browser::new(&app);
    browser.open(&format!("{game}/")).await;
    let sub = browser.player(&game).await;
    browser.jar.remove(&Browser::host(&auth));
    browser.open(&format!("{other}/")).await;
    let next = browser.player(&other).await;
    assert_ne!(next, sub);
    app.clock.advance(HAND_OFF_AGAIN_MILLIS);
    let visit = browser.open(&format!("{game}/")).await;
    assert!(mark(&visit).unwrap().contains("Max-Age=3600;"));
    assert_eq!(browser.player(&game).await, sub);
    // Who signs in is that account in this game as well, and the pause has ended.
    sign_in(&mut browser, &auth, &game, "ann").await;
    assert_eq!(browser.player(&game).await, next);
    assert!(!browser.has(&game, "platform-tried"));
}

#[tokio::test]
async fn after_a_failure_the_next_attempt_comes_after_a_minute() {
    let app = apart().await;
    let game = games(&app, "demo");
    let short = |visit: &Visit| {
        let (address, page) = visit.page();
        assert_eq!(
            (address, page.status),
            (&*format!("{game}/"), StatusCode::OK)
        );
        let mark = mark(visit).unwrap().to_owned();
        assert!(mark.contains("Max-Age=60;"), "{mark}");
    };
    // The auth service cannot store the code.
    app.sql("ALTER TABLE hand_offs RENAME TO lost");
    let mut browser = Browser::new(&app);
    short(&browser.open(&format!("{game}/")).await);
    // The game cannot read it.
    app.sql("ALTER TABLE lost RENAME TO hand_offs");
    let mut browser = Browser::new(&app);
    let code = stopped(&mut browser, &game).await;
    app.sql("ALTER TABLE hand_offs RENAME TO lost");
    short(&browser.open(&code).await);
    // Nor the session with which the browser came, while somebody goes back to this address.
    app.sql("ALTER TABLE lost RENAME TO hand_offs");
    app.sql("ALTER TABLE game_sessions RENAME TO lost");
    browser.jar.entry(Browser::host(&game)).or_default().insert(
        "platform-game".to_owned(),
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned(),
    );
    let visit = browser.open(&code).await;
    assert_eq!(visit.page().0, format!("{game}/?platform-continued=1"));
    app.sql("ALTER TABLE lost RENAME TO game_sessions");

    // What is worth nothing is not asked for again for an hour.
    let mut late = Browser::new(&app);
    let code = stopped(&mut late, &game).await;
    app.clock.advance(HAND_OFF_MILLIS);
    let visit = late.open(&code).await;
    let mark = mark(&visit).unwrap();
    assert!(mark.contains("Max-Age=3600;"), "{mark}");
}

#[tokio::test]
async fn a_network_that_asks_too_often_waits_a_minute() {
    let app = apart().await;
    let game = games(&app, "demo");
    let mut browser = Browser::new(&app);
    let away = browser
        .request(Method::GET, &format!("{game}/"), NAVIGATION)
        .await;
    let away = away.header("location").unwrap().to_owned();
    let mut refused = None;
    for _ in 0..1_000 {
        let back = browser.copy().request(Method::GET, &away, NAVIGATION).await;
        let location = back.header("location").unwrap().to_owned();
        if !location.contains("code=") {
            refused = Some(location);
            break;
        }
    }
    let visit = browser.open(&refused.expect("no limit")).await;
    let mark = mark(&visit).unwrap();
    assert!(mark.contains("Max-Age=60;"), "{mark}");
    assert!(browser.token(&game).await.claims().is_anon);
}

#[tokio::test]
async fn a_session_has_so_many_sessions_of_one_game_and_no_more() {
    let app = apart().await;
    let (game, auth) = (games(&app, "demo"), app.origin("auth"));
    let mut browser = Browser::new(&app);
    browser.open(&format!("{game}/")).await;
    let sub = browser.player(&game).await;
    for _ in 0..PER_PARENT {
        app.clock.advance(1_000);
        let mut again = Browser::new(&app);
        let cookies = browser.jar[&Browser::host(&auth)].clone();
        again.jar.insert(Browser::host(&auth), cookies);
        again.open(&format!("{game}/")).await;
        assert_eq!(again.player(&game).await, sub);
    }
    let kept = app.sql_text("SELECT CAST(count(*) AS TEXT) FROM game_sessions");
    assert_eq!(kept, PER_PARENT.to_string());
    // The first one goes over the auth service again.
    assert_eq!(browser.open(&format!("{game}/")).await.answers.len(), 4);
    assert_eq!(browser.player(&game).await, sub);
}
