//! Restoring a guest after a game has signed it out.

use platform_server::domain::audit::{Actor, AuditKind};
use platform_server::web::seal::PRESS_MILLIS;
use reqwest::Method;
use reqwest::header::HeaderName;

use crate::browser::{Browser, hidden_field};
use crate::support::{Answer, TestApp};

const SESSION: &str = "platform-session";
const LEFT: &str = "platform-guests";

/// Any game can do this.
async fn sign_out(app: &TestApp, browser: &mut Browser<'_>) -> Answer {
    let address = format!("{}/sign-out", app.origin("auth"));
    let request = browser.request(Method::POST, &address);
    let answer = browser
        .send(request.header("origin", app.origin("demo")))
        .await;
    assert_eq!(answer.status, 204, "{answer:?}");
    answer
}

/// Presses the button of this guest, or of the first one.
async fn restore(app: &TestApp, browser: &mut Browser<'_>, guest: Option<&str>) -> Answer {
    let address = format!("{}/restore-guest", app.origin("auth"));
    let page = browser.get(&address).await;
    assert_eq!(page.status, 200, "{page:?}");
    let guest = guest.map_or_else(|| hidden_field(&page, "guest"), str::to_owned);
    let game = format!("{}/level?n=1", app.origin("demo"));
    let (token, shown) = (browser.form_token().to_owned(), browser.shown().to_owned());
    let fields = [
        ("csrf", token.as_str()),
        ("shown", shown.as_str()),
        ("redirect", game.as_str()),
        ("guest", guest.as_str()),
    ];
    browser.post(&address, &fields).await
}

fn assert_is_back_at_the_page(answer: &Answer) {
    let location = answer.location();
    assert!(
        location.starts_with("/restore-guest?redirect="),
        "{location}"
    );
    assert!(!location.contains("hurried"), "{location}");
}

#[tokio::test]
async fn a_guest_that_a_game_signed_out_is_gone_on_as() {
    let app = TestApp::start().await;
    app.clock.advance(PRESS_MILLIS);
    let mut browser = Browser::new(&app);
    let guest = browser.token().await.claims();
    let answer = sign_out(&app, &mut browser).await;
    let set = answer
        .headers
        .get_all(HeaderName::from_static("set-cookie"));
    let left: Vec<&str> = set.iter().map(|value| value.to_str().unwrap()).collect();
    let left = left.iter().find(|set| set.starts_with(LEFT)).unwrap();
    for part in [
        "; HttpOnly",
        "; SameSite=Lax",
        "; Path=/",
        "; Max-Age=34560000",
    ] {
        assert!(left.contains(part), "{left}");
    }
    assert!(!left.contains("Domain"), "{left}");
    assert_eq!(browser.cookie(LEFT).unwrap().len(), 43);

    // The next visit creates a new guest all the same.
    let next = browser.token().await.claims();
    assert_ne!(next.sub, guest.sub);
    let login = format!("{}/login", app.origin("auth"));
    let offered = browser.get(&login).await;
    assert!(
        offered.text().contains(&guest.username),
        "{}",
        offered.text()
    );
    assert!(offered.text().contains("/restore-guest?redirect="));
    let back = restore(&app, &mut browser, None).await;
    assert_eq!(back.location(), format!("{}/level?n=1", app.origin("demo")));
    let claims = browser.token().await.claims();
    assert_eq!(
        (claims.sub, claims.username),
        (guest.sub.clone(), guest.username)
    );

    // The guest that the browser had in between can be restored as well.
    let back = restore(&app, &mut browser, Some(&next.sub)).await;
    assert_eq!(back.status, 303);
    assert_eq!(browser.token().await.claims().sub, next.sub);
    let back = restore(&app, &mut browser, Some(&guest.sub)).await;
    assert_eq!(back.status, 303);
    assert_eq!(browser.token().await.claims().sub, guest.sub);
}

