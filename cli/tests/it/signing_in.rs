//! Signing in and out, and tokens that must be refreshed.

use std::time::Duration;

use serde_json::{Value, json};

use crate::platform::Platform;
use crate::support::{Home, outcome};

/// Makes the stored access token look old.
fn age(home: &Home) {
    let text = std::fs::read_to_string(home.credentials()).unwrap();
    let aged: Vec<String> = text
        .lines()
        .map(|line| match line.split_once(" = ") {
            Some(("received_at", _)) => "received_at = 1000".to_owned(),
            _ => line.to_owned(),
        })
        .collect();
    assert_ne!(aged.join("\n"), text);
    std::fs::write(home.credentials(), aged.join("\n")).unwrap();
}

#[tokio::test]
async fn signing_in_shows_where_to_go_waits_and_keeps_the_tokens_private() {
    let platform = Platform::start().await;
    platform.device_answers(&["authorization_pending", "authorization_pending"]);
    let home = Home::of(&platform);
    let outcome = home.run(&["login"]).await.succeeded();
    assert_eq!(outcome.stdout, "");
    for part in [
        &format!("{}/device ", platform.auth_url()),
        "BCDF-GHJK",
        "/device?user_code=BCDF-GHJK",
        "as swift-otter-1.",
    ] {
        assert!(outcome.stderr.contains(part), "{part}: {outcome:?}");
    }
    assert!(!outcome.stderr.contains("refresh-1") && !outcome.stderr.contains("device-secret"));
    assert_eq!(platform.seen("/device/token").len(), 3);
    #[cfg(unix)]
    {
        assert_eq!(crate::support::mode(&home.credentials()), 0o600);
        assert_eq!(
            crate::support::mode(home.credentials().parent().unwrap()),
            0o700
        );
    }
    let outcome = home.run(&["whoami", "--json"]).await.succeeded();
    let account: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(account["username"], "swift-otter-1");
    assert_eq!(account["origin"], platform.origin());
}

#[tokio::test]
async fn a_token_of_ones_own_is_printed_bare_and_fresh() {
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    let nobody = home.run(&["token"]).await.ended_with(3);
    assert_eq!(nobody.stdout, "");
    home.run(&["login"]).await.succeeded();
    let kept = || {
        let text = std::fs::read_to_string(home.credentials()).unwrap();
        let line = text.lines().find(|line| line.starts_with("access_token"));
        line.unwrap().split('"').nth(1).unwrap().to_owned()
    };
    let first = kept();
    let printed = home.run(&["token"]).await.succeeded();
    assert_eq!(printed.stderr, "");
    assert_eq!(printed.stdout, format!("{}\n", kept()));
    assert_ne!(kept(), first, "all of its life is left");
}

#[tokio::test]
async fn the_origin_signed_in_to_last_stands_where_nothing_names_another() {
    let platform = Platform::start().await;
    let home = Home::without_origin();
    let origin = platform.origin();
    home.run(&["login", "--no-browser", "--origin", &origin])
        .await
        .succeeded();
    let whoami = home.run(&["whoami"]).await.succeeded();
    assert!(
        whoami.stdout.ends_with(&format!("at {origin}\n")),
        "{whoami:?}"
    );
    home.run(&["init", "my-game"]).await.succeeded();
    let settings = std::fs::read_to_string(home.path("my-game/platform.toml")).unwrap();
    assert!(
        settings.contains(&format!("origin = \"{origin}\"")),
        "{settings}"
    );

    // Any setting that names one takes precedence.
    home.write("platform.toml", "origin = \"http://file.localhost:1\"\n");
    let named = home.run(&["whoami"]).await.ended_with(3);
    assert!(
        named
            .stderr
            .contains("Nobody is signed in to http://file.localhost:1: "),
        "{named:?}"
    );
    assert!(
        named
            .stderr
            .contains("`platform login --origin http://file.localhost:1`"),
        "{named:?}"
    );
    std::fs::remove_file(home.path("platform.toml")).unwrap();

    home.run(&["logout"]).await.succeeded();
    let forgotten = home.run(&["whoami"]).await.ended_with(3);
    assert!(
        forgotten.stderr.contains("http://platform.localhost:8787"),
        "{forgotten:?}"
    );
}

