//! Which requests go over the auth service, and who plays then.

use reqwest::{Method, StatusCode};

use super::browser::{Browser, NAVIGATION, apart, games};
use crate::support::TestApp;

#[tokio::test]
async fn a_first_visit_goes_once_over_the_auth_service_and_every_game_has_the_same_player() {
    let app = apart().await;
    let (one, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let mut browser = Browser::new(&app);
    let visit = browser.open(&format!("{one}/?level=2&x=%2F")).await;
    let (address, page) = visit.page();
    assert_eq!(address, format!("{one}/?level=2&x=%2F"));
    assert_eq!(page.status, StatusCode::OK);
    let statuses: Vec<u16> = visit
        .answers
        .iter()
        .map(|one| one.status.as_u16())
        .collect();
    assert_eq!(statuses, [302, 303, 303, 200]);
    for redirect in visit.answers.iter().take(3) {
        assert_eq!(redirect.header("cache-control"), Some("no-store"));
        assert_eq!(redirect.header("referrer-policy"), Some("no-referrer"));
    }
    let auth = app.origin("auth");
    assert!(visit.addresses[1].starts_with(&format!("{auth}/continue?to=")));
    assert!(visit.addresses[2].starts_with(&format!("{one}/__platform/continue?code=")));
    assert!(browser.has(&one, "platform-game"));
    assert!(!browser.has(&one, "platform-continue"), "the nonce is gone");
    assert!(browser.has(&auth, "platform-session"));

    // Nobody has played yet.
    assert_eq!(app.count_players(), 0);
    let token = browser.token(&one).await.claims();
    assert_eq!((token.aud.as_str(), token.is_anon), ("game:demo", true));
    assert_eq!(app.count_players(), 1);

    let again = browser.open(&format!("{one}/")).await;
    assert_eq!(again.answers.len(), 1, "no redirect");
    assert_eq!(browser.player(&one).await, token.sub);
    browser.open(&format!("{other}/")).await;
    let elsewhere = browser.token(&other).await.claims();
    assert_eq!(
        (elsewhere.sub, elsewhere.aud.as_str()),
        (token.sub, "game:dev-demo")
    );
    assert_eq!(app.count_players(), 1);
}

#[tokio::test]
async fn the_console_and_games_that_are_asked_at_once_make_one_guest() {
    let app = apart().await;
    let (one, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let mut browser = Browser::new(&app);
    browser.open(&format!("{one}/")).await;
    browser.open(&format!("{other}/")).await;
    let console = app.running.state.platform.origin.to_string();
    let address = format!("{}/token", app.origin("auth"));
    let headers = [("origin", console.as_str())];
    let first = browser.request(Method::POST, &address, &headers).await;
    let sub = first.claims().sub;
    assert_eq!(browser.player(&one).await, sub);
    assert_eq!(browser.player(&other).await, sub);
    let again = browser.request(Method::POST, &address, &headers).await;
    assert_eq!(again.claims().sub, sub);
    assert_eq!(app.count_players(), 1);
}

#[tokio::test]
async fn what_is_no_navigation_of_a_tab_gets_the_page_at_once() {
    let app = apart().await;
    let address = format!("{}/", games(&app, "demo"));
    let (mode, dest) = (
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    );
    for (method, headers) in [
        (Method::GET, &[][..]),
        (Method::GET, &[("accept", "text/html")]),
        (Method::GET, &[mode]),
        (Method::GET, &[mode, ("sec-fetch-dest", "iframe")]),
        (
            Method::GET,
            &[("sec-fetch-mode", "cors"), ("sec-fetch-dest", "empty")],
        ),
        (Method::GET, &[mode, dest, ("sec-purpose", "prefetch")]),
        (Method::HEAD, &[mode, dest]),
    ] {
        let mut browser = Browser::new(&app);
        let answer = browser.request(method.clone(), &address, headers).await;
        assert_eq!(answer.status, StatusCode::OK, "{method} {headers:?}");
        assert_eq!(answer.header("set-cookie"), None);
    }
    let mut browser = Browser::new(&app);
    let answer = browser.request(Method::POST, &address, &[mode, dest]).await;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    // A file that is no page.
    let file = format!("{address}picture.png");
    let answer = browser.request(Method::GET, &file, NAVIGATION).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn without_cookies_the_page_is_shown_once_and_plays_with_a_guest() {
    let app = apart().await;
    let game = games(&app, "demo");
    let mut browser = Browser::new(&app);
    browser.keeps_cookies = false;
    let visit = browser.open(&format!("{game}/?a=1")).await;
    let (address, page) = visit.page();
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(address, format!("{game}/?a=1&platform-continued=1"));
    assert_eq!(visit.answers.len(), 4);
    assert!(browser.token(&game).await.claims().is_anon);
}

#[tokio::test]
async fn a_game_without_a_session_has_a_guest_of_its_own_who_stays() {
    let app = apart().await;
    let (game, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let mut browser = Browser::new(&app);
    let sub = browser.player(&game).await;
    assert_eq!(browser.player(&game).await, sub);
    // Nobody knows a player of this browser, so it stays who it is here.
    let visit = browser.open(&format!("{game}/")).await;
    assert_eq!(visit.page().0, format!("{game}/"));
    assert_eq!(browser.player(&game).await, sub);
    assert_eq!(
        browser.open(&format!("{game}/")).await.answers.len(),
        1,
        "for an hour"
    );
    // The same cookie at another game is another guest.
    let value = browser.jar[&Browser::host(&game)]["platform-game"].clone();
    let jar = browser.jar.entry(Browser::host(&other)).or_default();
    jar.insert("platform-game".to_owned(), value);
    assert_ne!(browser.player(&other).await, sub);
}

#[tokio::test]
async fn a_game_that_shares_the_platforms_site_has_no_session_of_its_own() {
    let app = TestApp::start().await;
    let game = app.origin("demo");
    let mut browser = Browser::new(&app);
    assert_eq!(browser.open(&format!("{game}/")).await.answers.len(), 1);
    for path in ["/__platform/token", "/__platform/sign-out"] {
        assert_eq!(browser.post(&game, path).await.problem(), "not-found");
    }
    let path = "/__platform/continue?to=/";
    let answer = browser.open(&format!("{game}{path}")).await;
    assert_eq!(answer.page().1.status, StatusCode::NOT_FOUND);
}
