//! What a hostile game, a stolen code and a crowd cannot do.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_server::domain::game_session::{GameSessionSecret, HAND_OFF_MILLIS};
use reqwest::{Method, StatusCode};
use url::Url;

use super::browser::{Browser, NAVIGATION, apart, games, stopped};

#[tokio::test]
async fn only_the_games_own_page_asks_for_its_token() {
    let app = apart().await;
    let (game, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let address = format!("{game}/__platform/token");
    let mut browser = Browser::new(&app);
    let origin = ("origin", game.as_str());
    for headers in [
        &[("origin", other.as_str())][..],
        &[("origin", "null")],
        &[origin, ("sec-fetch-site", "same-site")],
        &[origin, ("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "none")],
    ] {
        let answer = browser.request(Method::POST, &address, headers).await;
        assert_eq!(answer.problem(), "unknown-origin", "{headers:?}");
    }
    assert_eq!(app.count_players(), 0);
    let bare = browser.request(Method::POST, &address, &[]).await;
    assert_eq!(bare.status, StatusCode::OK);
    // The auth service's cookie never comes from such a page, so it gives it nothing.
    let auth = format!("{}/token", app.origin("auth"));
    let answer = browser.request(Method::POST, &auth, &[origin]).await;
    assert_eq!(answer.problem(), "unknown-origin");
}

#[tokio::test]
async fn a_code_is_worth_nothing_elsewhere_later_or_again() {
    let app = apart().await;
    let (game, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let mut owner = Browser::new(&app);
    let mut thief = Browser::new(&app);

    // Another browser, even one that has a hand-off of its own under way.
    let code = stopped(&mut owner, &game).await;
    stopped(&mut thief, &game).await;
    thief.open(&code).await;
    assert!(!thief.has(&game, "platform-game"));
    assert!(
        !thief.has(&game, "platform-tried"),
        "anybody may lead a browser there"
    );

    // Another game.
    let elsewhere = code.replace(&game, &other);
    owner.open(&elsewhere).await;
    assert!(!owner.has(&other, "platform-game"));

    // The owner, once.
    let visit = owner.open(&code).await;
    assert_eq!(visit.page().0, format!("{game}/"));
    let sub = owner.player(&game).await;
    let again = owner.open(&code).await;
    assert_eq!(
        again.page().0,
        format!("{game}/"),
        "going back changes nothing"
    );
    assert_eq!(owner.player(&game).await, sub);
    thief.open(&code).await;
    assert!(!thief.has(&game, "platform-game"));

    // After a minute.
    let mut late = Browser::new(&app);
    let code = stopped(&mut late, &game).await;
    app.clock.advance(HAND_OFF_MILLIS);
    let visit = late.open(&code).await;
    let (address, page) = visit.page();
    assert_eq!(
        (address, page.status),
        (&*format!("{game}/"), StatusCode::OK)
    );
    assert!(!late.has(&game, "platform-game") && late.has(&game, "platform-tried"));
    // The mark ends the attempts for an hour.
    assert_eq!(late.open(&format!("{game}/")).await.answers.len(), 1);
}

#[tokio::test]
async fn the_attackers_code_does_not_sign_the_victim_in() {
    let app = apart().await;
    let game = games(&app, "demo");
    let mut attacker = Browser::new(&app);
    let code = stopped(&mut attacker, &game).await;
    let mut victim = Browser::new(&app);
    victim.open(&code).await;
    attacker.open(&code).await;
    let theirs = attacker.player(&game).await;
    assert_ne!(victim.player(&game).await, theirs);
}

#[tokio::test]
async fn the_way_over_the_auth_service_leads_to_games_alone() {
    let app = apart().await;
    let game = games(&app, "demo");
    let auth = app.origin("auth");
    let mut browser = Browser::new(&app);
    let state = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.Lw";
    let console = app.running.state.platform.origin.to_string();
    for to in [
        "https://evil.example",
        "",
        "null",
        &format!("{game}/"),
        &format!("{game}.evil.example"),
        &game.replace("demo", "DEMO"),
        &games(&app, "nobody"),
        &console,
        &app.origin("demo"),
    ] {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("to", to)
            .append_pair("state", state)
            .finish();
        let visit = browser.open(&format!("{auth}/continue?{query}")).await;
        let (_, page) = visit.page();
        assert_eq!(
            (visit.answers.len(), page.status.as_u16()),
            (1, 400),
            "{to}"
        );
    }
    let query = |state: &str| {
        url::form_urlencoded::Serializer::new(String::new())
            .append_pair("to", &game)
            .append_pair("state", state)
            .finish()
    };
    for state in ["", "x", "x.Lw", &state.replace("Lw", "ZXZpbC5leGFtcGxl")] {
        let visit = browser
            .open(&format!("{auth}/continue?{}", query(state)))
            .await;
        assert_eq!(visit.page().1.status, StatusCode::BAD_REQUEST, "{state}");
    }
    // In a frame, or from a script, there is no way.
    let address = format!("{auth}/continue?{}", query(state));
    let headers = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
    let answer = browser.request(Method::GET, &address, &headers).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    // A path is the game's own.
    for to in ["//evil.example", "/\\evil.example", "https://evil.example/"] {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("to", to)
            .finish();
        let start = format!("{game}/__platform/continue?{query}");
        let visit = browser.open(&start).await;
        for address in &visit.addresses {
            let host = Url::parse(address).unwrap().host_str().unwrap().to_owned();
            assert!(host.ends_with(".localhost"), "{to}: {address}");
        }
    }
}

#[tokio::test]
async fn a_link_that_stops_a_hand_off_does_so_once() {
    let app = apart().await;
    let (game, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let mut browser = Browser::new(&app);
    browser.open(&format!("{other}/")).await;
    let sub = browser.player(&other).await;
    // Somebody has put the mark into the address of a link.
    let visit = browser.open(&format!("{game}/?platform-continued=1")).await;
    assert_eq!(visit.answers.len(), 1);
    assert_ne!(browser.player(&game).await, sub);
    browser.open(&format!("{game}/")).await;
    assert_eq!(browser.player(&game).await, sub);
}

#[tokio::test]
async fn the_cookie_of_a_siblings_frame_says_nothing_in_a_tab() {
    let app = apart().await;
    let game = games(&app, "demo");
    let mut browser = Browser::new(&app);
    let framed = browser
        .post(&game, "/__platform/token?framed")
        .await
        .claims()
        .sub;
    let visit = browser.open(&format!("{game}/")).await;
    assert_eq!(visit.answers.len(), 4);
    assert_ne!(browser.player(&game).await, framed);
}

#[tokio::test]
async fn a_player_whose_cookies_at_a_game_were_pushed_out_is_known_by_the_auth_service() {
    let app = apart().await;
    let game = games(&app, "demo");
    let auth = app.origin("auth");
    let mut browser = Browser::new(&app);
    browser.open(&format!("{game}/")).await;
    let sub = browser.player(&game).await;
    // Cookies of games never reach the auth service. A sibling can fill the room of the game's own host.
    assert_eq!(browser.jar[&Browser::host(&auth)].len(), 1);
    let jar = browser.jar.get_mut(&Browser::host(&game)).unwrap();
    jar.clear();
    let visit = browser.open(&format!("{game}/")).await;
    assert_eq!(visit.answers.len(), 4, "the auth service knows the player");
    assert_eq!(browser.player(&game).await, sub);
}

#[tokio::test]
async fn a_code_of_the_address_is_in_no_page_of_the_game() {
    let app = apart().await;
    let game = games(&app, "demo");
    let mut browser = Browser::new(&app);
    let visit = browser.open(&format!("{game}/")).await;
    let code = visit.code_address().split_once("code=").unwrap().1;
    let code = code.split('&').next().unwrap();
    let (address, page) = visit.page();
    assert!(!address.contains(code) && !page.text().contains(code));
}

#[tokio::test]
async fn a_cookie_that_a_game_plants_chooses_no_player_of_other_games() {
    let app = apart().await;
    let (game, other, auth) = (
        games(&app, "demo"),
        games(&app, "dev-demo"),
        app.origin("auth"),
    );
    let console = app.running.state.platform.origin.to_string();
    let mut victim = Browser::new(&app);
    victim.open(&format!("{game}/")).await;
    // The game's own scripts remove the cookie that they cannot read, and set one that they know.
    victim.post(&game, "/__platform/sign-out").await;
    let planted = [7; 32];
    let jar = victim.jar.entry(Browser::host(&game)).or_default();
    jar.insert("platform-game".to_owned(), URL_SAFE_NO_PAD.encode(planted));
    victim.open(&format!("{game}/")).await;
    let sub = victim.player(&game).await;
    victim.open(&format!("{other}/")).await;
    assert_eq!(victim.player(&other).await, sub);

    // What anybody can compute from it leads to nobody whom the victim plays as.
    let lone = GameSessionSecret::from_bytes(planted).lone_session("game:demo");
    let mut attacker = Browser::new(&app);
    let jar = attacker.jar.entry(Browser::host(&auth)).or_default();
    jar.insert(
        "platform-session".to_owned(),
        URL_SAFE_NO_PAD.encode(lone.expose()),
    );
    let headers = [("origin", console.as_str())];
    let token = attacker
        .request(Method::POST, &format!("{auth}/token"), &headers)
        .await;
    assert_ne!(token.claims().sub, sub);
}

#[tokio::test]
async fn whoever_leads_a_browser_to_a_game_again_and_again_does_not_fill_its_cookies() {
    let app = apart().await;
    let (game, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let mut browser = Browser::new(&app);
    let address = format!("{game}/__platform/continue?to=%2F");
    for _ in 0..18 {
        browser.request(Method::GET, &address, NAVIGATION).await;
        let names = browser.jar[&Browser::host(&game)].keys();
        let nonces = names.filter(|name| name.starts_with("platform-continue-"));
        assert!((1..=9).contains(&nonces.count()));
    }
    // The way that a sign-in takes leads to the browser's player all the same.
    let visit = browser.open(&address).await;
    assert_eq!(visit.page().0, format!("{game}/"));
    let sub = browser.player(&game).await;
    browser.open(&format!("{other}/")).await;
    assert_eq!(browser.player(&other).await, sub);
}
