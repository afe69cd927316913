//! The table of errors, row by row, over HTTP. Two rows only exist in the browser: a 401 of the
//! game's backend, after which the runtime repeats the call once (`calls.rs` there), and status 0,
//! which means no response at all (`answers.rs` there).

use platform_server::config::Period;
use platform_tests::hostile_provider::HostileProvider;
use platform_tests::person::{Answer, Person};
use platform_tests::platform::{Platform, rate};
use reqwest::Method;
use reqwest::header::{ACCEPT, ORIGIN};

use crate::scene::PROVIDER;

/// Checks every member of a problem of the token exchange (RFC 9457 §3), and the page that explains
/// it.
async fn is_problem(platform: &Platform, answer: &Answer, status: u16, slug: &str) {
    assert_eq!(answer.status.as_u16(), status);
    let problem = answer.problem();
    let auth = platform.site.url("auth", "");
    assert_eq!(problem.type_uri, format!("{auth}/problems/{slug}"));
    assert_eq!(problem.status, status);
    assert!(!problem.title.is_empty());
    assert!(
        problem.detail.len() > 10 && problem.detail.ends_with('.'),
        "a sentence for the player: {}",
        problem.detail
    );
    assert_eq!(problem.request_id, answer.header("x-request-id"));
    let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(body["type"], problem.type_uri.as_str());

    let origin = platform.site.url("demo", "");
    assert_eq!(answer.header("access-control-allow-origin"), origin);
    assert_eq!(answer.header("access-control-allow-credentials"), "true");
    let exposed = answer.header("access-control-expose-headers");
    assert!(exposed.contains("X-Request-Id") && exposed.contains("Retry-After"));
    assert!(answer.header("vary").contains("Origin"));
    assert!(answer.headers.get("set-cookie").is_none(), "no session");

    let mut reader = Person::new(&platform.site);
    let page = reader.follow(&problem.type_uri).await;
    assert_eq!(page.status, 200);
    assert!(page.header("content-type").starts_with("text/html"));
}

#[tokio::test]
async fn every_problem_of_the_token_exchange_is_as_the_table_says() {
    let provider = HostileProvider::start().await;
    let platform = Platform::start_with(&[(PROVIDER, &provider)], |config| {
        config.guests_per_address = 2;
        config.guest_rate = rate(1, Period::Hour, 3);
    })
    .await;
    let (mut person, guest) = Person::guest(&platform.site).await;
    let old = person.clone();
    person.become_account(PROVIDER, "alice").await;

    // 401 session-expired
    let mut expired = old;
    let answer = expired.token().await;
    is_problem(&platform, &answer, 401, "session-expired").await;

    // 403 account-suspended
    let id = guest.sub.parse().unwrap();
    for reason in [None, Some("You were not nice.")] {
        platform.suspend(id, reason).await;
        let answer = person.token().await;
        is_problem(&platform, &answer, 403, "account-suspended").await;
        if let Some(reason) = reason {
            assert_eq!(answer.problem().detail, reason);
        }
    }

    // 429 guest-limit-reached
    for _ in 0..2 {
        Person::guest(&platform.site).await;
    }
    platform.clock.advance(60 * 60 * 1_000);
    let answer = Person::new(&platform.site).token().await;
    is_problem(&platform, &answer, 429, "guest-limit-reached").await;

    // 429 without a problem
    let answer = Person::new(&platform.site).token().await;
    assert_eq!(answer.status, 429);
    assert!(answer.header("content-type").starts_with("text/plain"));
    assert!(answer.header("retry-after").parse::<u32>().unwrap() > 0);
    let origin = platform.site.url("demo", "");
    assert_eq!(answer.header("access-control-allow-origin"), origin);
}

#[tokio::test]
async fn a_problem_stays_a_problem_however_it_is_asked_for() {
    let provider = HostileProvider::start().await;
    let platform = Platform::start(&[(PROVIDER, &provider)]).await;
    let (mut person, _) = Person::guest(&platform.site).await;
    let mut old = person.clone();
    person.become_account(PROVIDER, "alice").await;
    let origin = platform.site.url("demo", "");
    for accept in ["text/html", "*/*", "application/json", "image/png"] {
        let headers = [(ORIGIN, origin.as_str()), (ACCEPT, accept)];
        let answer = old.ask(Method::POST, "/token", &headers, None).await;
        assert_eq!(answer.slug(), "session-expired", "{accept}");
    }
}
