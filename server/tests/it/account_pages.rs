//! The sign-in page, and the headers of every page about a player.

use platform_openid::IdentityProvider;
use platform_server::config::Secret;
use platform_server::domain::session::SESSION_MILLIS;

use crate::pages::assert_is_page;
use crate::support::{TestApp, send};

fn provider(id: &str, name: &str) -> IdentityProvider {
    IdentityProvider {
        id: id.to_owned(),
        name: name.to_owned(),
        issuer: "https://accounts.example".parse().unwrap(),
        client_id: "platform".to_owned(),
        client_secret: Secret::new("secret".to_owned()),
        scopes: vec!["openid".to_owned()],
    }
}

fn query(redirect: &str) -> String {
    url::form_urlencoded::Serializer::new(String::new())
        .append_pair("redirect", redirect)
        .finish()
}

#[tokio::test]
async fn every_provider_has_a_form_that_begins_a_sign_in() {
    let app = TestApp::with(|config| {
        config.identity_providers = vec![
            provider("google", "Google"),
            provider("id-2", "<b>Tom & Co</b>"),
        ];
    })
    .await;
    let game = format!("{}/level?n=1&m=2#start", app.origin("demo"));
    let opened = app.open(&format!("/login?{}", query(&game)), None).await;
    let answer = &opened.answer;
    assert_eq!(answer.status, 200);
    assert_is_page(answer, "login");
    let html = answer.text();
    assert_eq!(html.matches("<form ").count(), 2);
    let redirect = game.replace('&', "&#38;");
    for part in [
        "<form method=\"post\" action=\"/login/google\">",
        "Sign in with Google<",
        "<form method=\"post\" action=\"/login/id-2\">",
        "Sign in with &#60;b&#62;Tom &#38; Co&#60;/b&#62;<",
        &format!("name=\"redirect\" value=\"{redirect}\""),
        &format!("href=\"{redirect}\""),
        "<title>Sign in · Firefly</title>",
        "Back to Firefly without signing in",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let cookie = answer.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("platform-form=")
            && cookie.ends_with("; HttpOnly; SameSite=Lax; Path=/; Priority=High"),
        "{cookie}"
    );
    assert!(!cookie.contains(opened.token()));

    let again = app.open("/login", Some(&opened.cookies)).await;
    assert_eq!(again.answer.header("set-cookie"), None);
    assert_eq!(again.token(), opened.token());
    assert!(again.answer.text().contains(&format!(
        "name=\"redirect\" value=\"{}/\"",
        app.running.origin
    )));
    for unusable in [
        format!("platform-form={}", "x".repeat(8_192)),
        format!("{0}; {0}", opened.cookies),
    ] {
        let fresh = app.open("/login", Some(&unusable)).await;
        assert!(fresh.answer.header("set-cookie").is_some(), "{unusable}");
        assert_ne!(fresh.token(), opened.token());
    }
}

#[tokio::test]
async fn a_platform_without_a_provider_says_so_and_leads_back() {
    let app = TestApp::with(|config| {
        config.origin = Some("https://games.example".parse().unwrap());
    })
    .await;
    let answer = send(app.request_host(
        reqwest::Method::GET,
        "auth.games.example",
        "/login?redirect=https://games.example/",
    ))
    .await;
    assert_eq!(answer.status, 200);
    let html = answer.text();
    assert!(html.contains("Signing in is not offered here"), "{html}");
    assert!(html.contains("href=\"https://games.example/\""), "{html}");
    assert!(!html.contains("<form"), "{html}");
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.contains("form-action 'self' https:;"), "{policy}");
    let cookie = answer.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("__Host-platform-form=")
            && cookie.ends_with("; HttpOnly; SameSite=Lax; Secure; Path=/; Priority=High"),
        "{cookie}"
    );
}

#[tokio::test]
async fn a_problem_is_told_in_a_sentence_and_an_unknown_one_is_not() {
    let app = TestApp::start().await;
    for code in [
        "cancelled",
        "failed",
        "provider-unavailable",
        "expired",
        "other-browser",
    ] {
        let answer = app
            .open(&format!("/login?problem={code}"), None)
            .await
            .answer;
        assert_eq!(answer.status, 200);
        assert!(answer.text().contains("role=\"status\""), "{code}");
    }
    let answer = app.open("/login?problem=%3Cb%3E", None).await.answer;
    assert!(!answer.text().contains("role=\"status\""));
    assert!(!answer.text().contains("<b>&#60;"), "nothing is repeated");
}

