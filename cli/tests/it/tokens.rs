//! Deploy tokens: managing them, and using one in place of a sign-in.

use serde_json::{Value, json};

use crate::platform::Platform;
use crate::support::{Home, Outcome, last_line, outcome};

const PATH: &str = "/api/projects/game/tokens";

/// A token as a pipeline has it.
fn secret() -> String {
    format!("pdt_{}", "0123456789abcdefghijklmnopqrstuv".repeat(2))
}

fn token(id: &str, name: &str) -> Value {
    json!({
        "id": id, "name": name, "scopes": ["deploy-dev", "logs"],
        "created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-04-01T00:00:00Z",
        "expired": name == "old", "used_on": if name == "ci" { json!("2026-02-03") } else { Value::Null },
    })
}

/// Runs the program with a deploy token, as a pipeline does.
async fn with_token(home: &Home, token: &str, arguments: &[&str]) -> Outcome {
    let mut command = home.command(arguments);
    command.env("PLATFORM_TOKEN", token);
    outcome(command).await
}

#[tokio::test]
async fn a_new_token_alone_is_the_result() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let mut created = token("1", "ci");
    created["secret"] = json!(secret());
    platform.say(&format!("POST - {PATH}"), &[(201, created.clone())]);
    let create = ["-p", "game", "tokens", "create", "ci", "--scope"];
    let arguments = [&create[..], &["deploy-dev", "--scope", "logs"]].concat();
    let outcome = home.run(&arguments).await.succeeded();
    assert_eq!(outcome.stdout, format!("{}\n", secret()));
    assert!(!outcome.stderr.contains(&secret()), "{outcome:?}");
    let body: Value = serde_json::from_slice(&platform.seen(PATH)[0].body).unwrap();
    let wanted = json!({ "name": "ci", "scopes": ["deploy-dev", "logs"], "days": 90 });
    assert_eq!(body, wanted);
    let arguments = [&create[..], &["deploy-prod", "--days", "7", "--json"]].concat();
    let outcome = home.run(&arguments).await.succeeded();
    assert_eq!(
        serde_json::from_str::<Value>(&outcome.stdout).unwrap(),
        created
    );
    for wrong in [
        &["deploy"][..],
        &["logs", "--days", "366"],
        &["logs", "--days", "0"],
    ] {
        let arguments = [&create[..], wrong].concat();
        home.run(&arguments).await.ended_with(2);
    }
}

#[tokio::test]
async fn tokens_are_listed_and_revoked_by_their_names() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let list = json!({ "tokens": [token("7", "ci"), token("8", "old")], "most": 20 });
    platform.say(&format!("GET - {PATH}"), &[(200, list)]);
    platform.say(&format!("DELETE - {PATH}/7"), &[(200, token("7", "ci"))]);
    let outcome = home
        .run(&["-p", "game", "tokens", "list"])
        .await
        .succeeded();
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert!(
        lines[1].starts_with("ci ") && lines[1].ends_with("2026-02-03"),
        "{outcome:?}"
    );
    assert!(
        lines[2].contains("(expired)") && lines[2].ends_with("never"),
        "{outcome:?}"
    );
    let revoke = ["-p", "game", "tokens", "revoke"];
    home.run(&[&revoke[..], &["ci"]].concat()).await.succeeded();
    assert_eq!(platform.seen(&format!("{PATH}/7")).len(), 1);
    let outcome = home
        .run(&[&revoke[..], &["other"]].concat())
        .await
        .ended_with(1);
    assert!(last_line(&outcome.stderr).contains("other"), "{outcome:?}");
}

#[tokio::test]
async fn a_deploy_token_needs_no_sign_in_and_no_file() {
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    home.write("platform.toml", "slug = \"game\"\n");
    home.write(
        "dist/index.html",
        "<script defer src=\"/__platform/runtime.js\"></script>",
    );
    let path = "/api/projects/game/environments/prod/deployment";
    let answer = json!({"id": "1", "url": "http://game.platform.localhost", "warnings": []});
    platform.say(&format!("PUT - {path}"), &[(201, answer)]);
    let deploy = ["deploy", "--env", "prod", "--yes"];
    let outcome = with_token(&home, &secret(), &deploy).await.succeeded();
    assert_eq!(outcome.stdout, "http://game.platform.localhost\n");
    let sent = platform.seen(path);
    let bearer = format!("Bearer {}", secret());
    assert_eq!(sent[0].headers["authorization"], bearer.as_str());
    // A deploy token could not make the call that checks the project first.
    assert_eq!(
        platform.seen("/api/projects/game/environments/prod").len(),
        0
    );
    assert!(!home.path("config").exists());
}