#[tokio::test]
async fn the_platform_of_the_installer_stands_where_nobody_has_signed_in() {
    let platform = Platform::start().await;
    let home = Home::without_origin();
    let origin = platform.origin();
    let settings =
        |game: &str| std::fs::read_to_string(home.path(&format!("{game}/platform.toml"))).unwrap();
    let unknown = home.run(&["init", "first-game"]).await.succeeded();
    assert!(unknown.stderr.contains("names no platform"), "{unknown:?}");
    assert!(!settings("first-game").contains("\norigin"));

    home.write(
        "config/platform/installed.toml",
        format!("origin = \"{origin}\"\n"),
    );
    home.run(&["init", "second-game"]).await.succeeded();
    let line = format!("\norigin = \"{origin}\"\n");
    assert!(settings("second-game").contains(&line));
    let login = home.run(&["login", "--no-browser"]).await.succeeded();
    let said = format!("Signed in to {origin} ");
    assert!(login.stderr.contains(&said), "{login:?}");

    // The last sign-in takes precedence over it, and any setting over both.
    home.write(
        "config/platform/installed.toml",
        "origin = \"http://other.localhost:1\"\n",
    );
    home.run(&["whoami"]).await.succeeded();
    home.run(&["logout"]).await.succeeded();
    let other = home.run(&["whoami"]).await.ended_with(3);
    assert!(
        other.stderr.contains("http://other.localhost:1"),
        "{other:?}"
    );
    let named = home
        .run(&["whoami", "--origin", &origin])
        .await
        .ended_with(3);
    assert!(named.stderr.contains(&origin), "{named:?}");
}

#[tokio::test]
async fn slow_down_is_heeded_by_the_program() {
    let platform = Platform::start().await;
    platform.device_answers(&["slow_down"]);
    let begun = tokio::time::Instant::now();
    Home::of(&platform).run(&["login"]).await.succeeded();
    // One second, and six more.
    assert!(
        begun.elapsed() >= Duration::from_secs(7),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn a_refused_and_an_expired_sign_in_exit_1_and_keep_nothing() {
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    for (code, part) in [
        ("access_denied", "refused in the browser"),
        ("expired_token", "in time"),
    ] {
        platform.device_answers(&[code]);
        let outcome = home.run(&["login"]).await.ended_with(1);
        assert!(outcome.stderr.contains(part), "{outcome:?}");
    }
    assert!(!home.credentials().exists());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_browser_is_tried_after_the_address_is_shown_and_its_failure_is_none() {
    use std::os::unix::fs::PermissionsExt as _;
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    let script = format!(
        "#!/bin/sh\necho \"$1\" >> {}\n",
        home.path("opened").display()
    );
    home.write("browser", script);
    let mut executable = std::fs::metadata(home.path("browser"))
        .unwrap()
        .permissions();
    executable.set_mode(0o755);
    std::fs::set_permissions(home.path("browser"), executable).unwrap();
    let login = |browser: std::path::PathBuf, arguments: &[&str], remote: bool| {
        let mut command = home.command(arguments);
        command
            .env("BROWSER", browser)
            .env("DISPLAY", ":0")
            .env("PATH", home.path("nothing"));
        if remote {
            command.env("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22");
        }
        outcome(command)
    };
    let opened = || std::fs::read_to_string(home.path("opened")).unwrap_or_default();
    login(home.path("browser"), &["login", "--no-browser"], false)
        .await
        .succeeded();
    login(home.path("browser"), &["login"], true)
        .await
        .succeeded();
    assert_eq!(opened(), "");
    login(home.path("none"), &["login"], false)
        .await
        .succeeded();
    login(home.path("browser"), &["login"], false)
        .await
        .succeeded();
    // It runs in parallel, and may still be starting.
    let shown = async {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        while opened().is_empty() {
            look.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), shown)
        .await
        .unwrap();
    assert_eq!(
        opened(),
        format!("{}/device?user_code=BCDF-GHJK\n", platform.auth_url())
    );
}

#[tokio::test]
async fn an_auth_service_that_names_another_is_not_followed() {
    let platform = Platform::start().await;
    let evil = "https://auth.evil.example";
    platform.say(
        "GET auth /.well-known/oauth-authorization-server",
        &[(200, json!({
            "issuer": platform.auth_url(),
            "device_authorization_endpoint": format!("{}/device/authorization", platform.auth_url()),
            "token_endpoint": format!("{evil}/token"),
            "revocation_endpoint": format!("{evil}/revoke"),
        }))],
    );
    Home::of(&platform).run(&["login"]).await.ended_with(1);
    assert!(platform.seen("/device/authorization").is_empty());
}

#[tokio::test]
async fn signing_out_revokes_and_forgets_even_if_the_platform_cannot_be_told() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    home.run(&["logout"]).await.succeeded();
    let revoked = platform.seen("/device/revoke");
    assert!(String::from_utf8_lossy(&revoked[0].body).contains("token=refresh-1"));
    home.run(&["whoami"]).await.ended_with(3);
    home.run(&["logout"]).await.succeeded();
    assert_eq!(platform.seen("/device/revoke").len(), 1);

    home.run(&["login"]).await.succeeded();
    platform.say("POST auth /device/revoke", &[(503, json!({}))]);
    home.run(&["logout"]).await.ended_with(1);
    home.run(&["whoami"]).await.ended_with(3);
}

#[tokio::test]
async fn signing_in_again_ends_the_former_sign_in() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    home.run(&["login"]).await.succeeded();
    let revoked = platform.seen("/device/revoke");
    assert!(String::from_utf8_lossy(&revoked[0].body).contains("token=refresh-1"));
}

#[tokio::test]
async fn commands_at_once_use_a_refresh_token_once() {
    let platform = Platform::start().await;
    platform.say("GET - /api/projects", &[(200, json!({"projects": []}))]);
    let home = Home::signed_in(&platform).await;
    age(&home);
    let list = || home.run(&["projects", "list"]);
    let (one, two, three, four) = tokio::join!(list(), list(), list(), list());
    for outcome in [one, two, three, four] {
        outcome.succeeded();
    }
    assert!(!platform.family_ended());
    // One for the sign-in, one for the refresh that all four shared.
    assert_eq!(platform.seen("/device/token").len(), 2);
    assert_eq!(platform.seen("/api/projects").len(), 4);
}

#[tokio::test]
async fn a_refused_token_is_refreshed_once_and_asked_with_again() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let refused = platform.problem("not-signed-in", 401, "Please sign in first.");
    platform.say(
        "GET - /api/projects",
        &[(401, refused.clone()), (200, json!({"projects": []}))],
    );
    home.run(&["projects", "list"]).await.succeeded();
    let sent = platform.seen("/api/projects");
    let bearer = |at: usize| sent[at].headers["authorization"].to_str().unwrap();
    assert_eq!(sent.len(), 2);
    assert_ne!(bearer(0), bearer(1));

    platform.say("GET - /api/projects", &[(401, refused)]);
    home.run(&["projects", "list"]).await.ended_with(3);
    assert_eq!(platform.seen("/api/projects").len(), 4);
}

