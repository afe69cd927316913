//! Token endpoints, key sets and metadata that are down, slow, huge or wrong.

use futures_util::future::join_all;
use platform_tests::hostile_provider::HostileProvider;
use platform_tests::person::Person;
use platform_tests::platform::Platform;
use serde_json::{Value, json};

use crate::scene::{PROVIDER, Scene};

/// 8 MiB, much more than any response of a provider.
const HUGE: u64 = 8 << 20;
/// This must not appear in any page.
const MARKUP: &str = "<script>alert(1)</script>";

/// The name of a fault in the tests, the fault, and the message for the player.
type Fault = (&'static str, Value, &'static str);

/// Token endpoints that do not respond, or refuse.
fn refusals() -> Vec<Fault> {
    let unavailable = |what, fault| (what, fault, "provider-unavailable");
    let failed = |what, fault| (what, fault, "failed");
    let error = json!({ "error": "invalid_grant", "error_description": MARKUP }).to_string();
    vec![
        unavailable("500", json!({ "status": 500, "body": "" })),
        unavailable("503", json!({ "status": 503, "body": "{}" })),
        unavailable("429", json!({ "status": 429, "body": "{}" })),
        unavailable("connection ends", json!({ "drop": true })),
        unavailable("8 MiB", json!({ "bytes": HUGE })),
        failed("invalid_grant", json!({ "status": 400, "body": error })),
        failed(
            "invalid_client",
            json!({ "status": 401, "body": "{\"error\":\"invalid_client\"}" }),
        ),
        failed("400 without a word", json!({ "status": 400, "body": "" })),
        failed("404", json!({ "status": 404, "body": MARKUP })),
        failed("204", json!({ "status": 204, "body": "" })),
    ]
}

/// Invalid responses of token endpoints.
fn wrong_answers() -> Vec<Fault> {
    let failed = |what, fault| (what, fault, "failed");
    let page = json!({ "content-type": "text/html" });
    let member = |name: &str, value: Value| json!({ "members": { name: value } });
    vec![
        failed("nothing", json!({ "body": "" })),
        failed("garbage", json!({ "body": "{\"access_token\":" })),
        failed("a page", json!({ "body": MARKUP, "headers": page })),
        failed("a list", json!({ "body": "[]" })),
        failed("no ID token", member("id_token", Value::Null)),
        failed("an ID token of a number", member("id_token", json!(7))),
        failed("an ID token of nothing", member("id_token", json!(""))),
        failed("no access token", member("access_token", Value::Null)),
        failed("no token type", member("token_type", Value::Null)),
    ]
}

#[tokio::test]
async fn a_token_endpoint_that_misbehaves_signs_nobody_in() {
    let scene = Scene::set().await;
    for (what, fault, problem) in refusals().into_iter().chain(wrong_answers()) {
        let behaviour = json!({ "token": fault });
        scene.refused(what, &behaviour, problem).await;
    }
}

#[tokio::test]
async fn a_token_endpoint_that_leads_elsewhere_is_not_followed() {
    let scene = Scene::set().await;
    let elsewhere = HostileProvider::start().await;
    let away = json!({ "location": format!("{}/token", elsewhere.address) });
    for status in [301, 302, 303, 307, 308] {
        let fault = json!({ "status": status, "body": "", "headers": away });
        let behaviour = json!({ "token": fault });
        scene
            .refused(&status.to_string(), &behaviour, "failed")
            .await;
    }
    assert_eq!(
        elsewhere.asked().await.token,
        0,
        "a code was sent elsewhere"
    );
}

#[tokio::test]
async fn a_token_endpoint_that_never_answers_is_given_up() {
    let scene = Scene::set().await;
    let behaviour = json!({ "token": { "delay": "forever" } });
    scene
        .refused("never", &behaviour, "provider-unavailable")
        .await;
}

#[tokio::test]
async fn while_the_provider_is_slow_guests_play_on() {
    let scene = Scene::set().await;
    let (mut waiting, _) = scene.guest().await;
    let (mut other, guest) = scene.guest().await;
    let callback = waiting.reach_callback(PROVIDER, "patient").await;
    scene
        .provider
        .behave(&json!({ "token": { "delay": 1_500 } }))
        .await;
    let signing_in = tokio::spawn(async move {
        let answer = waiting.follow(&callback).await;
        answer.see_other().to_owned()
    });
    let mut rounds = 0;
    while !signing_in.is_finished() && rounds < 20 {
        assert_eq!(other.play().await.sub, guest.sub);
        let (mut newcomer, _) = scene.guest().await;
        newcomer.play().await;
        rounds += 1;
    }
    assert_eq!(rounds, 20, "they played while one was waiting");
    assert_eq!(signing_in.await.unwrap(), other.game());
}

