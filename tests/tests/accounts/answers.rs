//! What can be wrong with the provider's redirect back: the state, the code, the browser, the
//! issuer, and the provider's own errors (RFC 6749 §4.1.2, RFC 9207, OpenID Connect Core 1.0
//! §3.1.2).

use platform_protocol::paths;
use platform_tests::hostile_provider::HostileProvider;
use platform_tests::person::{Answer, Person, query};
use platform_tests::platform::Platform;
use reqwest::{Method, Url};
use serde_json::json;

use crate::scene::{PROVIDER, Scene, sets_session};

/// Returns `callback` with the parameter `name` set to `value`, or without it.
fn with(callback: &str, name: &str, value: Option<&str>) -> String {
    let mut url = Url::parse(callback).unwrap();
    let others: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(other, _)| other != name)
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    url.query_pairs_mut()
        .clear()
        .extend_pairs(others)
        .extend_pairs(value.map(|value| (name, value)));
    url.into()
}

/// A change of the address of a callback.
type Spoil = fn(&str) -> String;

fn parameter(callback: &str, name: &str) -> String {
    let url = Url::parse(callback).unwrap();
    let found = url.query_pairs().find(|(other, _)| other == name);
    found.unwrap().1.into_owned()
}

/// Asserts that this is the platform's own page, with a sentence and without the sent values.
fn is_page(answer: &Answer, what: &str) {
    assert!(
        answer.status.is_client_error() || answer.status == 303,
        "{what}: {} {}",
        answer.status,
        answer.body
    );
    if answer.status != 303 {
        assert!(
            answer.header("content-type").starts_with("text/html"),
            "{what}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn a_state_that_was_never_given_out_ends_on_the_sign_in_page() {
    let scene = Scene::set().await;
    let (mut person, guest) = scene.guest().await;
    let callback = person.reach_callback(PROVIDER, "alice").await;
    let state = parameter(&callback, "state");
    let before = scene.standing();
    let long = "s".repeat(6_000);
    let half = &state[..state.len() / 2];
    let doubled = format!("{state}{state}");
    let other_case = state.to_ascii_uppercase();
    let states = [
        None,
        Some(""),
        Some("x"),
        Some(half),
        Some(doubled.as_str()),
        Some(other_case.as_str()),
        Some(long.as_str()),
        Some("\u{0}"),
        Some("' OR 1=1 --"),
        Some("<script>alert(1)</script>"),
    ];
    for given in states {
        let wrong = with(&callback, "state", given);
        let answer = person.follow(&wrong).await;
        assert_eq!(answer.login_problem(), "expired", "{given:?}");
        before.demand_same(&scene.standing(), &format!("{given:?}"));
        assert!(!sets_session(&answer, &person), "{given:?}");
        assert_eq!(person.play().await.sub, guest.sub, "{given:?}");
    }
    assert_eq!(scene.provider.asked().await.token, 0, "no code was used");
    // The right address is still valid.
    assert_eq!(person.follow(&callback).await.see_other(), person.game());
    assert_eq!(person.play().await.sub, guest.sub);
}

#[tokio::test]
async fn parameters_that_come_twice_or_not_at_all_sign_nobody_in() {
    let scene = Scene::set().await;
    let other = "another";
    let forms: [(&str, Spoil); 6] = [
        ("two states", |callback| format!("{callback}&state=other")),
        ("two codes", |callback| format!("{callback}&code=other")),
        ("code and error", |callback| {
            format!("{callback}&error=access_denied")
        }),
        ("no code", |callback| with(callback, "code", None)),
        ("empty code", |callback| with(callback, "code", Some(""))),
        ("another's code", |callback| {
            with(callback, "code", Some("another"))
        }),
    ];
    for (what, spoil) in forms {
        let (mut person, guest) = scene.guest().await;
        let callback = person.reach_callback(PROVIDER, other).await;
        let before = scene.lasting();
        let answer = person.follow(&spoil(&callback)).await;
        is_page(&answer, what);
        assert_ne!(answer.header("location"), person.game(), "{what}");
        scene
            .came_to_nothing(what, &mut person, &guest, &before, &answer)
            .await;
    }
    // No parameters at all, no query at all, and an invalid query.
    let (mut person, _) = scene.guest().await;
    let path = format!("{}{PROVIDER}", paths::CALLBACK);
    for query in ["", "?", "?&&&", "?state", "?%ff=%ff", "?state=%ff&code=%ff"] {
        let answer = person.open(&format!("{path}{query}")).await;
        is_page(&answer, query);
    }
    let answer = person.ask(Method::POST, &path, &[], None).await;
    assert_eq!(answer.status, 405);
}

#[tokio::test]
async fn a_sign_in_ends_once() {
    let scene = Scene::set().await;
    let (mut person, guest) = scene.guest().await;
    let callback = person.reach_callback(PROVIDER, "alice").await;
    assert_eq!(person.follow(&callback).await.see_other(), person.game());
    let before = scene.standing();
    let tokens = scene.provider.asked().await.token;
    for _ in 0..3 {
        let again = person.follow(&callback).await;
        assert_eq!(again.login_problem(), "expired");
        assert!(!sets_session(&again, &person));
    }
    before.demand_same(&scene.standing(), "replayed");
    assert_eq!(scene.provider.asked().await.token, tokens);
    // The same code again, with a valid state: the provider detects it.
    let used = parameter(&callback, "code");
    let fresh = person.reach_callback(PROVIDER, "alice").await;
    let answer = person.follow(&with(&fresh, "code", Some(&used))).await;
    assert_eq!(answer.login_problem(), "failed");
    assert!(!sets_session(&answer, &person));

    let claims = person.play().await;
    assert_eq!(claims.sub, guest.sub);
    assert!(!claims.is_anon, "the sign-in that was good stays");
}

#[tokio::test]
async fn a_sign_in_is_forgotten_after_ten_minutes() {
    let scene = Scene::set().await;
    let late = json!({ "shift": { "iat": 601, "exp": 601 } });
    scene.provider.behave(&late).await;
    let (mut person, guest) = scene.guest().await;
    let callback = person.reach_callback(PROVIDER, "alice").await;
    scene.platform.clock.advance(601_000);
    let before = scene.lasting();
    let answer = person.follow(&callback).await;
    assert_eq!(answer.login_problem(), "expired");
    scene
        .came_to_nothing("late", &mut person, &guest, &before, &answer)
        .await;
    assert_eq!(scene.provider.asked().await.token, 0, "no code was used");
    scene.still_signs_in("again", &mut person, &guest).await;
}

#[tokio::test]
async fn a_sign_in_ends_in_the_browser_that_began_it() {
    let scene = Scene::set().await;
    // The attacker prepares a callback to their own account for the victim.
    let (mut attacker, _) = scene.guest().await;
    let callback = attacker.reach_callback(PROVIDER, "mallory").await;

    // One victim who has never seen a form here, and one who has.
    let (mut fresh, fresh_guest) = scene.guest().await;
    let (mut known, known_guest) = scene.guest().await;
    let game = known.game();
    known.login_form(PROVIDER, &game).await;
    let before = scene.standing();
    for (victim, guest) in [(&mut fresh, fresh_guest), (&mut known, known_guest)] {
        let answer = victim.follow(&callback).await;
        assert_eq!(answer.login_problem(), "other-browser");
        assert!(!sets_session(&answer, victim));
        before.demand_same(&scene.standing(), "another browser");
        let claims = victim.play().await;
        assert_eq!(claims.sub, guest.sub);
        assert!(claims.is_anon);
    }
    assert_eq!(scene.provider.asked().await.token, 0, "no code was used");
    // The victim could not use it up.
    assert_eq!(attacker.follow(&callback).await.see_other(), game);
}

#[tokio::test]
async fn a_guest_without_the_session_cookie_ends_its_sign_in_all_the_same() {
    let scene = Scene::set().await;
    let (mut person, guest) = scene.guest().await;
    let callback = person.reach_callback(PROVIDER, "alice").await;
    // As in an in-app browser that keeps only one kind of cookies.
    person.jar.remove(person.session_name());
    assert_eq!(person.follow(&callback).await.see_other(), person.game());
    let account = person.play().await;
    assert_eq!(account.sub, guest.sub, "the guest was kept with the state");
    assert!(!account.is_anon);
}

#[tokio::test]
async fn two_sign_ins_cannot_swap_their_answers() {
    let scene = Scene::set().await;
    let (mut one, one_guest) = scene.guest().await;
    let (mut two, two_guest) = scene.guest().await;
    let first = one.reach_callback(PROVIDER, "one").await;
    let second = two.reach_callback(PROVIDER, "two").await;
    let before = scene.lasting();
    // With each other's state.
    for (person, guest, callback) in [
        (&mut one, &one_guest, &second),
        (&mut two, &two_guest, &first),
    ] {
        let answer = person.follow(callback).await;
        assert_eq!(answer.login_problem(), "other-browser");
        scene
            .came_to_nothing("state", person, guest, &before, &answer)
            .await;
    }
    // An error response with somebody else's state belongs to nobody.
    let refusal = with(&with(&second, "code", None), "error", Some("access_denied"));
    let answer = one.follow(&refusal).await;
    assert_eq!(answer.login_problem(), "other-browser");
    // With each other's code. The provider refuses it because of the PKCE verifier.
    let code = parameter(&second, "code");
    let answer = one.follow(&with(&first, "code", Some(&code))).await;
    assert_eq!(answer.login_problem(), "failed");
    scene
        .came_to_nothing("code", &mut one, &one_guest, &before, &answer)
        .await;
}

#[tokio::test]
async fn a_code_of_another_sign_in_fails_by_its_nonce_alone() {
    let scene = Scene::set().await;
    // A provider that does not check PKCE verifiers.
    scene.provider.behave(&json!({ "pkce": "ignored" })).await;
    let (mut one, one_guest) = scene.guest().await;
    let (mut two, two_guest) = scene.guest().await;
    let first = one.reach_callback(PROVIDER, "one").await;
    let second = two.reach_callback(PROVIDER, "two").await;
    let before = scene.lasting();
    let code = parameter(&second, "code");
    let answer = one.follow(&with(&first, "code", Some(&code))).await;
    assert_eq!(answer.login_problem(), "failed");
    scene
        .came_to_nothing("code", &mut one, &one_guest, &before, &answer)
        .await;
    // Its own sign-in would have worked.
    let third = two.reach_callback(PROVIDER, "two").await;
    assert_eq!(two.follow(&third).await.see_other(), two.game());
    assert_eq!(two.play().await.sub, two_guest.sub);
}

#[tokio::test]
async fn an_answer_goes_to_the_provider_that_was_asked() {
    let (honest, evil) = (
        HostileProvider::start().await,
        HostileProvider::start().await,
    );
    let platform = Platform::start(&[("honest", &honest), ("evil", &evil)]).await;
    let (mut person, guest) = Person::guest(&platform.site).await;
    let callback = person.reach_callback("honest", "alice").await;
    // The same response at the other provider's callback, which would send the code to the other's
    // token endpoint.
    let mixed = callback.replace("/callback/honest", "/callback/evil");
    assert_ne!(mixed, callback);
    let answer = person.follow(&mixed).await;
    assert_ne!(answer.header("location"), person.game());
    is_page(&answer, "mixed up");
    assert!(!sets_session(&answer, &person));
    assert_eq!(evil.asked().await.token, 0, "the code went to another");
    assert_eq!(honest.asked().await.token, 0);
    assert!(person.play().await.is_anon);

    // A response that claims to be from the other provider (RFC 9207 §2.4).
    for (says, good) in [
        (json!({ "iss": evil.issuer }), false),
        (json!({ "iss": format!("{}/", honest.issuer) }), false),
        (json!({ "iss": "" }), false),
        (json!({ "iss": honest.issuer }), true),
    ] {
        honest.behave(&json!({ "redirect": says })).await;
        let answer = person.sign_in("honest", "alice").await;
        if good {
            assert_eq!(answer.see_other(), person.game());
        } else {
            assert_eq!(answer.login_problem(), "failed", "{says}");
            assert!(person.play().await.is_anon, "{says}");
            assert_eq!(honest.asked().await.token, 0, "{says}: no code was used");
        }
    }
    assert_eq!(person.play().await.sub, guest.sub);

    // At an unknown provider, and with a strange id.
    for id in ["unknown", "", "..", "%2e%2e", "honest/x", "HONEST"] {
        let path = format!("{}{id}?{}", paths::CALLBACK, query(&[("state", "x")]));
        let answer = person.open(&path).await;
        assert_eq!(answer.status, 404, "{id}");
    }
}

#[tokio::test]
async fn a_provider_that_promises_its_issuer_must_name_it() {
    let provider = HostileProvider::start().await;
    let promise = json!({ "authorization_response_iss_parameter_supported": true });
    provider
        .behave(&json!({ "discovery": { "members": promise } }))
        .await;
    let scene = Scene::set_with(provider).await;
    let (mut person, guest) = scene.guest().await;
    let before = scene.lasting();
    let answer = person.sign_in(PROVIDER, "alice").await;
    assert_eq!(answer.login_problem(), "failed");
    scene
        .came_to_nothing("no iss", &mut person, &guest, &before, &answer)
        .await;
    let named = json!({ "redirect": { "iss": scene.provider.issuer } });
    scene.provider.behave(&named).await;
    scene.still_signs_in("iss", &mut person, &guest).await;
}

#[tokio::test]
async fn a_refusal_of_the_provider_ends_on_the_sign_in_page() {
    let scene = Scene::set().await;
    let markup = "<script>alert(1)</script>\"'&";
    let cases = [
        ("access_denied", "cancelled"),
        ("server_error", "failed"),
        ("temporarily_unavailable", "failed"),
        ("invalid_scope", "failed"),
        ("login_required", "failed"),
        ("something_else", "failed"),
        (markup, "failed"),
        ("", "failed"),
    ];
    for (error, problem) in cases {
        let (mut person, guest) = scene.guest().await;
        let callback = person.reach_callback(PROVIDER, "alice").await;
        let before = scene.lasting();
        let refused = with(&callback, "code", None);
        let refused = with(&refused, "error", Some(error));
        let refused = with(&refused, "error_description", Some(markup));
        let refused = with(&refused, "error_uri", Some("javascript:alert(1)"));
        let answer = person.follow(&refused).await;
        assert_eq!(answer.login_problem(), problem, "{error}");
        scene
            .came_to_nothing(error, &mut person, &guest, &before, &answer)
            .await;
        let login = answer.see_other().to_owned();
        let login = Url::parse(&callback).unwrap().join(&login).unwrap();
        let page = person.follow(login.as_str()).await;
        assert_eq!(page.status, 200);
        assert!(page.body.contains("role=\"status\"") || page.body.contains("role=\"alert\""));
        assert!(!page.body.contains("alert(1)"), "{error}: {}", page.body);
        // The sign-in has ended, also for a code that may follow.
        assert_eq!(person.follow(&callback).await.login_problem(), "expired");
    }
}

#[tokio::test]
async fn a_problem_that_nobody_knows_is_not_shown() {
    let scene = Scene::set().await;
    let (mut person, _) = scene.guest().await;
    for problem in ["<script>alert(1)</script>", "x", "", "CANCELLED"] {
        let path = format!("{}?{}", paths::LOGIN, query(&[("problem", problem)]));
        let page = person.open(&path).await;
        assert_eq!(page.status, 200);
        assert!(!page.body.contains("alert(1)"));
    }
}
