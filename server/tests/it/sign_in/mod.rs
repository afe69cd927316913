//! Signing in, from a guest to an account and back.

mod demo_provider;
mod hurried;
pub(crate) mod providers;

pub(crate) use self::providers::{good, named};

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_server::domain::player::PlayerState;

use crate::browser::{Browser, hidden_field};
use crate::support::{TestApp, send};

fn game(app: &TestApp) -> String {
    format!("{}/level?n=1#start", app.origin("demo"))
}

#[tokio::test]
async fn a_guest_who_signs_in_stays_the_same_player() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    let guest = browser.token().await.claims();
    assert!(guest.is_anon);
    let before = browser.cookie("platform-session").unwrap().to_owned();

    let done = browser.sign_in("Ada", &game(&app)).await;
    assert_eq!(done.location(), game(&app));
    assert_eq!(done.header("referrer-policy"), Some("no-referrer"));
    let after = browser.cookie("platform-session").unwrap().to_owned();
    assert_ne!(before, after, "a sign-in gives a session of its own");

    let account = browser.token().await.claims();
    assert_eq!(account.sub, guest.sub);
    // The guest had a generated name; this one was typed.
    assert_eq!(account.username, "Ada");
    assert!(!account.is_anon);

    // The browser's previous cookie gives no access any more.
    browser.set_cookie("platform-session", &before);
    let refused = browser.token().await;
    assert_eq!(refused.problem(), "session-expired");
}

#[tokio::test]
async fn the_same_name_is_the_same_account_in_another_browser() {
    let app = TestApp::start().await;
    let mut first = Browser::new(&app);
    let guest = first.token().await.claims();
    first.sign_in("Ada", &game(&app)).await;

    let mut second = Browser::new(&app);
    let other = second.token().await.claims();
    assert_ne!(other.sub, guest.sub);
    let other_session = second.cookie("platform-session").unwrap().to_owned();
    let done = second.sign_in("  ADA ", &game(&app)).await;
    assert_eq!(done.location(), game(&app));
    assert_eq!(second.token().await.claims().sub, guest.sub);

    // The second guest was merged, and never gets a token again.
    second.set_cookie("platform-session", &other_session);
    assert_eq!(second.token().await.problem(), "session-expired");
    // The first browser continues to play.
    assert_eq!(first.token().await.claims().sub, guest.sub);
}

#[tokio::test]
async fn whoever_comes_without_a_guest_gets_an_account() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    browser.sign_in("Ada", &game(&app)).await;
    let claims = browser.token().await.claims();
    assert!(!claims.is_anon);
    assert_eq!(app.count_players(), 1);
}

#[tokio::test]
async fn an_answer_is_good_for_one_sign_in() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    browser.token().await;
    let fields = [("name", "Ada"), ("action", "sign-in")];
    let callback = browser
        .at_demo_provider(&game(&app), &fields)
        .await
        .location();
    assert_eq!(browser.get(&callback).await.location(), game(&app));
    let session = browser.cookie("platform-session").unwrap().to_owned();

    let again = browser.get(&callback).await;
    assert_eq!(again.setback(), ("expired".to_owned(), Some(game(&app))));
    assert_eq!(browser.cookie("platform-session"), Some(session.as_str()));
    assert!(!browser.token().await.claims().is_anon);
}

#[tokio::test]
async fn a_sign_in_belongs_to_the_browser_that_began_it() {
    let app = TestApp::start().await;
    let mut victim = Browser::new(&app);
    let mut attacker = Browser::new(&app);
    let fields = [("name", "Mallory"), ("action", "sign-in")];
    let callback = attacker
        .at_demo_provider(&game(&app), &fields)
        .await
        .location();

    let tricked = victim.get(&callback).await;
    assert_eq!(tricked.setback(), ("other-browser".to_owned(), None));
    let mut bare = Browser::new(&app);
    bare.lose_cookie("platform-form");
    let tricked = bare.get(&callback).await;
    assert_eq!(tricked.setback(), ("other-browser".to_owned(), None));
    assert_eq!(app.count_players(), 0);

    // It is still there for the browser that began it.
    assert_eq!(attacker.get(&callback).await.location(), game(&app));
}

