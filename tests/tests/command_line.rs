//! The real command line with the real platform, and a person who approves its code in a browser.

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

use platform_server::domain::audit::Actor;
use platform_server::domain::console_token::CONSOLE_TOKEN_SECONDS;
use platform_server::web::seal::PRESS_MILLIS;
use platform_tests::person::Person;
use platform_tests::platform::Platform;
use platform_tests::terminal::{self, Outcome, Terminal, form, press};
use platform_tests::visitor::claims;
use serde_json::Value;

/// A page that loads the runtime correctly.
const PAGE: &str = "<!doctype html><html lang=\"en\"><head><title>Chess</title>\
                    <script defer src=\"/__platform/runtime.js\"></script></head>\
                    <body></body></html>";

/// Starts a platform, and returns a person with an account at its demo provider.
async fn scene() -> (Platform, Person, String) {
    let platform = Platform::start(&[]).await;
    let mut person = Person::new(&platform.site);
    let redirect = platform.site.url("demo", "/");
    let answer = terminal::sign_in(&mut person, "ada", &redirect).await;
    assert_eq!(answer.see_other(), redirect);
    let token = person.token_for("demo").await;
    let token: Value = serde_json::from_str(&token.body).unwrap();
    let sub = claims(token["access_token"].as_str().unwrap()).sub;
    (platform, person, sub)
}

/// Lets access tokens expire.
fn expire(platform: &Platform) {
    let seconds = i64::try_from(CONSOLE_TOKEN_SECONDS).unwrap();
    // Verifiers allow a difference of one minute.
    platform.clock.advance((seconds + 61) * 1_000);
}

#[track_caller]
fn assert_signed_out(outcome: Outcome) {
    let outcome = outcome.ended_with(3);
    assert!(outcome.stderr.contains("platform login"), "{outcome:?}");
    assert_eq!(outcome.stdout, "");
}

#[tokio::test]
async fn a_developer_goes_from_signing_in_to_signing_out() {
    let (platform, mut person, sub) = scene().await;
    let terminal = Terminal::of(&platform.site);
    for command in [["whoami"].as_slice(), &["projects", "list"]] {
        assert_signed_out(terminal.run(command).await);
    }

    let login = terminal.begin_login().await;
    assert!(login.address.ends_with(&format!("={}", login.code)));
    let shown = login.decide(&mut person, "approve").await;
    assert!(shown.body.contains("The device is signed in"));
    let signed_in = login.ended().await.ended_with(0);
    assert!(signed_in.stderr.contains("Signed in to http://platform."));

    let whoami: Value = serde_json::from_str(&terminal.done(&["whoami", "--json"]).await).unwrap();
    assert_eq!(whoami["sub"], sub.as_str());
    let _ = terminal.done(&["projects", "create", "chess"]).await;
    let taken = terminal.run(&["projects", "create", "chess"]).await;
    assert!(taken.ended_with(1).stderr.contains("request "));
    let list = terminal.done(&["projects", "list"]).await;
    assert!(list.contains("chess"), "{list}");

    let early = terminal.run(&["test-token", "3", "-p", "chess"]).await;
    assert!(early.ended_with(1).stderr.contains("platform deploy"));
    terminal.write("dist/index.html", PAGE);
    assert_eq!(terminal.done(&["check", "dist"]).await, "");
    let deployed = terminal.done(&["deploy", "dist", "-p", "chess"]).await;
    let address = platform.site.url("dev-chess", "");
    assert!(deployed.contains(&address), "{deployed}");
    roll_back(&terminal).await;
    let asks = terminal
        .run(&["deploy", "dist", "-p", "chess", "--env", "prod"])
        .await;
    let _ = asks.ended_with(2);

    let third = terminal.done(&["test-token", "3", "-p", "chess"]).await;
    let third = claims(third.trim());
    assert_eq!(
        (third.aud.as_str(), third.username.as_str(), third.is_anon),
        ("game:dev-chess", "test-user-3", false)
    );
    let fourth = ["test-token", "4", "--guest", "--json", "-p", "chess"];
    let fourth: Value = serde_json::from_str(&terminal.done(&fourth).await).unwrap();
    let guest = claims(fourth["access_token"].as_str().unwrap());
    assert_eq!(
        (guest.sub.as_str(), guest.username.as_str(), guest.is_anon),
        (fourth["sub"].as_str().unwrap(), "test-guest-4", true)
    );
    let runtime = terminal.done(&["runtime", "-p", "chess"]).await;
    assert!(runtime.contains(&platform.site.url("auth", "")));
    assert_eq!(terminal.done(&["logs", "-p", "chess"]).await, "");
    let missing = terminal.run(&["logs", "-p", "nobody"]).await;
    let _ = missing.ended_with(1);

    let _ = terminal.done(&["logout"]).await;
    let commands: [&[&str]; 6] = [
        &["whoami"],
        &["projects", "create", "draughts"],
        &["projects", "list"],
        &["deploy", "dist", "-p", "chess"],
        &["test-token", "3", "-p", "chess"],
        &["logs", "-p", "chess"],
    ];
    for command in commands {
        assert_signed_out(terminal.run(command).await);
    }
    let profile = person.open("/profile").await;
    assert!(!profile.body.contains("<h2>Devices</h2>"), "{profile:?}");
}

