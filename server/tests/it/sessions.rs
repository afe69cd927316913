//! The cookie, and the end of sessions.

use platform_server::domain::session::{RENEW_MILLIS, SESSION_MILLIS};
use reqwest::Method;

use crate::support::{Answer, TestApp, send};

async fn come_back(app: &TestApp, cookie: &str) -> Answer {
    send(app.post_token().header("cookie", cookie)).await
}

#[tokio::test]
async fn a_guest_who_comes_back_is_the_same_player_in_every_game() {
    let app = TestApp::start().await;
    let first = send(app.post_token()).await;
    let cookie = first.cookie().unwrap();
    let again = come_back(&app, cookie).await;
    assert_eq!(again.claims().sub, first.claims().sub);
    assert_ne!(again.claims().jti, first.claims().jti);
    assert_eq!(again.header("set-cookie"), None);
    let dev = app
        .request(Method::POST, "auth", "/token")
        .header("origin", app.origin("dev-demo"))
        .header("cookie", cookie);
    let dev = send(dev).await.claims();
    assert_eq!(
        (dev.sub, dev.aud.as_str()),
        (first.claims().sub, "game:dev-demo")
    );
    assert_eq!(app.count_players(), 1);
}

#[tokio::test]
async fn a_session_in_use_is_renewed_at_most_daily() {
    let app = TestApp::start().await;
    let first = send(app.post_token()).await;
    let cookie = first.cookie().unwrap();
    // Guests who never come back are swept, which may happen as soon as the clock has moved.
    come_back(&app, cookie).await;
    app.clock.advance(RENEW_MILLIS - 1);
    assert_eq!(come_back(&app, cookie).await.header("set-cookie"), None);
    app.clock.advance(1);
    let renewed = come_back(&app, cookie).await;
    assert_eq!(renewed.header("set-cookie"), first.header("set-cookie"));
    assert_eq!(come_back(&app, cookie).await.header("set-cookie"), None);
    app.clock.advance(SESSION_MILLIS - 1);
    assert_eq!(
        come_back(&app, cookie).await.claims().sub,
        first.claims().sub
    );
}

#[tokio::test]
async fn cookies_that_are_not_ours_make_a_new_guest() {
    let app = TestApp::start().await;
    let unknown = format!("platform-session={}", "A".repeat(43));
    let huge = format!("platform-session={}", "x".repeat(8_192));
    let other_scheme = {
        let first = send(app.post_token()).await;
        first
            .cookie()
            .unwrap()
            .replace("platform-session", "__Host-platform-session")
    };
    for cookie in [
        &unknown,
        &huge,
        &other_scheme,
        "platform-session=",
        "platform-session=ä%20",
    ] {
        let players = app.count_players();
        let answer = come_back(&app, cookie).await;
        assert_eq!(answer.status, 200, "{cookie}");
        assert!(
            answer.cookie().is_some_and(|fresh| fresh != cookie),
            "{cookie}"
        );
        assert_eq!(app.count_players(), players + 1, "{cookie}");
    }
}

/// Returns the `Set-Cookie` lines of a response.
fn set_cookies(answer: &Answer) -> Vec<&str> {
    let lines = answer.headers.get_all(reqwest::header::SET_COOKIE).iter();
    lines.map(|line| line.to_str().unwrap()).collect()
}

#[tokio::test]
async fn a_session_cookie_that_was_tossed_in_is_told_apart_and_removed() {
    let app = TestApp::start().await;
    let first = send(app.post_token()).await;
    let cookie = first.cookie().unwrap();
    let never_issued = format!("platform-session={}", "A".repeat(43));
    for both in [
        format!("{cookie}; {cookie}"),
        format!("platform-session=tossed; a=1; {cookie}"),
        format!("{never_issued}; {cookie}"),
        format!("{cookie}; {never_issued}"),
    ] {
        let answer = come_back(&app, &both).await;
        assert_eq!(answer.claims().sub, first.claims().sub, "{both}");
        for path in ["/", "/token"] {
            let line =
                format!("platform-session=; Max-Age=0; Path={path}; Domain=platform.localhost");
            assert!(set_cookies(&answer).contains(&line.as_str()), "{answer:?}");
        }
    }
    // The server cannot distinguish two sessions, so nothing happens except that the cookie of the
    // domain is expired; the other one is alone at the next request.
    let other = send(app.post_token()).await;
    let both = format!("{cookie}; {}", other.cookie().unwrap());
    let answer = come_back(&app, &both).await;
    assert_eq!(answer.problem(), "invalid-request");
    assert!(
        set_cookies(&answer)
            .iter()
            .all(|line| line.contains("; Domain="))
    );
    assert_eq!(app.count_players(), 2);
    let page = send(app.get("auth", "/login").header("cookie", &both)).await;
    assert_eq!(page.status, 200);
}