#[tokio::test]
async fn who_cancels_is_the_guest_that_they_were() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    let guest = browser.token().await.claims();
    let session = browser.cookie("platform-session").unwrap().to_owned();
    let fields = [("name", ""), ("action", "cancel")];
    let callback = browser
        .at_demo_provider(&game(&app), &fields)
        .await
        .location();
    let back = browser.get(&callback).await;
    assert_eq!(back.setback(), ("cancelled".to_owned(), Some(game(&app))));
    assert_eq!(browser.cookie("platform-session"), Some(session.as_str()));
    let claims = browser.token().await.claims();
    assert_eq!((claims.sub, claims.is_anon), (guest.sub, true));

    // That sign-in has ended.
    let again = browser.get(&callback).await;
    assert_eq!(again.setback(), ("expired".to_owned(), Some(game(&app))));
}

#[tokio::test]
async fn ten_minutes_are_enough() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    let chosen = browser.choose("demo", &game(&app)).await;
    let state = &chosen.location_query()["state"];
    app.clock.advance(600_001);
    let callback = format!(
        "{}/callback/demo?error=access_denied&state={state}",
        app.origin("auth")
    );
    let back = browser.get(&callback).await;
    assert_eq!(back.setback(), ("expired".to_owned(), Some(game(&app))));
}

#[tokio::test]
async fn an_unknown_state_leads_back_to_the_game_that_it_began_in() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    let auth = app.origin("auth");
    let callback = format!("{auth}/callback/demo?code=a&state=unknown");
    let back = browser.get(&callback).await;
    assert_eq!(
        back.setback(),
        ("expired".to_owned(), None),
        "nothing began"
    );
    let level = format!("{}/level?n=1&m=2#start", app.origin("dev-demo"));
    browser.choose("demo", &game(&app)).await.location();
    browser.choose("demo", &level).await.location();
    let back = browser.get(&callback).await;
    let login = back.location();
    assert_eq!(back.setback(), ("expired".to_owned(), Some(level)));
    let page = browser.get(&login).await;
    assert!(
        page.text().contains("Back to Firefly (dev)"),
        "{}",
        page.text()
    );

    // It is checked like every return address.
    let held = browser.cookie("platform-form").unwrap().to_owned();
    let (secret, _) = held.split_once('.').unwrap();
    for tossed in [
        URL_SAFE_NO_PAD.encode("https://evil.example/"),
        URL_SAFE_NO_PAD.encode("javascript:alert(1)"),
        URL_SAFE_NO_PAD.encode([0xff]),
        URL_SAFE_NO_PAD.encode(format!("{}/{}", app.origin("demo"), "x".repeat(3_000))),
        "%".to_owned(),
        String::new(),
    ] {
        browser.set_cookie("platform-form", &format!("{secret}.{tossed}"));
        let back = browser.get(&callback).await;
        assert_eq!(back.setback(), ("expired".to_owned(), None), "{tossed}");
    }
}

#[tokio::test]
async fn what_no_provider_would_answer_is_refused_and_changes_nothing() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    let guest = browser.token().await.claims();
    let chosen = browser.choose("demo", &game(&app)).await;
    let state = chosen.location_query()["state"].clone();
    let auth = app.origin("auth");
    for (query, expected) in [
        (String::new(), "failed"),
        (format!("state={state}"), "failed"),
        (format!("code=a&code=b&state={state}"), "failed"),
        (format!("code=a&state={state}&state={state}"), "failed"),
        (format!("code=a&error=b&state={state}"), "failed"),
        (
            format!("code={}&state={state}", "a".repeat(8_193)),
            "failed",
        ),
        ("code=a".to_owned(), "expired"),
        ("code=a&state=unknown".to_owned(), "expired"),
        ("code=a&state=".to_owned(), "expired"),
        (format!("code=a&state={state}A"), "expired"),
        (format!("code=a&state={}", "s".repeat(6_000)), "expired"),
    ] {
        let back = browser.get(&format!("{auth}/callback/demo?{query}")).await;
        let expected = (expected.to_owned(), Some(game(&app)));
        assert_eq!(back.setback(), expected, "{query}");
    }
    // None of them was the right response, so the right one is still expected.
    let back = browser
        .get(&format!(
            "{auth}/callback/demo?code=wrong&state={state}&iss={auth}/demo-provider"
        ))
        .await;
    assert_eq!(back.setback(), ("failed".to_owned(), Some(game(&app))));
    let claims = browser.token().await.claims();
    assert_eq!((claims.sub, claims.is_anon), (guest.sub, true));
}