#[tokio::test]
async fn the_sign_in_page_knows_who_is_there_already() {
    let app = TestApp::start().await;
    let first = send(app.post_token()).await;
    let session = first.cookie().unwrap();
    let name = first.claims().username;
    let game = format!("{}/", app.origin("demo"));
    let path = format!("/login?{}", query(&game));

    let guest = app.open(&path, Some(session)).await.answer;
    assert!(guest.text().contains(&format!("<bdi>{name}</bdi>")));
    assert!(guest.text().contains("guest"));
    assert!(!guest.text().contains("You are signed in"));

    let account = app
        .sign_in("7", Some(first.claims().sub.parse().unwrap()))
        .await;
    let page = app.open(&path, Some(&account)).await.answer;
    let html = page.text();
    for part in [
        format!("You are signed in as <bdi class=\"who\">{name}</bdi>"),
        format!("<a class=\"button\" href=\"{game}\">Go on to Firefly</a>"),
        "Use another account".to_owned(),
        "action=\"/login/demo\"".to_owned(),
    ] {
        assert!(html.contains(&part), "{part}: {html}");
    }
    let other = send(app.post_token()).await;
    // The guest's own session ended when the guest became the account.
    for nobody in [
        session.to_owned(),
        format!("{account}; {}", other.cookie().unwrap()),
        format!("platform-session={}", "x".repeat(8_192)),
    ] {
        let page = app.open(&path, Some(&nobody)).await.answer;
        assert_eq!(page.status, 200);
        assert!(!page.text().contains(&name), "{nobody}");
    }
    app.sql("UPDATE players SET suspended_at = 1, suspension_reason = 'You were <unkind>.'");
    let page = app.open(&path, Some(&account)).await.answer;
    assert_eq!(page.status, 200, "somebody else may sign in here");
    for part in [
        format!(
            "<bdi class=\"who\"><b>{name}</b></bdi>, who is signed in to this browser, is suspended"
        ),
        "The reason: <bdi>You were &#60;unkind&#62;.</bdi>".to_owned(),
        "Somebody else may sign in here.".to_owned(),
        "action=\"/login/demo\"".to_owned(),
    ] {
        assert!(page.text().contains(&part), "{part}: {}", page.text());
    }
}

#[tokio::test]
async fn a_sign_in_that_came_to_nothing_is_told_to_who_is_signed_in_as_well() {
    let app = TestApp::start().await;
    let account = app.sign_in("7", None).await;
    for (code, words) in [
        ("cancelled", "you are signed in as before"),
        ("expired", "you are still signed in as shown here"),
        ("failed", "Signing in did not work."),
    ] {
        let path = format!("/login?problem={code}");
        let page = app.open(&path, Some(&account)).await.answer;
        let html = page.text();
        assert!(html.contains("You are signed in as"), "{html}");
        assert!(html.contains("role=\"status\""), "{html}");
        assert!(html.contains(words), "{code}: {html}");
    }
}

const ENDED: &str = "Your session has ended. Sign in again, and you are the same player.";

/// Returns three cookies of browsers that games send to the sign-in page: of an account that was
/// signed out everywhere, of one that was away for too long, and of a merged guest.
async fn ended_sessions(app: &TestApp) -> [String; 3] {
    let old = app.sign_in("6", None).await;
    app.clock.advance(SESSION_MILLIS);
    let guest = send(app.post_token()).await;
    let player = guest.claims().sub.parse().unwrap();
    let out = app.sign_in("7", Some(player)).await;
    assert_eq!(app.end_sessions(player).await, 1);
    let merged = send(app.post_token()).await;
    let player = merged.claims().sub.parse().unwrap();
    app.sign_in("7", Some(player)).await;
    [out, old, merged.cookie().unwrap().to_owned()]
}

#[tokio::test]
async fn who_comes_with_an_ended_session_reads_why_and_may_start_again() {
    let app = TestApp::start().await;
    let game = format!("{}/level?n=1&m=2", app.origin("demo"));
    let path = format!("/login?{}", query(&game));
    for session in ended_sessions(&app).await {
        let refused = send(app.post_token().header("cookie", &session)).await;
        assert_eq!(refused.problem(), "session-expired");
        let opened = app.open(&path, Some(&session)).await;
        let html = opened.answer.text();
        assert!(html.contains(ENDED), "{html}");
        assert!(html.contains("action=\"/new-guest\""), "{html}");
        assert!(!html.contains("without signing in"), "{html}");
        assert!(html.contains("action=\"/login/demo\""), "{html}");

        let fields = [
            ("csrf", opened.token()),
            ("redirect", &game),
            ("shown", opened.shown()),
        ];
        let hurried = send(app.post_form("/new-guest", &opened.cookies, &fields)).await;
        assert_eq!(hurried.header("set-cookie"), None);
        let said = hurried.header("location").unwrap().to_owned();
        assert!(said.ends_with("&problem=hurried"), "{said}");
        app.clock.advance(2_000);
        let left = send(app.post_form("/new-guest", &opened.cookies, &fields)).await;
        assert_eq!(left.status, 303);
        assert_eq!(left.header("location"), Some(game.as_str()));
        assert_eq!(left.header("cache-control"), Some("no-store"));
        let cookie = left.header("set-cookie").unwrap();
        assert!(cookie.starts_with("platform-session=;"), "{cookie}");
        assert!(cookie.contains("; Max-Age=0"), "{cookie}");
    }
    let nobody = app.open(&path, None).await.answer;
    assert!(!nobody.text().contains("Your session has ended"));
    assert!(!nobody.text().contains("/new-guest"));
}