/// Every way in which the first requests can fail.
fn first_faults() -> Vec<(&'static str, Value)> {
    let other = "https://evil.example";
    let discovery = |fault: Value| json!({ "discovery": fault });
    let members = |members: Value| json!({ "discovery": { "members": members } });
    let jwks = |fault: Value| json!({ "jwks": fault });
    vec![
        ("metadata 404", discovery(json!({ "status": 404 }))),
        ("metadata 500", discovery(json!({ "status": 500 }))),
        ("metadata drop", discovery(json!({ "drop": true }))),
        ("metadata huge", discovery(json!({ "bytes": HUGE }))),
        ("metadata garbage", discovery(json!({ "body": "{" }))),
        ("metadata a page", discovery(json!({ "body": "<p>Hello" }))),
        (
            "metadata elsewhere",
            discovery(json!({ "status": 302, "headers": { "location": other } })),
        ),
        ("metadata slow", discovery(json!({ "delay": "forever" }))),
        ("issuer of another", members(json!({ "issuer": other }))),
        ("issuer missing", members(json!({ "issuer": null }))),
        (
            "no authorization endpoint",
            members(json!({ "authorization_endpoint": null })),
        ),
        (
            "no token endpoint",
            members(json!({ "token_endpoint": null })),
        ),
        ("no key set", members(json!({ "jwks_uri": null }))),
        (
            "token endpoint over http",
            members(json!({ "token_endpoint": "http://evil.example/token" })),
        ),
        (
            "authorization endpoint of a script",
            members(json!({ "authorization_endpoint": "javascript:alert(1)" })),
        ),
        (
            "key set over http",
            members(json!({ "jwks_uri": "http://evil.example/jwks" })),
        ),
        ("keys 500", jwks(json!({ "status": 500 }))),
        ("keys drop", jwks(json!({ "drop": true }))),
        ("keys huge", jwks(json!({ "bytes": HUGE }))),
        ("keys garbage", jwks(json!({ "body": "{" }))),
        ("keys slow", jwks(json!({ "delay": "forever" }))),
    ]
}

#[tokio::test]
async fn a_provider_that_cannot_be_discovered_is_said_to_be_unavailable() {
    let faults = first_faults();
    let providers: Vec<HostileProvider> =
        join_all(faults.iter().map(|_| HostileProvider::start())).await;
    let ids: Vec<String> = (0..faults.len())
        .map(|number| format!("p{number}"))
        .collect();
    let known: Vec<(&str, &HostileProvider)> =
        ids.iter().map(String::as_str).zip(&providers).collect();
    let platform = Platform::start(&known).await;
    let (mut person, guest) = Person::guest(&platform.site).await;
    let before = platform.tables();
    let attempts = faults
        .iter()
        .zip(&known)
        .map(|((what, fault), (id, provider))| {
            let mut person = person.clone();
            async move {
                provider.behave(fault).await;
                let redirect = person.game();
                let form = person.login_form(id, &redirect).await;
                let csrf = form.field("csrf").unwrap();
                let fields = [("csrf", csrf), ("redirect", redirect.as_str())];
                let answer = person.submit(&form.action, &fields).await;
                assert_eq!(answer.login_problem(), "provider-unavailable", "{what}");
            }
        });
    join_all(attempts).await;
    before.demand_same(&platform.tables(), "unavailable providers");
    assert_eq!(person.play().await.sub, guest.sub);

    // None of them is lost permanently.
    for ((what, _), (id, provider)) in faults.iter().zip(&known) {
        provider.behave(&json!({})).await;
        let mut person = Person::new(&platform.site);
        person.play().await;
        person.become_account(id, what).await;
    }
}

#[tokio::test]
async fn a_key_set_without_a_key_for_signatures_signs_nobody_in() {
    let provider = HostileProvider::start().await;
    let mut for_encryption = provider.key_set().await;
    for_encryption["keys"][0]["use"] = json!("enc");
    let for_encryption = json!({ "jwks": { "body": for_encryption.to_string() } });
    for (what, behaviour) in [
        ("no key", json!({ "published": [] })),
        ("a key for encryption", for_encryption),
    ] {
        provider.behave(&behaviour).await;
        let scene = Scene::set_with(provider.clone()).await;
        let (mut person, guest) = scene.guest().await;
        let callback = person.reach_callback(PROVIDER, what).await;
        let before = scene.lasting();
        let answer = person.follow(&callback).await;
        assert_eq!(answer.login_problem(), "failed", "{what}");
        scene
            .came_to_nothing(what, &mut person, &guest, &before, &answer)
            .await;
        // The key is looked up again a while later.
        scene.platform.clock.advance(31_000);
        let later = json!({ "shift": { "iat": 31, "exp": 31 } });
        provider.behave(&later).await;
        scene.still_signs_in(what, &mut person, &guest).await;
    }
}