#[tokio::test]
async fn an_answer_that_names_another_issuer_or_none_is_a_mix_up() {
    let app = TestApp::start().await;
    let auth = app.origin("auth");
    for issuer in ["", "&iss=https%3A%2F%2Fevil.example", "&iss="] {
        let mut browser = Browser::new(&app);
        let fields = [("name", "Ada"), ("action", "sign-in")];
        let answered = browser.at_demo_provider(&game(&app), &fields).await;
        let query = answered.location_query();
        let callback = format!(
            "{auth}/callback/demo?code={}&state={}{issuer}",
            query["code"], query["state"]
        );
        let back = browser.get(&callback).await;
        assert_eq!(back.setback().0, "failed", "{issuer}");
    }
    assert_eq!(app.count_players(), 0);
}

#[tokio::test]
async fn who_wants_another_account_is_asked_which() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    browser.sign_in("Ada", &game(&app)).await;
    let login = format!("{}/login", app.origin("auth"));
    let page = browser.get(&login).await;
    assert_eq!(hidden_field(&page, "another"), "1");
    let token = browser.form_token().to_owned();
    let fields = [("csrf", token.as_str()), ("another", "1")];
    let chosen = browser.post(&format!("{login}/demo"), &fields).await;
    assert_eq!(chosen.location_query()["prompt"], "login");
    let page = browser.get(&chosen.location()).await;
    assert_eq!(page.status, 200, "the provider takes it");
    let twice = [fields[0], fields[1], fields[1]];
    let twice = browser.post(&format!("{login}/demo"), &twice).await;
    assert_eq!(twice.problem(), "invalid-request");

    // Other players are not asked twice who they are.
    let mut guest = Browser::new(&app);
    guest.token().await;
    let page = guest.get(&login).await;
    assert!(!page.text().contains("another"), "{}", page.text());
    let chosen = guest.choose("demo", &game(&app)).await;
    assert!(!chosen.location_query().contains_key("prompt"));
}

#[tokio::test]
async fn unknown_providers_are_not_found() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    for id in ["google", "DEMO", "demo%2F", "x".repeat(300).as_str()] {
        let answer = browser.choose(id, &game(&app)).await;
        assert_eq!(
            (answer.status.as_u16(), answer.problem().as_str()),
            (404, "not-found")
        );
        let address = format!("{}/callback/{id}?code=a&state=b", app.origin("auth"));
        let answer = browser.get(&address).await;
        assert_eq!(answer.problem(), "not-found");
    }
}

#[tokio::test]
async fn only_our_own_form_begins_a_sign_in() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    let address = format!("{}/login/demo", app.origin("auth"));
    let redirect = game(&app);
    let wrong = browser.post(&address, &[("redirect", &redirect)]).await;
    assert_eq!(
        (wrong.status.as_u16(), wrong.problem().as_str()),
        (403, "not-allowed")
    );
    let token = browser.form_token().to_owned();
    let fields = format!("csrf={token}");
    let form = "application/x-www-form-urlencoded";
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
    ] {
        let request = browser
            .request(reqwest::Method::POST, &address)
            .header("content-type", form)
            .header(name, value)
            .body(fields.clone());
        assert_eq!(
            browser.send(request).await.problem(),
            "not-allowed",
            "{name}: {value}"
        );
    }
    for redirect in [
        "https://evil.example/",
        "//evil.example",
        "javascript:alert(1)",
    ] {
        let answer = browser.choose("demo", redirect).await;
        assert_eq!(
            (answer.status.as_u16(), answer.problem().as_str()),
            (400, "invalid-redirect"),
            "{redirect}"
        );
    }
    let twice = [
        ("csrf", token.as_str()),
        ("redirect", &redirect),
        ("redirect", &redirect),
    ];
    assert_eq!(
        browser.post(&address, &twice).await.problem(),
        "invalid-request"
    );
}

#[tokio::test]
async fn an_address_that_is_gone_at_the_end_is_not_gone_to() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    let fields = [("name", "Ada"), ("action", "sign-in")];
    let callback = browser
        .at_demo_provider(&game(&app), &fields)
        .await
        .location();
    app.sql("UPDATE pending_sign_ins SET redirect = 'https://evil.example/'");
    let answer = browser.get(&callback).await;
    assert_eq!(
        (answer.status.as_u16(), answer.problem().as_str()),
        (400, "invalid-redirect")
    );
    assert_eq!(app.count_players(), 0);
}

