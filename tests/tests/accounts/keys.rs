//! When keys are fetched: providers change them, and a token with an unknown key must not make the
//! platform fetch them without limit (OpenID Connect Core 1.0 §10.1.1).

use platform_tests::person::Person;
use platform_tests::platform::Site;
use serde_json::json;

use crate::scene::{PROVIDER, Scene};

#[tokio::test]
async fn a_provider_changes_its_keys_between_two_sign_ins() {
    let scene = Scene::set().await;
    let sites = scene.platform.sites();
    let (mut person, _) = scene.guest().await;
    let account = person.become_account(PROVIDER, "alice").await;
    sign_in_at(&sites, &account.sub).await;
    let before = scene.provider.asked().await;

    scene.provider.add_key("ES256", "second").await;
    let changed = json!({ "key": "second", "published": ["second"] });
    scene.provider.behave(&changed).await;
    sign_in_at(&sites, &account.sub).await;
    let after = scene.provider.asked().await;
    let fetched = usize::try_from(after.jwks - before.jwks).unwrap();
    assert_eq!(fetched, sites.len(), "each node fetched them once more");
    assert_eq!(after.discovery, before.discovery);

    // And they are cached.
    sign_in_at(&sites, &account.sub).await;
    assert_eq!(scene.provider.asked().await.jwks, after.jwks);
}

/// Lets a guest sign in to an account at each of these addresses.
async fn sign_in_at(sites: &[Site], account: &str) {
    for site in sites {
        let (mut person, _) = Person::guest(site).await;
        let again = person.become_account(PROVIDER, "alice").await;
        assert_eq!(again.sub, account);
    }
}

#[tokio::test]
async fn a_provider_changes_its_keys_while_somebody_is_on_the_way() {
    let scene = Scene::set().await;
    let (mut person, guest) = scene.guest().await;
    let callback = person.reach_callback(PROVIDER, "alice").await;
    scene.provider.add_key("RS256", "second").await;
    let changed = json!({ "key": "second", "published": ["second"] });
    scene.provider.behave(&changed).await;
    assert_eq!(person.follow(&callback).await.see_other(), person.game());
    assert_eq!(person.play().await.sub, guest.sub);
}

#[tokio::test]
async fn an_unknown_kid_makes_the_platform_ask_once() {
    let scene = Scene::set().await;
    let unknown = json!({ "header": { "kid": "nobody" } });
    scene.refused("first", &unknown, "failed").await;
    let sites = scene.platform.sites();
    scene.provider.behave(&unknown).await;
    for site in &sites {
        let (mut person, _) = Person::guest(site).await;
        let answer = person.sign_in(PROVIDER, "first").await;
        assert_eq!(answer.login_problem(), "failed");
    }
    let first = scene.provider.asked().await.jwks;
    for kid in ["nobody", "somebody", "", "../../first", "' OR 1=1 --"] {
        let unknown = json!({ "header": { "kid": kid } });
        scene.refused(kid, &unknown, "failed").await;
    }
    let huge = json!({ "header": { "kid": "k".repeat(10_000) } });
    scene.refused("huge", &huge, "failed").await;
    let no_text = json!({ "header": { "kid": ["first"] } });
    scene.refused("no text", &no_text, "failed").await;
    assert_eq!(
        scene.provider.asked().await.jwks,
        first,
        "the keys were fetched again and again"
    );
    // A while later another fetch is allowed, but only one on each node.
    scene.platform.clock.advance(31_000);
    let (mut person, _) = scene.guest().await;
    for _ in 0..3 {
        let shift = json!({ "iat": 31, "exp": 31 });
        let unknown = json!({ "header": { "kid": "nobody" }, "shift": shift });
        scene.provider.behave(&unknown).await;
        assert_eq!(
            person.sign_in(PROVIDER, "later").await.login_problem(),
            "failed"
        );
    }
    let later = scene.provider.asked().await.jwks;
    let most = 2 * u64::try_from(sites.len()).unwrap();
    assert!(later <= first + most, "{first} fetches became {later}");
    assert!(later > first, "a new key would never be found");
}

#[tokio::test]
async fn a_key_set_that_fails_when_it_is_needed_signs_nobody_in() {
    for (what, fault, problem) in [
        ("500", json!({ "status": 500 }), "provider-unavailable"),
        ("drop", json!({ "drop": true }), "provider-unavailable"),
        ("huge", json!({ "bytes": 8 << 20 }), "provider-unavailable"),
        ("garbage", json!({ "body": "{" }), "provider-unavailable"),
        ("empty", json!({ "body": "{\"keys\":[]}" }), "failed"),
    ] {
        let scene = Scene::set().await;
        // Now the platform has the keys, on every node.
        for site in scene.platform.sites() {
            let (mut person, _) = Person::guest(&site).await;
            person.become_account(PROVIDER, "before").await;
        }
        scene.provider.add_key("ES256", "second").await;
        let behaviour = json!({ "key": "second", "jwks": fault });
        let (mut person, guest) = scene.guest().await;
        let before = scene.lasting();
        scene.provider.behave(&behaviour).await;
        let answer = person.sign_in(PROVIDER, what).await;
        assert_eq!(answer.login_problem(), problem, "{what}");
        scene
            .came_to_nothing(what, &mut person, &guest, &before, &answer)
            .await;
    }
}

#[tokio::test]
async fn without_a_kid_the_one_key_is_taken() {
    let scene = Scene::set().await;
    let (mut person, guest) = scene.guest().await;
    let nameless = json!({ "header": { "kid": null } });
    scene.provider.behave(&nameless).await;
    let account = person.become_account(PROVIDER, "alice").await;
    assert_eq!(account.sub, guest.sub);

    // Also if the key set does not name the key.
    let scene = Scene::set().await;
    let (mut person, guest) = scene.guest().await;
    let nameless = json!({ "header": { "kid": null }, "hide": ["kid", "alg", "use"] });
    scene.provider.behave(&nameless).await;
    let account = person.become_account(PROVIDER, "alice").await;
    assert_eq!(account.sub, guest.sub);
}

#[tokio::test]
async fn without_a_kid_and_with_several_keys_nobody_is_signed_in() {
    let scene = Scene::set().await;
    scene.provider.add_key("ES256", "second").await;
    let nameless = json!({ "header": { "kid": null } });
    scene.refused("nameless", &nameless, "failed").await;
    // By name, both keys work.
    for key in ["first", "second"] {
        let (mut person, guest) = scene.guest().await;
        scene.provider.behave(&json!({ "key": key })).await;
        assert_eq!(person.become_account(PROVIDER, key).await.sub, guest.sub);
    }
}