#[tokio::test]
async fn a_deploy_token_is_sent_only_where_its_user_says() {
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    let manifest = format!("slug = \"game\"\norigin = \"{}\"\n", platform.origin());
    home.write("platform.toml", manifest);
    home.write("dist/index.html", "<!doctype html>");
    let mut command = home.command(&["deploy"]);
    command
        .env("PLATFORM_TOKEN", secret())
        .env_remove("PLATFORM_ORIGIN");
    let outcome = outcome(command).await.ended_with(2);
    assert!(
        last_line(&outcome.stderr).contains("PLATFORM_ORIGIN"),
        "{outcome:?}"
    );
    // One that was cut off when it was copied is not sent at all.
    let cut = &secret()[..40];
    let outcome = with_token(&home, cut, &["deploy"]).await.ended_with(2);
    assert!(!outcome.stderr.contains(cut), "{outcome:?}");
    assert_eq!(
        platform
            .seen("/api/projects/game/environments/dev/deployment")
            .len(),
        0
    );
}

#[tokio::test]
async fn a_deploy_token_gets_advice_that_helps_a_pipeline() {
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    let detail = "This deploy token has no scope for this.";
    let logs = ["-p", "game", "logs"];
    for (slug, status, advice) in [
        ("not-allowed", 403, "`platform tokens list`"),
        ("not-found", 404, "works for its own project only"),
    ] {
        let refused = platform.problem(slug, status, detail);
        platform.say("GET - /api/projects/game/logs", &[(status, refused)]);
        let outcome = with_token(&home, &secret(), &logs).await.ended_with(1);
        let said = last_line(&outcome.stderr);
        assert!(said.contains(detail) && said.contains(advice), "{said}");
        for useless in ["whoami", "projects list"] {
            assert!(!said.contains(useless), "{said}");
        }
    }
    let whoami = with_token(&home, &secret(), &["whoami"]).await;
    let whoami = whoami.ended_with(1);
    assert!(whoami.stderr.contains("nobody's account"), "{whoami:?}");
    assert_eq!(platform.seen("/api/projects").len(), 0);
}

#[tokio::test]
async fn a_deploy_token_that_ended_is_explained_in_the_platforms_words() {
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    let detail = "The deploy token “ci” was revoked on 3 February 2026.";
    let refused = platform.problem("not-signed-in", 401, detail);
    platform.say("GET - /api/projects/game/logs", &[(401, refused)]);
    let logs = ["-p", "game", "logs"];
    let outcome = with_token(&home, &secret(), &logs).await.ended_with(3);
    assert!(last_line(&outcome.stderr).contains(detail), "{outcome:?}");
}

#[tokio::test]
async fn a_deploy_token_is_not_sent_to_the_address_of_a_game() {
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    home.write("platform.toml", "slug = \"game\"\n");
    home.write("dist/index.html", "<!doctype html>");
    let whereabouts = json!({ "origin": platform.origin() });
    platform.say("GET game /__platform/platform.json", &[(200, whereabouts)]);
    let game = platform.origin().replace("://", "://game.");
    let deploy = ["--origin", &game, "deploy"];
    let outcome = with_token(&home, &secret(), &deploy).await.ended_with(2);
    let said = last_line(&outcome.stderr);
    assert!(said.contains(&platform.origin()), "{outcome:?}");
    let path = "/api/projects/game/environments/dev/deployment";
    assert_eq!(platform.seen(path).len(), 0);
}

#[tokio::test]
async fn a_check_needs_no_platform_and_no_token() {
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    home.write(
        "dist/index.html",
        "<!doctype html><script defer src=\"/__platform/runtime.js\"></script>",
    );
    let mut command = home.command(&["check"]);
    command
        .env("PLATFORM_TOKEN", secret())
        .env_remove("PLATFORM_ORIGIN");
    outcome(command).await.succeeded();
}