#[tokio::test]
async fn where_the_session_may_have_been_pushed_out_the_player_is_told_once() {
    let app = TestApp::start().await;
    let foreign: Vec<String> = (0..150).map(|number| format!("c{number}=1")).collect();
    let foreign = foreign.join("; ");
    let first = send(app.post_token()).await;
    let with_session = format!("{foreign}; {}", first.cookie().unwrap());
    let answer = come_back(&app, &with_session).await;
    assert_eq!(answer.claims().sub, first.claims().sub);
    assert!(set_cookies(&answer).len() > 20, "others' cookies expire");

    let told = come_back(&app, &foreign).await;
    assert_eq!(told.problem(), "invalid-request");
    assert_eq!(app.count_players(), 1, "no guest was made");
    let marker = told.cookie().unwrap().to_owned();
    assert!(marker.starts_with("platform-healed="), "{marker}");
    let next = come_back(&app, &format!("{foreign}; {marker}")).await;
    assert_eq!(next.status, 200);
    // A few cookies are no attack, and pages respond with any number.
    let few = come_back(&app, "a=1; b=2").await;
    assert_eq!(few.status, 200);
    for (label, path) in [("auth", "/login"), ("", "/")] {
        // Not all of them fit, so each response begins at a different one: soon one of them
        // contains those of the platform's domain.
        let mut is_expired = false;
        for _ in 0..50 {
            let page = send(app.get(label, path).header("cookie", &foreign)).await;
            assert_eq!(page.status, 200);
            let lines = set_cookies(&page);
            assert!(!lines.is_empty());
            is_expired |= lines.iter().any(|line| line.contains("; Domain="));
        }
        assert!(is_expired, "{label}{path}");
    }
    let game = send(app.get("demo", "/").header("cookie", &foreign)).await;
    assert!(
        set_cookies(&game).is_empty(),
        "a game's cookies are its own"
    );
}

#[tokio::test]
async fn a_partitioned_cookie_of_a_game_expires_as_well() {
    let app = TestApp::start().await;
    let answer = come_back(&app, "tossed=1").await;
    for kind in ["", "; Secure; Partitioned"] {
        let line = format!("tossed=; Max-Age=0; Path=/; Domain=platform.localhost{kind}");
        assert!(set_cookies(&answer).contains(&line.as_str()), "{answer:?}");
    }
    // However many cookies there are, a response stays small enough for a proxy.
    let many: Vec<String> = (0..150).map(|number| format!("c{number}=1")).collect();
    let page = app.get("auth", "/login").header("cookie", many.join("; "));
    let lines = send(page).await;
    assert!(set_cookies(&lines).len() <= 42, "{lines:?}");
}

#[tokio::test]
async fn cookies_of_a_proxy_in_front_stay_where_the_operator_names_them() {
    let app = TestApp::with(|config| {
        config.keep_cookies = vec!["cf_clearance".to_owned(), "AWSALB".to_owned()];
    })
    .await;
    let cookies = "cf_clearance=a; AWSALB=b; tossed=c";
    for (label, path) in [("auth", "/login"), ("", "/")] {
        let page = send(app.get(label, path).header("cookie", cookies)).await;
        let lines = set_cookies(&page);
        assert!(lines.iter().any(|line| line.starts_with("tossed=;")));
        let kept = |line: &&str| line.starts_with("cf_clearance") || line.starts_with("AWSALB");
        assert!(!lines.iter().any(kept), "{lines:?}");
    }
}

#[tokio::test]
async fn two_first_requests_at_once_get_two_cookies_that_work() {
    let app = TestApp::start().await;
    let (one, other) = tokio::join!(send(app.post_token()), send(app.post_token()));
    for answer in [one, other] {
        let again = come_back(&app, answer.cookie().unwrap()).await;
        assert_eq!(again.claims().sub, answer.claims().sub);
    }
}

#[tokio::test]
async fn a_guest_whose_session_ended_becomes_a_new_guest() {
    let app = TestApp::start().await;
    let first = send(app.post_token()).await;
    app.clock.advance(SESSION_MILLIS);
    let again = come_back(&app, first.cookie().unwrap()).await;
    assert_ne!(again.claims().sub, first.claims().sub);
    assert!(again.cookie().is_some());
}

#[tokio::test]
async fn a_session_that_ends_by_age_is_told_so_while_the_browser_keeps_its_cookie() {
    let days = |number: i64| number * RENEW_MILLIS;
    let app = TestApp::start().await;
    let first = send(app.post_token()).await;
    let set = first.header("set-cookie").unwrap();
    assert!(set.contains("Max-Age=34560000"), "400 days: {set}");
    app.sql("UPDATE players SET linked = 1");
    let cookie = first.cookie().unwrap();
    let account = come_back(&app, cookie).await.claims().sub;
    app.clock.advance(days(369));
    let used = come_back(&app, cookie).await;
    assert_eq!(used.claims().sub, account);
    assert_eq!(used.header("set-cookie"), Some(set), "both begin anew");
    app.clock.advance(days(371));
    let ended = come_back(&app, cookie).await;
    assert_eq!(
        (ended.status.as_u16(), ended.problem().as_str()),
        (401, "session-expired")
    );
}