#[tokio::test]
async fn a_guest_is_restored_by_our_own_form_and_the_browsers_own_cookie_alone() {
    let app = TestApp::start().await;
    app.clock.advance(PRESS_MILLIS);
    let mut browser = Browser::new(&app);
    let guest = browser.token().await.claims();
    sign_out(&app, &mut browser).await;
    let address = format!("{}/restore-guest", app.origin("auth"));
    let token = browser.form_token().to_owned();
    for csrf in ["", "A", token.split_at(42).0] {
        let fields = [("csrf", csrf), ("guest", guest.sub.as_str())];
        let refused = browser.post(&address, &fields).await;
        assert_eq!(
            (refused.status.as_u16(), refused.problem()),
            (403, "not-allowed".into())
        );
    }
    // A press that came before the page could be read.
    let fields = [("csrf", token.as_str()), ("guest", guest.sub.as_str())];
    let hurried = browser.post(&address, &fields).await;
    assert!(hurried.location().ends_with("&hurried=1"));
    let page = browser
        .get(&format!("{}{}", app.origin("auth"), hurried.location()))
        .await;
    assert!(
        page.text().contains("Nothing was changed"),
        "{}",
        page.text()
    );
    let fields = [("csrf", token.as_str()), ("guest", "otter")];
    assert_eq!(
        browser.post(&address, &fields).await.problem(),
        "invalid-request"
    );
    // Another browser knows the id, but has no such guest.
    let mut other = Browser::new(&app);
    other.token().await;
    sign_out(&app, &mut other).await;
    let nothing = restore(&app, &mut other, Some(&guest.sub)).await;
    assert_is_back_at_the_page(&nothing);
    assert_eq!(other.cookie(SESSION), None);
    // After 30 days it is too late.
    app.clock.advance(30 * 24 * 60 * 60_000);
    let nothing = restore(&app, &mut browser, Some(&guest.sub)).await;
    assert_is_back_at_the_page(&nothing);
}

#[tokio::test]
async fn an_account_is_only_signed_out_and_is_asked_to_before_a_guest_comes_back() {
    let app = TestApp::start().await;
    app.clock.advance(PRESS_MILLIS);
    let mut browser = Browser::new(&app);
    let guest = browser.token().await.claims();
    sign_out(&app, &mut browser).await;
    let session = app.sign_in("ann", None).await;
    let (_, value) = session.split_once('=').unwrap();
    browser.set_cookie(SESSION, value);
    let account = browser.token().await.claims();
    assert!(!account.is_anon);
    let page = browser
        .get(&format!("{}/restore-guest", app.origin("auth")))
        .await;
    assert!(
        page.text().contains("You are signed in as"),
        "{}",
        page.text()
    );
    let refused = restore(&app, &mut browser, Some(&guest.sub)).await;
    assert_eq!(refused.problem(), "not-allowed");
    assert_eq!(browser.token().await.claims().sub, account.sub);
    sign_out(&app, &mut browser).await;
    assert_eq!(
        restore(&app, &mut browser, Some(&account.sub)).await.status,
        303
    );
    assert_eq!(
        browser.cookie(SESSION),
        None,
        "an account has its own way back"
    );
    assert_eq!(restore(&app, &mut browser, None).await.status, 303);
    assert_eq!(browser.token().await.claims().sub, guest.sub);
}

#[tokio::test]
async fn a_suspended_player_comes_back_as_nobody_else() {
    let app = TestApp::start().await;
    app.clock.advance(PRESS_MILLIS);
    let mut browser = Browser::new(&app);
    let first = browser.token().await.claims();
    sign_out(&app, &mut browser).await;
    let second = browser.token().await.claims();
    let player = second.sub.parse().unwrap();
    app.suspend(player, Some("Why.")).await;
    let address = format!("{}/restore-guest", app.origin("auth"));
    assert_eq!(browser.get(&address).await.problem(), "account-suspended");
    let (token, shown) = (browser.form_token().to_owned(), browser.shown().to_owned());
    let fields = [
        ("csrf", token.as_str()),
        ("shown", shown.as_str()),
        ("guest", first.sub.as_str()),
    ];
    assert_eq!(
        browser.post(&address, &fields).await.problem(),
        "account-suspended"
    );
    // Signing out does not get around it, and does not lose the guest.
    sign_out(&app, &mut browser).await;
    assert_eq!(
        browser.post(&address, &fields).await.problem(),
        "account-suspended"
    );
    app.unsuspend(player).await;
    assert_eq!(
        restore(&app, &mut browser, Some(&second.sub)).await.status,
        303
    );
    assert_eq!(browser.token().await.claims().sub, second.sub);
}

#[tokio::test]
async fn going_on_as_a_guest_is_in_the_log_of_events() {
    let app = TestApp::start().await;
    app.clock.advance(PRESS_MILLIS);
    let mut browser = Browser::new(&app);
    let guest = browser.token().await.claims();
    sign_out(&app, &mut browser).await;
    let next = browser.token().await.claims();
    let back = restore(&app, &mut browser, None).await;
    assert_eq!(back.status, 303);
    let events = app.events_of(AuditKind::GuestRestored).await;
    let [event] = events.as_slice() else {
        panic!("{events:?}");
    };
    let of = |id: Option<uuid::Uuid>| id.map(|id| id.to_string());
    assert_eq!(of(event.player), Some(guest.sub));
    assert_eq!(of(event.other), Some(next.sub));
    assert_eq!(event.actor, Actor::Own);
    assert_eq!(event.network.as_deref(), Some("127.0.0.1"));
    assert_eq!(event.request.as_deref(), back.header("x-request-id"));
}
