//! How many guests an address may hold, and how fast it may create them. Existing guests can always
//! continue to play.

use platform_server::config::{Config, Period};
use platform_tests::hostile_provider::HostileProvider;
use platform_tests::person::{Answer, Person};
use platform_tests::platform::{Platform, rate};
use serde_json::json;

use crate::scene::PROVIDER;

const DAY: i64 = 24 * 60 * 60 * 1_000;

async fn platform(cap: u32, settings: impl FnOnce(&mut Config)) -> Platform {
    Platform::start_with(&[], |config| {
        config.guests_per_address = cap;
        settings(config);
    })
    .await
}

/// The test machine is a trusted proxy.
fn behind_proxy(config: &mut Config) {
    config.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
}

fn is_full(answer: &Answer) {
    assert_eq!(answer.status, 429);
    assert_eq!(answer.slug(), "guest-limit-reached");
    let problem = answer.problem();
    assert_eq!(problem.status, 429);
    assert!(!problem.detail.is_empty() && !problem.request_id.is_empty());
    assert!(answer.headers.get("set-cookie").is_none());
    assert_eq!(
        answer.header("access-control-allow-credentials"),
        "true",
        "the page may read why"
    );
}

#[tokio::test]
async fn an_address_holds_fifty_guests_and_all_of_them_play_on() {
    // The number is the default.
    let cap = Config::default().guests_per_address;
    assert_eq!(cap, 50);
    let platform = platform(cap, |_| {}).await;
    let mut guests = Vec::new();
    for _ in 0..cap {
        guests.push(Person::guest(&platform.site).await);
    }
    for _ in 0..3 {
        let mut late = Person::new(&platform.site);
        is_full(&late.token().await);
    }
    assert_eq!(platform.tables().rows("players").len(), 50);
    for (person, guest) in &mut guests {
        assert_eq!(person.play().await.sub, guest.sub);
    }
    // An invalid cookie is no way around the limit.
    let mut forger = Person::new(&platform.site);
    let name = forger.session_name().to_owned();
    forger.jar.insert(name, "A".repeat(43));
    is_full(&forger.token().await);
}

#[tokio::test]
async fn many_at_once_are_let_in_and_count_as_their_cookies_come_back() {
    let platform = platform(50, |_| {}).await;
    let all = (0..60).map(|_| {
        let mut person = Person::new(&platform.site);
        async move {
            let answer = person.token().await;
            (person, answer)
        }
    });
    let all = futures_util::future::join_all(all).await;
    // New guests count against the limit, too.
    assert_eq!(platform.tables().rows("players").len(), 50);
    let (let_in, refused): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|(_, answer)| answer.status == 200);
    assert_eq!(let_in.len(), 50);
    for (_, answer) in &refused {
        is_full(answer);
    }
    for (mut person, _) in let_in {
        let claims = person.play().await;
        assert_eq!(person.play().await.sub, claims.sub);
    }
    is_full(&Person::new(&platform.site).token().await);
    assert_eq!(platform.tables().rows("players").len(), 50);
}

#[tokio::test]
async fn guests_that_are_idle_make_room() {
    let platform = platform(3, |_| {}).await;
    let mut guests = Vec::new();
    for _ in 0..3 {
        guests.push(Person::guest(&platform.site).await);
    }
    is_full(&Person::new(&platform.site).token().await);
    // Two of them are in use, and so continue to count.
    for _ in 0..3 {
        platform.clock.advance(DAY / 3);
        for (person, guest) in &mut guests[..2] {
            assert_eq!(person.play().await.sub, guest.sub);
        }
    }
    platform.clock.advance(1_000);
    let (mut fourth, fourth_claims) = Person::guest(&platform.site).await;
    is_full(&Person::new(&platform.site).token().await);
    // The idle guest can still return: it is never refused.
    let (idle, idle_claims) = &mut guests[2];
    assert_eq!(idle.play().await.sub, idle_claims.sub);
    assert_eq!(fourth.play().await.sub, fourth_claims.sub);
    is_full(&Person::new(&platform.site).token().await);
}

#[tokio::test]
async fn signing_out_makes_room() {
    let platform = platform(2, |_| {}).await;
    let (mut first, claims) = Person::guest(&platform.site).await;
    Person::guest(&platform.site).await;
    is_full(&Person::new(&platform.site).token().await);
    first.sign_out().await;
    let (mut again, again_claims) = Person::guest(&platform.site).await;
    assert_ne!(again_claims.sub, claims.sub);
    is_full(&Person::new(&platform.site).token().await);
    assert_eq!(again.play().await.sub, again_claims.sub);
}