#[tokio::test]
async fn a_suspended_account_does_not_get_in() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    browser.sign_in("Ada", &game(&app)).await;
    let sub = browser.token().await.claims().sub.parse().unwrap();
    app.suspend(sub, Some("You were unkind.")).await;

    let mut other = Browser::new(&app);
    let guest = other.token().await.claims();
    let refused = other.sign_in("Ada", &game(&app)).await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.problem(), "account-suspended");
    assert!(refused.text().contains("You were unkind."));
    assert_eq!(refused.cookie(), None);
    assert_eq!(other.token().await.claims().sub, guest.sub);
}

#[tokio::test]
async fn a_new_identity_in_a_suspended_players_browser_is_let_in() {
    let app = TestApp::start().await;
    let store = &app.running.state.platform.store;
    let mut guest = Browser::new(&app);
    guest.token().await;
    let mut account = Browser::new(&app);
    account.sign_in("Ada", &game(&app)).await;
    for (mut browser, name) in [(guest, "Bob"), (account, "Cleo")] {
        let suspended = browser.token().await.claims().sub;
        let id = suspended.parse().unwrap();
        app.suspend(id, None).await;
        assert_eq!(browser.token().await.problem(), "account-suspended");
        let done = browser.sign_in(name, &game(&app)).await;
        assert_eq!(done.location(), game(&app));
        let claims = browser.token().await.claims();
        assert_ne!(claims.sub, suspended);
        assert!(!claims.is_anon);
        // The suspension stays unchanged.
        let left = store.find_player(id).await.unwrap().unwrap();
        assert!(matches!(left.state, PlayerState::Suspended { .. }));
    }
}

#[tokio::test]
async fn a_guest_whose_session_cookie_got_lost_on_the_way_is_not_lost() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    let guest = browser.token().await.claims();
    let fields = [("name", "Ada"), ("action", "sign-in")];
    let callback = browser
        .at_demo_provider(&game(&app), &fields)
        .await
        .location();
    browser.lose_cookie("platform-session");
    assert_eq!(browser.get(&callback).await.location(), game(&app));
    assert_eq!(browser.token().await.claims().sub, guest.sub);
}

#[tokio::test]
async fn a_session_planted_before_the_sign_in_opens_nothing_after_it() {
    let app = TestApp::start().await;
    let mut attacker = Browser::new(&app);
    let planted_guest = attacker.token().await.claims();
    let planted = attacker.cookie("platform-session").unwrap().to_owned();
    let mut victim = Browser::new(&app);
    victim.set_cookie("platform-session", &planted);
    victim.sign_in("Ada", &game(&app)).await;
    let account = victim.token().await.claims();
    assert_eq!((account.sub, account.is_anon), (planted_guest.sub, false));
    assert_eq!(attacker.token().await.problem(), "session-expired");
}

#[tokio::test]
async fn two_sessions_at_once_are_refused_before_anything_happens() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    let fields = [("name", "Ada"), ("action", "sign-in")];
    let callback = browser
        .at_demo_provider(&game(&app), &fields)
        .await
        .location();
    let (one, other) = (send(app.post_token()).await, send(app.post_token()).await);
    let value = one.cookie().unwrap().replace("platform-session=", "");
    let both = format!("{value}; {}", other.cookie().unwrap());
    browser.set_cookie("platform-session", &both);
    assert_eq!(browser.get(&callback).await.problem(), "invalid-request");
    browser.lose_cookie("platform-session");
    assert_eq!(browser.get(&callback).await.location(), game(&app));
}

#[tokio::test]
async fn one_address_does_not_begin_sign_ins_without_end() {
    let app = TestApp::with(|config| {
        config.sign_in_rate = config.guest_rate;
        config.sign_in_rate.period = platform_server::config::Period::Minute;
        config.sign_in_rate.count = 60.try_into().unwrap();
        config.sign_in_rate.burst = 3.try_into().unwrap();
    })
    .await;
    let mut browser = Browser::new(&app);
    for _ in 0..3 {
        browser.choose("demo", &game(&app)).await.location();
    }
    let refused = browser.choose("demo", &game(&app)).await;
    assert_eq!(refused.problem(), "too-many-requests");
    assert_eq!(refused.header("retry-after"), Some("1"));
    app.clock
        .advance(Duration::from_secs(1).as_millis().try_into().unwrap());
    browser.choose("demo", &game(&app)).await.location();
}
