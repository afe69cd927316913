//! Planted, repeated, huge and foreign cookies: session fixation, login CSRF, and cookies from
//! sub-domains (RFC 6265 §8).

use platform_tests::person::{Answer, Person};
use platform_tests::platform::{Platform, Site};
use reqwest::header::{COOKIE, ORIGIN};
use reqwest::{Method, Url};

use crate::scene::{PROVIDER, Scene, sets_session};

/// A well-formed cookie that was never issued.
const NEVER_ISSUED: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

#[tokio::test]
async fn a_session_that_was_planted_before_the_sign_in_opens_nothing_after_it() {
    // Different moments at which the attacker's cookie gets into the victim's browser.
    for planted in [
        "before the page",
        "before the button",
        "before the callback",
    ] {
        let scene = Scene::set().await;
        let (mut attacker, _) = scene.guest().await;
        let mut victim = Person::new(&scene.platform.site);
        let name = victim.session_name().to_owned();
        let session = attacker.session();
        let plant = |victim: &mut Person, moment: &str| {
            if planted == moment {
                victim.jar.insert(name.clone(), session.clone());
            }
        };
        plant(&mut victim, "before the page");
        let game = victim.game();
        let form = victim.login_form(PROVIDER, &game).await;
        plant(&mut victim, "before the button");
        let csrf = form.field("csrf").unwrap();
        let fields = [("csrf", csrf), ("redirect", game.as_str())];
        let begun = victim.submit(&form.action, &fields).await;
        let callback = victim.authorize(begun.see_other(), "victim").await;
        plant(&mut victim, "before the callback");
        assert_eq!(victim.follow(&callback).await.see_other(), game);
        assert_ne!(victim.session(), session, "{planted}");
        let account = victim.play().await;
        assert!(!account.is_anon);

        let answer = attacker.token().await;
        if answer.status == 200 {
            let claims = attacker.play().await;
            assert!(claims.is_anon, "{planted}");
            assert_ne!(claims.sub, account.sub, "{planted}");
        } else {
            assert_eq!(answer.slug(), "session-expired", "{planted}");
        }
        // Signing out only ends the victim's session, which the attacker cannot know.
        attacker.sign_out().await;
        assert_eq!(victim.play().await.sub, account.sub);
    }
}

#[tokio::test]
async fn every_sign_in_gives_a_new_session_and_ends_the_old_one() {
    let scene = Scene::set().await;
    let (mut person, guest) = scene.guest().await;
    let mut sessions = vec![person.session()];
    for _ in 0..3 {
        let account = person.become_account(PROVIDER, "alice").await;
        assert_eq!(account.sub, guest.sub);
        assert!(!sessions.contains(&person.session()));
        sessions.push(person.session());
    }
    let newest = sessions.pop().unwrap();
    for session in sessions {
        let mut thief = Person::new(&scene.platform.site);
        thief.jar.insert(thief.session_name().to_owned(), session);
        assert_eq!(thief.token().await.slug(), "session-expired");
    }
    assert_eq!(person.session(), newest);
    assert_eq!(person.play().await.sub, guest.sub);
}

#[tokio::test]
async fn a_form_cookie_that_was_planted_begins_no_sign_in_of_the_attackers() {
    let scene = Scene::set().await;
    // The attacker sets their own form cookie in the victim's browser, which `__Host-` prevents
    // over https, and prepares a callback.
    let (mut attacker, _) = scene.guest().await;
    let callback = attacker.reach_callback(PROVIDER, "mallory").await;
    let (mut victim, guest) = scene.guest().await;
    let game = victim.game();
    victim.login_form(PROVIDER, &game).await;
    let name = victim.form_name();
    let own = victim.jar[name].clone();
    let tossed = attacker.jar[name].clone();
    // Together with the victim's own cookie it is ambiguous, so neither counts.
    let both = format!("{name}={own}; {name}={tossed}");
    let answer = with_cookies(&mut victim, &callback, &both).await;
    assert_ne!(answer.header("location"), game);
    assert!(!sets_session(&answer, &victim));
    assert_eq!(victim.play().await.sub, guest.sub);
}

/// Opens `address` with exactly these cookies.
async fn with_cookies(person: &mut Person, address: &str, cookies: &str) -> Answer {
    let jar = std::mem::take(&mut person.jar);
    let address = Url::parse(address).unwrap();
    let query = address.query().map(|query| format!("?{query}"));
    let path = format!("{}{}", address.path(), query.unwrap_or_default());
    let headers = [(COOKIE, cookies), (reqwest::header::ACCEPT, "text/html")];
    let answer = person.ask(Method::GET, &path, &headers, None).await;
    let set = std::mem::replace(&mut person.jar, jar);
    person.jar.extend(set);
    answer
}

/// Requests a token with exactly these cookies.
async fn token_with(site: &Site, cookies: &[&str]) -> (Person, Answer) {
    let mut person = Person::new(site);
    let origin = site.url("demo", "");
    let mut headers = vec![(ORIGIN, origin.as_str())];
    headers.extend(cookies.iter().map(|cookies| (COOKIE, *cookies)));
    let answer = person.ask(Method::POST, "/token", &headers, None).await;
    (person, answer)
}