/// Deploys another page, and rolls back to the first one.
async fn roll_back(terminal: &Terminal) {
    let current = async || {
        let list = ["deployments", "-p", "chess", "--json"];
        let list: Value = serde_json::from_str(&terminal.done(&list).await).unwrap();
        let list = list["deployments"].as_array().unwrap().clone();
        let shown = list.iter().find(|one| one["current"] == true).unwrap();
        (list.len(), shown["id"].as_str().unwrap().to_owned())
    };
    let (_, first) = current().await;
    terminal.write("dist/index.html", &format!("{PAGE}<!-- second -->"));
    let _ = terminal.done(&["deploy", "dist", "-p", "chess"]).await;
    let (kept, second) = current().await;
    assert_eq!(kept, 2);
    assert_ne!(first, second);
    let _ = terminal.done(&["rollback", "-p", "chess"]).await;
    assert_eq!(current().await, (2, first));
    let _ = terminal.done(&["rollback", &second, "-p", "chess"]).await;
    assert_eq!(current().await, (2, second));
}

#[tokio::test]
async fn a_preview_is_deployed_played_listed_and_removed() {
    let (platform, mut person, _) = scene().await;
    let terminal = Terminal::of(&platform.site);
    terminal.log_in(&mut person).await;
    let _ = terminal.done(&["projects", "create", "chess"]).await;
    terminal.write("dist/index.html", PAGE);
    let deploy = ["deploy", "dist", "-p", "chess", "--preview", "new-rings"];
    let url = terminal.done(&deploy).await;
    let url = url.trim();
    assert_eq!(url, platform.site.url("new-rings--chess", ""));
    let token = person.token_for("new-rings--chess").await;
    let token: Value = serde_json::from_str(&token.body).unwrap();
    let player = claims(token["access_token"].as_str().unwrap());
    assert_eq!(player.aud, "game:dev-chess");
    let list = terminal
        .done(&["previews", "list", "-p", "chess", "--json"])
        .await;
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["previews"][0]["url"], url);
    let delete = ["previews", "delete", "new-rings", "-p", "chess"];
    let _ = terminal.done(&delete).await;
    let gone = person.token_for("new-rings--chess").await;
    assert_eq!(gone.status, 403, "{gone:?}");
}

#[tokio::test]
async fn a_command_whose_token_has_expired_gets_another() {
    let (platform, mut person, _) = scene().await;
    let terminal = Terminal::of(&platform.site);
    terminal.log_in(&mut person).await;
    let before = terminal.credentials();
    let _ = terminal.done(&["projects", "list"]).await;
    assert_eq!(terminal.credentials(), before, "a fresh token is kept");
    for _ in 0..3 {
        let before = terminal.credentials();
        expire(&platform);
        let _ = terminal.done(&["projects", "list"]).await;
        assert_ne!(terminal.credentials(), before);
    }
}

#[tokio::test]
async fn commands_at_once_with_an_expired_token_all_work() {
    let (platform, mut person, _) = scene().await;
    let terminal = Terminal::of(&platform.site);
    terminal.log_in(&mut person).await;
    for _ in 0..3 {
        expire(&platform);
        let list = ["projects", "list", "--json"];
        let run = || terminal.run(&list);
        let outcomes = tokio::join!(run(), run(), run(), run());
        for outcome in [outcomes.0, outcomes.1, outcomes.2, outcomes.3] {
            let _ = outcome.done();
        }
    }
    let whoami = terminal.done(&["whoami"]).await;
    assert!(whoami.contains("platform.localhost"), "{whoami}");
}