#[tokio::test]
async fn a_sign_in_that_was_ended_elsewhere_is_forgotten() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    platform.say(
        "POST auth /device/token",
        &[(400, json!({"error": "invalid_grant"}))],
    );
    home.run(&["whoami"]).await.ended_with(3);
    let kept = std::fs::read_to_string(home.credentials()).unwrap();
    assert!(!kept.contains("refresh"), "{kept}");
}

#[tokio::test]
async fn an_auth_service_that_is_down_does_not_sign_anybody_out() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    age(&home);
    platform.say("POST auth /device/token", &[(503, json!({}))]);
    home.run(&["projects", "list"]).await.ended_with(1);
    assert!(
        std::fs::read_to_string(home.credentials())
            .unwrap()
            .contains("refresh-1")
    );
}

#[tokio::test]
async fn a_token_of_the_environment_stands_in_for_signing_in_at_its_own_platform_alone() {
    let platform = Platform::start().await;
    let other = Platform::start().await;
    let home = Home::of(&platform);
    platform.say("GET - /api/projects", &[(200, json!({"projects": []}))]);
    let with_token = |token: String, arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("PLATFORM_TOKEN", token);
        outcome(command)
    };
    let token = platform.token("builder", 1);
    let whoami = with_token(token.clone(), &["whoami"]).await.succeeded();
    assert!(
        whoami.stdout.starts_with("builder (0198c2d4-"),
        "{whoami:?}"
    );
    let sent = platform.seen("/api/projects");
    assert_eq!(sent[0].headers["authorization"], format!("Bearer {token}"));

    let origin = other.origin();
    with_token(token.clone(), &["projects", "list", "--origin", &origin])
        .await
        .ended_with(2);
    assert!(other.seen("/api/projects").is_empty());

    let refused = platform.problem("not-signed-in", 401, "Please sign in first.");
    platform.say("GET - /api/projects", &[(401, refused)]);
    let refused = with_token(token.clone(), &["projects", "list"])
        .await
        .ended_with(3);
    assert!(!refused.stderr.contains(&token));
    for part in ["refused PLATFORM_TOKEN", "unset it", "(request req-head)"] {
        assert!(refused.stderr.contains(part), "{refused:?}");
    }
    let refused = platform.problem("not-signed-in", 401, "Please sign in first.");
    platform.say("POST - /api/projects/game/test-tokens", &[(401, refused)]);
    let arguments = ["test-token", "--json", "--project", "game"];
    let relayed = with_token(token.clone(), &arguments).await.ended_with(3);
    let relayed: Value = serde_json::from_str(&relayed.stdout).unwrap();
    assert_eq!(relayed["detail"], "Please sign in first.");
    assert!(relayed["request_id"].is_string(), "{relayed}");
    let refused = with_token("abc".to_owned(), &["whoami"])
        .await
        .ended_with(3);
    assert!(
        refused.stderr.contains("refused PLATFORM_TOKEN"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn test_tokens_are_printed_bare_or_as_json() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let token = json!({
        "access_token": "a.b.c", "token_type": "Bearer", "expires_in": 1800,
        "sub": "0198c2d4", "username": "test-user-3",
    });
    platform.say(
        "POST - /api/projects/game/test-tokens",
        &[(200, token.clone())],
    );
    let outcome = home
        .run(&["test-token", "3", "-p", "game"])
        .await
        .succeeded();
    assert_eq!(
        (outcome.stdout.as_str(), outcome.stderr.as_str()),
        ("a.b.c\n", "")
    );
    let outcome = home
        .run(&["test-token", "-p", "game", "--guest", "--json"])
        .await
        .succeeded();
    assert_eq!(
        serde_json::from_str::<Value>(&outcome.stdout).unwrap(),
        token
    );
    let sent = platform.seen("/api/projects/game/test-tokens");
    let body = |at: usize| serde_json::from_slice::<Value>(&sent[at].body).unwrap();
    assert_eq!(body(0), json!({"number": 3, "guest": false}));
    assert_eq!(body(1), json!({"number": 1, "guest": true}));

    let problem = platform.problem("not-deployed", 409, "Run \"platform deploy\" once.");
    platform.say(
        "POST - /api/projects/game/test-tokens",
        &[(409, problem.clone())],
    );
    let outcome = home
        .run(&["test-token", "-p", "game", "--json"])
        .await
        .ended_with(1);
    assert_eq!(
        serde_json::from_str::<Value>(&outcome.stdout).unwrap(),
        problem
    );
    assert!(
        outcome.stderr.contains("Run \"platform deploy\" once."),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_games_address_leads_to_its_platform() {
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    let said = json!({ "origin": platform.origin(), "auth_url": platform.auth_url() });
    for label in ["game", "auth"] {
        platform.say(
            &format!("GET {label} /__platform/platform.json"),
            &[(200, said.clone())],
        );
        let address = format!("http://{label}.platform.localhost:{}", platform.port);
        let outcome = home
            .run(&["login", "--no-browser", "--origin", &address])
            .await
            .succeeded();
        let belongs = format!("{address} belongs to {}.", platform.origin());
        assert!(outcome.stderr.contains(&belongs), "{outcome:?}");
        let whoami = home.run(&["whoami"]).await.succeeded();
        assert!(whoami.stdout.contains(&platform.origin()), "{whoami:?}");
    }
}

#[tokio::test]
async fn no_address_sends_the_sign_in_to_a_platform_that_it_is_no_part_of() {
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    for elsewhere in [
        "http://evil.localhost:1".to_owned(),
        format!("http://platform.localhost:{}", platform.port + 1),
        format!("http://other.platform.localhost:{}", platform.port),
    ] {
        platform.say(
            "GET game /__platform/platform.json",
            &[(200, json!({ "origin": elsewhere }))],
        );
        let address = format!("http://game.platform.localhost:{}", platform.port);
        let outcome = home
            .run(&["login", "--no-browser", "--origin", &address])
            .await
            .ended_with(1);
        let command = format!("`platform login --origin {elsewhere}`");
        assert!(outcome.stderr.contains(&command), "{outcome:?}");
        assert_eq!(platform.seen("/device/authorization").len(), 0);
    }
}
