//! The table of states, row by row, over HTTP. The only row without a server, a local test guest,
//! is tested in the browser: `local.rs` there.

use platform_protocol::claims::PrincipalKind;
use platform_protocol::paths;
use platform_server::domain::audit::Actor;
use platform_server::domain::player::PlayerState;
use platform_server::web::seal::PRESS_MILLIS;
use platform_tests::hostile_provider::HostileProvider;
use platform_tests::person::{Answer, Person};
use platform_tests::platform::Platform;
use platform_tests::terminal;
use reqwest::Method;
use reqwest::header::ORIGIN;
use serde_json::json;

use crate::scene::{PROVIDER, Scene};

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// Asserts 401 `session-expired`, and that no new player takes its place.
async fn is_expired(scene: &Scene, person: &mut Person) {
    let before = scene.platform.tables();
    for _ in 0..2 {
        let answer = person.token().await;
        assert_eq!(answer.status, 401);
        assert_eq!(answer.slug(), "session-expired");
        assert!(answer.headers.get("set-cookie").is_none());
    }
    before.demand_same(&scene.platform.tables(), "an expired session");
}

#[tokio::test]
async fn a_first_visit_becomes_a_guest_in_one_answer() {
    let scene = Scene::set().await;
    let mut person = Person::new(&scene.platform.site);
    let answer = person.token().await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers.get_all("set-cookie").iter().count(), 1);
    let claims = person.play().await;
    assert!(claims.is_anon);
    assert_eq!(claims.principal_kind, PrincipalKind::Human);
    let parts: Vec<&str> = claims.username.split('-').collect();
    assert_eq!(parts.len(), 3, "a generated name: {}", claims.username);
    let player = scene
        .platform
        .store()
        .find_player(claims.sub.parse().unwrap());
    assert_eq!(player.await.unwrap().unwrap().state, PlayerState::Guest);
}

#[tokio::test]
async fn a_guest_with_a_new_identity_becomes_an_account_and_keeps_its_id() {
    let scene = Scene::set().await;
    let (mut person, guest) = scene.guest().await;
    let account = person.become_account(PROVIDER, "alice").await;
    assert_eq!(account.sub, guest.sub);
    assert_eq!(account.username, guest.username);
    assert!(!account.is_anon);
    let id = guest.sub.parse().unwrap();
    let store = scene.platform.store();
    let player = store.find_player(id).await.unwrap().unwrap();
    assert_eq!(player.state, PlayerState::Account);
    let identities = store.list_identities(id).await.unwrap();
    assert_eq!(identities.len(), 1);
    assert_eq!(identities[0].provider, PROVIDER);
    // The same player in every game.
    let answer = person.token_for("dev-demo").await;
    assert_eq!(subject(&answer), guest.sub);
}

fn subject(answer: &Answer) -> String {
    let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    platform_tests::visitor::claims(body["access_token"].as_str().unwrap()).sub
}

#[tokio::test]
async fn a_guest_with_a_known_identity_goes_into_its_account() {
    let scene = Scene::set().await;
    let (mut first, account) = scene.guest().await;
    first.become_account(PROVIDER, "alice").await;
    let (mut second, guest) = scene.guest().await;
    // The same guest in another tab.
    let mut tab = second.clone();
    assert_ne!(guest.sub, account.sub);
    let after = second.become_account(PROVIDER, "alice").await;
    assert_eq!(after.sub, account.sub);
    assert_eq!(after.username, account.username);
    // The guest never gets a token again, and no new guest takes its place.
    is_expired(&scene, &mut tab).await;
    let store = scene.platform.store();
    let merged = store.find_player(guest.sub.parse().unwrap()).await;
    let into = account.sub.parse().unwrap();
    let merged = merged.unwrap().unwrap();
    assert_eq!(merged.state, PlayerState::Merged { into });
    // Its name is free, so the account may use it.
    assert_ne!(merged.username, guest.username);
    let now = scene.platform.running.state.platform.clock.now();
    store
        .rename_player(into, &guest.username, Actor::Own.into(), now)
        .await
        .unwrap();
    store
        .rename_player(into, &account.username, Actor::Own.into(), now)
        .await
        .unwrap();
    // The first browser is still signed in.
    assert_eq!(first.play().await.sub, account.sub);
    // A merged guest can sign in, and becomes the account.
    assert_eq!(tab.become_account(PROVIDER, "alice").await.sub, account.sub);
}

#[tokio::test]
async fn an_account_whose_session_ended_expires_and_comes_back_by_signing_in() {
    let scene = Scene::set().await;
    let (mut person, guest) = scene.guest().await;
    person.become_account(PROVIDER, "alice").await;

    // Ended by the player in another browser.
    let mut other = Person::new(&scene.platform.site);
    assert_eq!(other.become_account(PROVIDER, "alice").await.sub, guest.sub);
    let profile = other.open(paths::PROFILE).await;
    let form = terminal::form(&profile, paths::PROFILE, "csrf");
    let fields = [
        ("csrf", form.field("csrf").unwrap()),
        ("shown", form.field("shown").unwrap()),
        ("action", "sign-out-others"),
    ];
    scene.platform.clock.advance(PRESS_MILLIS);
    let answer = other.submit(paths::PROFILE, &fields).await;
    assert!(answer.see_other().contains("saved=sign-out-others"));
    is_expired(&scene, &mut person).await;
    assert_eq!(other.play().await.sub, guest.sub);
    let back = person.become_account(PROVIDER, "alice").await;
    assert_eq!(back.sub, guest.sub);

    // Ended by age.
    scene.platform.clock.advance(401 * DAY);
    is_expired(&scene, &mut person).await;
    let seconds = 401 * DAY / 1_000;
    let late = json!({ "shift": { "iat": seconds, "exp": seconds } });
    scene.provider.behave(&late).await;
    let back = person.become_account(PROVIDER, "alice").await;
    assert_eq!(back.sub, guest.sub);
    let players = scene.platform.tables().rows("players").len();
    assert_eq!(players, 1, "nobody else was made meanwhile");
}