#[tokio::test]
async fn a_device_that_is_ended_on_the_profile_page_has_to_sign_in_again() {
    let (platform, mut person, _) = scene().await;
    let (ended, kept) = (Terminal::of(&platform.site), Terminal::of(&platform.site));
    ended.log_in(&mut person).await;
    platform.clock.advance(1_000);
    kept.log_in(&mut person).await;
    // The device that was used last comes first.
    platform.clock.advance(1_000);
    let _ = ended.done(&["whoami"]).await;

    let profile = person.open("/profile").await;
    let device = form(&profile, "/profile", "device");
    platform.clock.advance(PRESS_MILLIS);
    let answer = press(&mut person, &device, &[]).await;
    assert!(answer.see_other().ends_with("saved=end-device"));
    // Its access token ends with it, and the refresh token is not valid any more.
    assert_signed_out(ended.run(&["projects", "list"]).await);
    assert!(!ended.credentials().contains("platform_rt_"));
    let _ = kept.done(&["whoami"]).await;

    let profile = person.open("/profile").await;
    let others = forms_of_others(&profile.body);
    platform.clock.advance(PRESS_MILLIS);
    let _ = press(&mut person, &others, &[]).await;
    assert_signed_out(kept.run(&["whoami"]).await);
}

fn forms_of_others(html: &str) -> platform_tests::forms::Form {
    let mut forms = platform_tests::forms::forms(html).into_iter();
    let form = forms.find(|form| form.field("action") == Some("sign-out-others"));
    form.unwrap()
}

#[tokio::test]
async fn a_denied_sign_in_fails_and_leaves_nothing_behind() {
    let (platform, mut person, _) = scene().await;
    let terminal = Terminal::of(&platform.site);
    let login = terminal.begin_login().await;
    let shown = login.decide(&mut person, "deny").await;
    assert!(shown.body.contains("turned away"));
    let denied = login.ended().await.ended_with(1);
    assert!(denied.stderr.contains("refused in the browser"));
    assert_signed_out(terminal.run(&["whoami"]).await);
}

#[tokio::test]
async fn a_suspended_developer_is_told_and_stays_signed_in_for_later() {
    let (platform, mut person, sub) = scene().await;
    let terminal = Terminal::of(&platform.site);
    terminal.log_in(&mut person).await;
    let player = sub.parse().unwrap();
    let now = || platform.running.state.platform.clock.now();
    let store = platform.store();
    let suspended = store.suspend_player(
        player,
        Some("You sold lights."),
        Actor::Operator.into(),
        now(),
    );
    assert!(suspended.await.unwrap());
    expire(&platform);
    let refused = terminal.run(&["projects", "list"]).await.ended_with(1);
    assert!(refused.stderr.contains("You sold lights."), "{refused:?}");
    assert!(
        store
            .unsuspend_player(player, Actor::Operator.into(), now())
            .await
            .unwrap()
    );
    let _ = terminal.done(&["projects", "list"]).await;
}

#[tokio::test]
async fn signing_in_again_ends_the_sign_in_before() {
    let (platform, mut person, _) = scene().await;
    let terminal = Terminal::of(&platform.site);
    terminal.log_in(&mut person).await;
    terminal.log_in(&mut person).await;
    let _ = terminal.done(&["whoami"]).await;
    let profile = person.open("/profile").await;
    let devices = profile.body.matches("name=\"device\"").count();
    assert_eq!(devices, 1);
}

#[tokio::test]
async fn the_store_has_neither_codes_nor_tokens_of_a_device() {
    let (platform, mut person, _) = scene().await;
    let terminal = Terminal::of(&platform.site);
    terminal.log_in(&mut person).await;
    let first = terminal.credentials();
    let _ = terminal.done(&["whoami"]).await;
    let tables = format!("{:?}", platform.tables());
    assert!(tables.contains("platform-cli"), "devices are listed");
    for credentials in [&first, &terminal.credentials()] {
        let lines = credentials.lines();
        let lines = lines.filter_map(|line| line.split_once("_token = "));
        let secrets: Vec<_> = lines.map(|(_, text)| text.trim_matches('"')).collect();
        assert_eq!(secrets.len(), 2, "an access token and a refresh token");
        for secret in secrets {
            let random = secret.trim_start_matches("platform_rt_");
            let hex: String = random.bytes().map(|byte| format!("{byte:02x}")).collect();
            for text in [random, &hex] {
                assert!(!tables.contains(text), "a secret is in the store");
            }
        }
    }
    assert!(!tables.contains("platform_dc_") && !tables.contains("platform_rt_"));
}