#[tokio::test]
async fn signing_in_makes_room_and_is_the_way_past_a_full_address() {
    let provider = HostileProvider::start().await;
    let platform = Platform::start_with(&[(PROVIDER, &provider)], |config| {
        config.guests_per_address = 2;
    })
    .await;
    let (mut first, first_guest) = Person::guest(&platform.site).await;
    let (mut second, _) = Person::guest(&platform.site).await;
    // A player who is refused can sign in without ever having been a guest.
    let mut late = Person::new(&platform.site);
    is_full(&late.token().await);
    let account = late.become_account(PROVIDER, "late").await;
    assert_eq!(late.play().await.sub, account.sub);
    is_full(&Person::new(&platform.site).token().await);
    // Linking a guest frees a slot, and so does merging one.
    let linked = first.become_account(PROVIDER, "first").await;
    assert_eq!(linked.sub, first_guest.sub);
    let (mut third, _) = Person::guest(&platform.site).await;
    is_full(&Person::new(&platform.site).token().await);
    let merged = second.become_account(PROVIDER, "late").await;
    assert_eq!(merged.sub, account.sub);
    Person::guest(&platform.site).await;
    is_full(&Person::new(&platform.site).token().await);
    assert!(third.play().await.is_anon);
    let _ = json!({});
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_clients_address_counts() {
    let platform = platform(2, behind_proxy).await;
    let person = |address: &str| Person::new(&platform.site).from_address(address);
    let full = async |address: &str| is_full(&person(address).token().await);
    let free = async |address: &str| {
        let mut person = person(address);
        for _ in 0..2 {
            assert_eq!(person.token().await.status, 200);
        }
    };
    for _ in 0..2 {
        free("198.51.100.1").await;
    }
    full("198.51.100.1").await;
    free("198.51.100.2").await;
    // Addresses that the client itself wrote are on the left and do not count.
    full("203.0.113.9, 198.51.100.1").await;
    full("203.0.113.10, 198.51.100.1").await;
    // An IPv4-mapped IPv6 address counts as the IPv4 address.
    full("::ffff:198.51.100.1").await;
    full("198.51.100.1:4711").await;
    // A household has at least a /64 of IPv6 addresses.
    free("2001:db8:0:1::1").await;
    free("2001:db8:0:1:ffff:ffff:ffff:ffff").await;
    full("2001:db8:0:1:1234::5").await;
    full("[2001:db8:0:1::9]:4711").await;
    free("2001:db8:0:2::1").await;
}

#[tokio::test]
async fn without_a_trusted_proxy_a_forwarded_address_is_nobodys() {
    let platform = platform(2, |_| {}).await;
    for number in 1..=2 {
        let mut person = Person::new(&platform.site).from_address(&format!("198.51.100.{number}"));
        for _ in 0..2 {
            assert_eq!(person.token().await.status, 200);
        }
    }
    let mut forger = Person::new(&platform.site).from_address("198.51.100.77");
    is_full(&forger.token().await);
    forger.say("forwarded", "for=198.51.100.78");
    forger.say("x-real-ip", "198.51.100.79");
    forger.say("cf-connecting-ip", "198.51.100.80");
    is_full(&forger.token().await);
}

#[tokio::test]
async fn a_guest_that_moves_is_held_where_it_was_made() {
    let platform = platform(1, behind_proxy).await;
    let mut person = Person::new(&platform.site).from_address("198.51.100.1");
    let guest = person.play().await;
    // A guest who moves into a full network can continue to play.
    let mut resident = Person::new(&platform.site).from_address("198.51.100.2");
    resident.play().await;
    let mut moved = person.clone().from_address("198.51.100.2");
    assert_eq!(moved.play().await.sub, guest.sub);
}

#[tokio::test]
async fn too_many_guests_at_once_get_the_plain_answer_of_the_edge() {
    let platform = platform(1_000, |config| {
        config.guest_rate = rate(1, Period::Hour, 3);
    })
    .await;
    let mut guests = Vec::new();
    for _ in 0..3 {
        guests.push(Person::guest(&platform.site).await);
    }
    let answer = Person::new(&platform.site).token().await;
    assert_eq!(answer.status, 429);
    assert!(answer.header("content-type").starts_with("text/plain"));
    let wait: u32 = answer.header("retry-after").parse().unwrap();
    assert!((1..=3_600).contains(&wait), "{wait}");
    assert!(answer.headers.get("set-cookie").is_none());
    assert!(serde_json::from_str::<serde_json::Value>(&answer.body).is_err());
    for (person, guest) in &mut guests {
        assert_eq!(person.play().await.sub, guest.sub);
    }
    platform.clock.advance(i64::from(wait) * 1_000);
    Person::guest(&platform.site).await;
}

#[tokio::test]
async fn the_edge_answers_before_the_cap_where_both_are_reached() {
    let platform = platform(2, |config| {
        config.guest_rate = rate(1, Period::Hour, 2);
    })
    .await;
    for _ in 0..2 {
        Person::guest(&platform.site).await;
    }
    let answer = Person::new(&platform.site).token().await;
    assert!(answer.header("content-type").starts_with("text/plain"));
    // Once the rate limit allows a request, the cap applies.
    platform.clock.advance(2 * 60 * 60 * 1_000);
    is_full(&Person::new(&platform.site).token().await);
}