#[tokio::test]
async fn a_guest_whose_session_ended_by_age_is_a_new_guest() {
    let scene = Scene::set().await;
    let (mut person, guest) = scene.guest().await;
    scene.platform.clock.advance(401 * DAY);
    let next = person.play().await;
    assert!(next.is_anon);
    assert_ne!(next.sub, guest.sub);
}

#[tokio::test]
async fn signing_out_signs_out_of_every_game_and_the_next_visit_is_a_new_guest() {
    let scene = Scene::set().await;
    let (mut person, guest) = scene.guest().await;
    person.become_account(PROVIDER, "alice").await;
    let (mut still_guest, other_guest) = scene.guest().await;
    for (person, sub) in [
        (&mut person, guest.sub),
        (&mut still_guest, other_guest.sub),
    ] {
        let before = person.clone();
        person.sign_out().await;
        assert!(!person.jar.contains_key(person.session_name()));
        let mut seen = vec![sub.clone()];
        for game in ["demo", "dev-demo"] {
            let mut visitor = person.clone();
            let answer = visitor.token_for(game).await;
            let next = subject(&answer);
            assert!(!seen.contains(&next), "{game}");
            seen.push(next);
        }
        // The cookie itself is not valid any more, wherever somebody kept it.
        let mut kept = before;
        let answer = kept.token().await;
        match answer.status.as_u16() {
            200 => assert_ne!(kept.play().await.sub, sub),
            _ => assert_eq!(answer.slug(), "session-expired"),
        }
    }
    // Signing out twice, or without a session, is no error.
    person.sign_out().await;
    person.sign_out().await;
}

#[tokio::test]
async fn a_full_address_gives_no_token_until_somebody_signs_in() {
    let provider = HostileProvider::start().await;
    let platform = Platform::start_with(&[(PROVIDER, &provider)], |config| {
        config.guests_per_address = 1;
    })
    .await;
    Person::guest(&platform.site).await;
    let mut late = Person::new(&platform.site);
    let answer = late.token().await;
    assert_eq!(answer.status, 429);
    assert_eq!(answer.slug(), "guest-limit-reached");
    assert!(answer.headers.get("set-cookie").is_none());
    let account = late.become_account(PROVIDER, "late").await;
    assert!(!account.is_anon);
}

#[tokio::test]
async fn a_suspended_account_plays_again_when_the_suspension_is_lifted() {
    let scene = Scene::set().await;
    let (mut person, guest) = scene.guest().await;
    person.become_account(PROVIDER, "alice").await;
    let (id, store) = (guest.sub.parse().unwrap(), scene.platform.store());
    let now = scene.platform.running.state.platform.clock.now();
    assert!(
        store
            .suspend_player(id, None, Actor::Operator.into(), now)
            .await
            .unwrap()
    );
    let before = scene.platform.tables();
    for _ in 0..2 {
        let answer = person.token().await;
        assert_eq!(answer.status, 403);
        assert_eq!(answer.slug(), "account-suspended");
    }
    before.demand_same(&scene.platform.tables(), "a suspended account");
    assert!(
        store
            .unsuspend_player(id, Actor::Operator.into(), now)
            .await
            .unwrap()
    );
    assert_eq!(person.play().await.sub, guest.sub);
}

#[tokio::test]
async fn a_chosen_name_is_in_the_next_token() {
    let scene = Scene::set().await;
    let (mut person, guest) = scene.guest().await;
    let game = person.game();
    for (signed_in, name) in [(false, "Guest_Name"), (true, "Chosen-Name")] {
        if signed_in {
            person.become_account(PROVIDER, "alice").await;
        }
        let form = person.login_form(PROVIDER, &game).await;
        let fields = [
            ("csrf", form.field("csrf").unwrap()),
            ("redirect", game.as_str()),
            ("action", "rename"),
            ("username", name),
        ];
        let answer = person.submit(paths::PROFILE, &fields).await;
        let address = answer.see_other().to_owned();
        assert!(address.contains("saved=rename"), "{address}");
        let claims = person.play().await;
        assert_eq!(claims.username, name);
        assert_eq!(claims.sub, guest.sub);
        assert_eq!(claims.is_anon, !signed_in);
    }
}

#[tokio::test]
async fn asking_from_elsewhere_makes_nobody() {
    let scene = Scene::set().await;
    let before = scene.platform.tables();
    let mut person = Person::new(&scene.platform.site);
    let auth = scene.platform.site.url("auth", "");
    for origin in ["null", "http://evil.example", auth.as_str()] {
        let headers = [(ORIGIN, origin)];
        let answer = person.ask(Method::POST, paths::TOKEN, &headers, None).await;
        assert_eq!(answer.slug(), "unknown-origin", "{origin}");
    }
    before.demand_same(&scene.platform.tables(), "unknown origins");
}