#[tokio::test]
async fn of_two_cookies_of_one_name_the_one_of_a_session_counts() {
    let scene = Scene::set().await;
    let site = &scene.platform.site;
    let (person, guest) = scene.guest().await;
    let (name, good) = (person.session_name(), person.session());
    let lines: [&[String]; 3] = [
        &[format!("{name}={good}; {name}={NEVER_ISSUED}")],
        &[format!("{name}={NEVER_ISSUED}; {name}={good}")],
        &[format!("{name}={good}"), format!("{name}={good}")],
    ];
    for line in lines {
        let cookies: Vec<&str> = line.iter().map(String::as_str).collect();
        let (_, answer) = token_with(site, &cookies).await;
        assert_eq!(claims(&answer).sub, guest.sub, "{cookies:?}");
        let removes = format!("{name}=; Max-Age=0; Path=/; Domain=platform.localhost");
        let mut set = answer.headers.get_all(reqwest::header::SET_COOKIE).iter();
        assert!(set.any(|line| line == removes.as_str()), "{answer:?}");
    }
    // Two cookies that both name a session are refused.
    let (other, _) = scene.guest().await;
    let before = scene.platform.tables();
    let both = format!("{name}={good}; {name}={}", other.session());
    let (_, answer) = token_with(site, &[&both]).await;
    assert_eq!(answer.slug(), "invalid-request");
    before.demand_same(&scene.platform.tables(), "two cookies");
    let (mut known, _) = token_with(site, &[&format!("{name}={good}")]).await;
    known.jar.insert(name.to_owned(), good);
    assert_eq!(known.play().await.sub, guest.sub);
}

#[tokio::test]
async fn cookies_that_cannot_be_ours_are_as_none() {
    let scene = Scene::set().await;
    let site = &scene.platform.site;
    let (person, guest) = scene.guest().await;
    let (name, good) = (person.session_name(), person.session());
    let strange = [
        format!("{name}={}", "x".repeat(8_192)),
        format!("{name}={good}{}", "x".repeat(8_192)),
        format!("{name}={good}="),
        format!("{name}=\"{good}\"x"),
        format!("{name}="),
        name.to_owned(),
        format!("__Host-{name}={good}"),
        format!("{}={good}", name.to_uppercase()),
        format!("{name}={NEVER_ISSUED}"),
        "=;;=;".to_owned(),
    ];
    for cookies in &strange {
        let (mut newcomer, answer) = token_with(site, &[cookies]).await;
        assert_eq!(answer.status, 200, "{cookies:.60}");
        let claims = newcomer.play().await;
        assert_ne!(claims.sub, guest.sub, "{cookies:.60}");
        assert!(claims.is_anon);
    }
    // The sign-in page ignores them as well.
    for cookies in strange {
        let mut person = Person::new(site);
        let login = site.url("auth", "/login");
        let page = with_cookies(&mut person, &login, &cookies).await;
        assert_eq!(page.status, 200, "{cookies:.60}");
    }
    // More headers than a server reads give a different error.
    let flood = format!("{name}={}", "x".repeat(1 << 20));
    let mut person = Person::new(site);
    let login = site.url("auth", "/login");
    let page = with_cookies(&mut person, &login, &flood).await;
    assert_eq!(page.status, 431);
}

#[tokio::test]
async fn over_https_only_cookies_with_the_prefix_count() {
    let platform = Platform::start_with(&[], |config| {
        config.origin = Some("https://games.example".parse().unwrap());
        config.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    })
    .await;
    let site = &platform.site;
    let mut person = Person::new(site);
    // There is no demo outside of localhost, so the console requests a token.
    let origin = site.origin.clone();
    let ask = [(ORIGIN, origin.as_str())];
    let answer = person.ask(Method::POST, "/token", &ask, None).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let set = answer.header("set-cookie");
    for part in [
        "__Host-platform-session=",
        "; Secure",
        "; HttpOnly",
        "; Path=/",
        "; SameSite=Lax",
    ] {
        assert!(set.contains(part), "{part}");
    }
    assert!(!set.contains("Domain"));
    let sub = claims(&answer).sub;
    let again = person.ask(Method::POST, "/token", &ask, None).await;
    assert_eq!(claims(&again).sub, sub);

    // The same value under the plain name, as a sub-domain could set it.
    let mut other = Person::new(site);
    other
        .jar
        .insert("platform-session".into(), person.session());
    let answer = other.ask(Method::POST, "/token", &ask, None).await;
    assert_ne!(claims(&answer).sub, sub);

    // Together with the right cookie it has no effect.
    person
        .jar
        .insert("platform-session".into(), NEVER_ISSUED.into());
    let answer = person.ask(Method::POST, "/token", &ask, None).await;
    assert_eq!(claims(&answer).sub, sub);

    let page = person.open("/login").await;
    let set = page.header("set-cookie");
    for part in [
        "__Host-platform-form=",
        "; Secure",
        "; HttpOnly",
        "; Path=/",
        "; SameSite=Lax",
    ] {
        assert!(set.contains(part), "{part} in {set}");
    }
    assert!(!set.contains("Max-Age"), "it ends with the browser");
}

fn claims(answer: &Answer) -> platform_protocol::claims::GameTokenClaims {
    let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    platform_tests::visitor::claims(body["access_token"].as_str().unwrap())
}
