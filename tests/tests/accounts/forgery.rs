//! Forms that another site or another browser sends have no effect (Fetch metadata, RFC 6454, the
//! token in the form).

use platform_protocol::paths;
use platform_tests::person::{Answer, Person};
use reqwest::header::{HeaderName, ORIGIN};

use crate::scene::{PROVIDER, Scene};

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A form and its fields, one of which is the token.
struct Form {
    path: String,
    fields: Vec<(&'static str, String)>,
}

impl Form {
    async fn send(
        &self,
        person: &mut Person,
        token: Option<&str>,
        headers: &[(HeaderName, &str)],
    ) -> Answer {
        let mut fields: Vec<(&str, &str)> = self
            .fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        fields.extend(token.map(|token| ("csrf", token)));
        person.submit_as(&self.path, &fields, headers).await
    }
}

/// Returns every form of the auth service, filled in.
fn forms(game: &str) -> Vec<Form> {
    let redirect = || ("redirect", game.to_owned());
    let profile = |action: &str| Form {
        path: paths::PROFILE.to_owned(),
        fields: vec![redirect(), ("action", action.to_owned())],
    };
    let mut rename = profile("rename");
    rename.fields.push(("username", "forged-name".to_owned()));
    vec![
        Form {
            path: format!("{}/{PROVIDER}", paths::LOGIN),
            fields: vec![redirect()],
        },
        rename,
        profile("sign-out-others"),
    ]
}

fn is_refused(answer: &Answer, what: &str) {
    assert_eq!(answer.status, 403, "{what}: {answer:?}");
    assert!(answer.header("location").is_empty(), "{what}");
}

#[tokio::test]
async fn a_form_that_another_site_sends_is_refused() {
    let scene = Scene::set().await;
    let (mut person, _) = scene.guest().await;
    let account = person.become_account(PROVIDER, "alice").await;
    let game = person.game();
    let form = person.login_form(PROVIDER, &game).await;
    let token = form.field("csrf").unwrap().to_owned();
    let own = scene.platform.site.url("auth", "");
    let game_origin = scene.platform.site.url("demo", "");
    let port = own.rsplit(':').next().unwrap();
    let near: Vec<String> = vec![
        "http://evil.example".into(),
        "null".into(),
        game_origin,
        scene.platform.site.origin.clone(),
        own.replace("http:", "https:"),
        format!("{own}0"),
        format!("{own}.evil.example"),
        format!("{own}/"),
        own.to_uppercase(),
        own.replace("localhost", "localhost."),
        format!("http://auth.platform.localhost@evil.example:{port}"),
        "".into(),
    ];
    let before = scene.platform.tables();
    for form in forms(&game) {
        let what = &form.path;
        for origin in &near {
            for site in [None, Some("same-origin")] {
                let mut headers = vec![(ORIGIN, origin.as_str())];
                headers.extend(site.map(|site| (SITE, site)));
                let answer = form.send(&mut person, Some(&token), &headers).await;
                is_refused(&answer, &format!("{what} from {origin:?}, {site:?}"));
            }
        }
        for site in ["cross-site", "same-site"] {
            for origin in [None, Some(own.as_str()), Some("http://evil.example")] {
                let mut headers = vec![(SITE, site)];
                headers.extend(origin.map(|origin| (ORIGIN, origin)));
                let answer = form.send(&mut person, Some(&token), &headers).await;
                is_refused(&answer, &format!("{what}, {site} from {origin:?}"));
            }
        }
        let twice = [(ORIGIN, own.as_str()), (ORIGIN, "http://evil.example")];
        let answer = form.send(&mut person, Some(&token), &twice).await;
        is_refused(&answer, &format!("{what} from two origins"));
    }
    before.demand_same(&scene.platform.tables(), "forged forms");
    let after = person.play().await;
    assert_eq!(after.username, account.username);
    assert_eq!(after.sub, account.sub);
}

#[tokio::test]
async fn a_form_without_this_browsers_token_is_refused() {
    let scene = Scene::set().await;
    let (mut person, _) = scene.guest().await;
    person.become_account(PROVIDER, "alice").await;
    let game = person.game();
    let good = person.login_form(PROVIDER, &game).await;
    let good = good.field("csrf").unwrap().to_owned();
    let mut other = Person::new(&scene.platform.site);
    let others = other.login_form(PROVIDER, &game).await;
    let others = others.field("csrf").unwrap().to_owned();
    assert_ne!(good, others);
    let cookie = person.jar[person.form_name()].clone();
    assert_ne!(good, cookie, "the form does not carry the cookie itself");
    let longer = format!("{good}x");
    let own = scene.platform.site.url("auth", "");
    let headers = [(ORIGIN, own.as_str()), (SITE, "same-origin")];
    let before = scene.platform.tables();
    let tokens: [Option<&str>; 7] = [
        None,
        Some(""),
        Some("x"),
        Some(&others),
        Some(&cookie),
        Some(&good[1..]),
        Some(&longer),
    ];
    for form in forms(&game) {
        for token in tokens {
            let answer = form.send(&mut person, token, &headers);
            is_refused(&answer.await, &format!("{} with {token:?}", form.path));
        }
        // The right token twice, and together with another one.
        for more in [&good, &others] {
            let mut fields: Vec<(&str, &str)> =
                vec![("csrf", good.as_str()), ("csrf", more.as_str())];
            fields.extend(
                form.fields
                    .iter()
                    .map(|(name, value)| (*name, value.as_str())),
            );
            let answer = person.submit_as(&form.path, &fields, &headers).await;
            assert!(answer.status.is_client_error(), "{}: {answer:?}", form.path);
        }
        // The right token without its cookie, and with another browser's cookie.
        for cookie in [None, Some(other.jar[other.form_name()].clone())] {
            let mut stripped = person.clone();
            stripped.jar.remove(stripped.form_name());
            if let Some(cookie) = cookie {
                stripped.jar.insert(stripped.form_name().into(), cookie);
            }
            let answer = form.send(&mut stripped, Some(&good), &headers).await;
            is_refused(&answer, &format!("{} with another cookie", form.path));
        }
    }
    before.demand_same(&scene.platform.tables(), "forged forms");
}

#[tokio::test]
async fn the_sites_own_form_passes_also_where_a_browser_says_little() {
    let scene = Scene::set().await;
    let own = scene.platform.site.url("auth", "");
    let said: [&[(HeaderName, &str)]; 5] = [
        &[],
        &[(ORIGIN, &own)],
        &[(SITE, "same-origin")],
        &[(ORIGIN, &own), (SITE, "same-origin")],
        &[(SITE, "none")],
    ];
    for headers in said {
        let (mut person, _) = scene.guest().await;
        let game = person.game();
        let form = person.login_form(PROVIDER, &game).await;
        let fields = [("csrf", form.field("csrf").unwrap()), ("redirect", &game)];
        let answer = person.submit_as(&form.action, &fields, headers).await;
        assert!(answer.see_other().starts_with(&scene.provider.issuer));
    }
}

#[tokio::test]
async fn signing_out_takes_a_games_origin() {
    let scene = Scene::set().await;
    let (mut person, _) = scene.guest().await;
    let account = person.become_account(PROVIDER, "alice").await;
    let site = &scene.platform.site;
    let own = site.url("auth", "");
    let unknown = site.url("no-such-game", "");
    for origin in [
        "http://evil.example",
        "null",
        "",
        own.as_str(),
        unknown.as_str(),
    ] {
        let headers = [(ORIGIN, origin)];
        let answer = person.ask(reqwest::Method::POST, paths::SIGN_OUT, &headers, None);
        assert_eq!(answer.await.slug(), "unknown-origin", "{origin:?}");
    }
    let answer = person.ask(reqwest::Method::POST, paths::SIGN_OUT, &[], None);
    assert_eq!(answer.await.slug(), "unknown-origin");
    assert_eq!(person.play().await.sub, account.sub);
}