#[tokio::test]
async fn account_that_ended_gets_session_expired_and_no_guest() {
    let app = TestApp::start().await;
    let first = send(app.post_token()).await;
    app.sql("UPDATE players SET linked = 1");
    let account = come_back(&app, first.cookie().unwrap()).await;
    assert!(!account.claims().is_anon);
    app.clock.advance(SESSION_MILLIS);
    let ended = come_back(&app, first.cookie().unwrap()).await;
    assert_eq!(
        (ended.status.as_u16(), ended.problem().as_str()),
        (401, "session-expired")
    );
    assert_eq!(ended.header("set-cookie"), None);
    assert_eq!(
        ended.header("access-control-allow-origin"),
        Some(app.origin("demo").as_str())
    );
    assert_eq!(app.count_players(), 1);
}

#[tokio::test]
async fn guest_merged_away_gets_session_expired() {
    let app = TestApp::start().await;
    let guest = send(app.post_token()).await;
    let account = send(app.post_token()).await;
    let (guest_id, account_id) = (hex(&guest.claims().sub), hex(&account.claims().sub));
    app.sql(&format!(
        "UPDATE players SET merged_into = x'{account_id}' WHERE id = x'{guest_id}'"
    ));
    assert_eq!(
        come_back(&app, guest.cookie().unwrap()).await.problem(),
        "session-expired"
    );
    assert_eq!(come_back(&app, account.cookie().unwrap()).await.status, 200);
    assert_eq!(app.count_players(), 2);
}

fn hex(id: &str) -> String {
    id.replace('-', "")
}

#[tokio::test]
async fn suspended_players_are_told_why_and_get_no_guest() {
    let app = TestApp::start().await;
    let first = send(app.post_token()).await;
    let cookie = first.cookie().unwrap();
    app.sql("UPDATE players SET suspended_at = 1, suspension_reason = 'You were unkind.'");
    let refused = come_back(&app, cookie).await;
    assert_eq!(
        (refused.status.as_u16(), refused.problem().as_str()),
        (403, "account-suspended")
    );
    assert_eq!(
        refused.json::<serde_json::Value>()["detail"],
        "You were unkind."
    );
    app.sql("UPDATE players SET suspended_at = NULL, suspension_reason = NULL");
    assert_eq!(
        come_back(&app, cookie).await.claims().sub,
        first.claims().sub
    );
    assert_eq!(app.count_players(), 1);
}

#[tokio::test]
async fn signing_out_ends_the_session_and_clears_the_cookie() {
    let app = TestApp::start().await;
    let first = send(app.post_token()).await;
    let sign_out = |origin: String| {
        app.request(Method::POST, "auth", "/sign-out")
            .header("origin", origin)
            .header("cookie", first.cookie().unwrap())
    };
    let refused = send(sign_out("http://evil.example".into())).await;
    assert_eq!(refused.problem(), "unknown-origin");
    assert_eq!(
        come_back(&app, first.cookie().unwrap()).await.claims().sub,
        first.claims().sub
    );

    let done = send(sign_out(app.origin("dev-demo"))).await;
    assert_eq!(done.status, 204);
    assert_eq!(
        done.header("access-control-allow-origin"),
        Some(app.origin("dev-demo").as_str())
    );
    assert_eq!(
        done.header("set-cookie"),
        Some("platform-session=; HttpOnly; SameSite=Lax; Path=/; Max-Age=0; Priority=High")
    );
    let after = come_back(&app, first.cookie().unwrap()).await;
    assert_ne!(after.claims().sub, first.claims().sub);
    // The page that asks is for games on a site of their own. It asks nobody without a session.
    let page = send(app.get("auth", "/sign-out")).await;
    assert_eq!(page.status, 303);
    let home = format!("{}/", app.running.origin);
    assert_eq!(page.header("location"), Some(home.as_str()));
}

#[tokio::test]
async fn players_are_still_there_after_a_restart() {
    let app = TestApp::start().await;
    let first = send(app.post_token()).await;
    let key_set = send(app.get("auth", "/.well-known/jwks.json")).await;
    let app = app.restart(|_| {}).await;
    let again = come_back(&app, first.cookie().unwrap()).await;
    assert_eq!(again.claims().sub, first.claims().sub);
    assert_eq!(
        send(app.get("auth", "/.well-known/jwks.json")).await.body,
        key_set.body
    );
}