#[tokio::test]
async fn a_session_that_is_good_is_not_forgotten_for_a_new_guest() {
    let app = TestApp::start().await;
    let [over, ..] = ended_sessions(&app).await;
    let guest = send(app.post_token()).await;
    let account = app.sign_in("7", None).await;
    for session in [guest.cookie().unwrap(), &account] {
        let opened = app.open("/login", Some(session)).await;
        let ended = app.open("/login", Some(&over)).await;
        let form_cookie = ended.cookies.split("; ").nth(1).unwrap();
        let cookies = format!("{session}; {form_cookie}");
        app.clock.advance(2_000);
        assert!(!opened.answer.text().contains("/new-guest"));
        let fields = [("csrf", ended.token()), ("shown", ended.shown())];
        let left = send(app.post_form("/new-guest", &cookies, &fields)).await;
        assert_eq!(left.status, 303);
        assert_eq!(left.header("set-cookie"), None);
    }
}

#[tokio::test]
async fn a_new_guest_takes_our_own_form_and_is_no_way_around_a_suspension() {
    let app = TestApp::start().await;
    let [session, ..] = ended_sessions(&app).await;
    let opened = app.open("/login", Some(&session)).await;
    let token = opened.token();
    let wrong = "A".repeat(43);
    let elsewhere = [("csrf", token), ("redirect", "https://evil.example/")];
    for (fields, problem) in [
        (&[][..], "not-allowed"),
        (&[("csrf", wrong.as_str())], "not-allowed"),
        (&elsewhere, "invalid-redirect"),
    ] {
        let refused = send(app.post_form("/new-guest", &opened.cookies, fields)).await;
        assert_eq!(refused.problem(), problem);
        assert_eq!(refused.header("set-cookie"), None);
    }
    let foreign = app
        .post_form("/new-guest", &opened.cookies, &[("csrf", token)])
        .build();
    let mut foreign = foreign.unwrap();
    let site = "cross-site".parse().unwrap();
    foreign.headers_mut().insert("sec-fetch-site", site);
    assert_eq!(app.execute(foreign).await.problem(), "not-allowed");

    app.sql("UPDATE players SET suspended_at = 1");
    let fields = [("csrf", token)];
    let refused = send(app.post_form("/new-guest", &opened.cookies, &fields)).await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.problem(), "account-suspended");
    assert_eq!(refused.header("set-cookie"), None);
}

#[tokio::test]
async fn the_page_names_the_game_that_the_player_came_from() {
    let app = TestApp::start().await;
    for (label, name) in [
        ("demo", "Back to Firefly without"),
        ("dev-demo", "Back to Firefly (dev) without"),
        ("", "Back to all games without"),
    ] {
        let origin = if label.is_empty() {
            app.running.origin.clone()
        } else {
            app.origin(label)
        };
        let path = format!("/login?{}", query(&format!("{origin}/x")));
        let page = app.open(&path, None).await.answer;
        assert!(page.text().contains(name), "{label}: {}", page.text());
    }
}

#[tokio::test]
async fn pages_for_developers_are_named_and_guests_are_led_past_them() {
    let app = TestApp::start().await;
    let origin = app.running.origin.clone();
    let session = app.sign_in("ada", None).await;
    for (path, name) in [
        ("/build", "your projects"),
        ("/build/my-game", "the Build page of my-game"),
        ("/projects/my-game?env=dev", "the project my-game"),
        ("/admin/keys", "administration"),
    ] {
        let query = query(&format!("{origin}{path}"));
        let page = app.open(&format!("/login?{query}"), None).await.answer;
        let text = page.text();
        assert!(text.contains(&format!("to go on to {name}<")), "{text}");
        let past = format!("<a href=\"{origin}/\">Back to all games without");
        assert!(text.contains(&past), "{text}");
        let opened = app.open(&format!("/profile?{query}"), Some(&session)).await;
        let text = opened.answer.text();
        assert!(text.contains(&format!("Back to {name}</a>")), "{text}");
        assert!(text.contains(&format!("{origin}{path}")), "{text}");
    }
}

#[tokio::test]
async fn pages_about_a_player_are_kept_nowhere_and_framed_by_nobody() {
    let app = TestApp::start().await;
    let first = send(app.post_token()).await;
    for (path, form_action) in [
        ("/login", "form-action 'self' https: http:;"),
        ("/profile", "form-action 'self';"),
    ] {
        let answer = app.open(path, first.cookie()).await.answer;
        assert_eq!(answer.status, 200);
        assert_is_page(&answer, path);
        for (name, value) in [
            ("cache-control", "no-store"),
            ("referrer-policy", "same-origin"),
            ("x-content-type-options", "nosniff"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("origin-agent-cluster", "?1"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{path} {name}");
        }
        let policy = answer.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none';",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            form_action,
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("script"), "{path}: {policy}");
    }
}
