//! Disabling a project, and enabling it again.

use serde_json::{Value, json};

use crate::platform::Platform;
use crate::support::Home;

fn project(standing: &Value) -> Value {
    let environment = json!({"url": "http://game.platform.localhost", "deployment": {}});
    json!({
        "slug": "game",
        "environments": {"dev": environment, "prod": environment},
        "standing": standing,
    })
}

#[tokio::test]
async fn a_project_is_disabled_enabled_deleted_and_restored() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let live = project(&json!({"state": "live"}));
    let disabled = project(&json!({"state": "disabled", "by": "platform", "reason": "Why."}));
    let deleted = project(&json!({"state": "deleted", "by": "owner",
                                 "removed_at": "2026-01-08T00:00:00Z"}));
    platform.say(
        "POST - /api/projects/game/disable",
        &[(200, disabled.clone())],
    );
    platform.say("POST - /api/projects/game/enable", &[(200, live.clone())]);
    platform.say("DELETE - /api/projects/game", &[(200, deleted)]);
    platform.say("POST - /api/projects/game/restore", &[(200, live)]);
    for (arguments, told) in [
        (
            &["disable", "game", "--reason", "Why."][..],
            "game is disabled by the platform's operators: Why.",
        ),
        (&["enable", "game"], "game is live: its game is shown."),
        (
            &["delete", "game", "--yes"],
            "game is deleted, and will be removed at 2026-01-08",
        ),
        (&["restore", "game"], "game is live"),
    ] {
        let arguments: Vec<&str> = std::iter::once("projects")
            .chain(arguments.iter().copied())
            .collect();
        let outcome = home.run(&arguments).await.succeeded();
        assert!(outcome.stderr.contains(told), "{outcome:?}");
    }
    let sent = &platform.seen("/api/projects/game/disable")[0];
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(body, json!({"reason": "Why."}));

    platform.say(
        "GET - /api/projects",
        &[(200, json!({"projects": [disabled]}))],
    );
    let outcome = home.run(&["projects", "list"]).await.succeeded();
    assert!(
        outcome
            .stdout
            .contains("(disabled by the platform's operators: Why.)"),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn nothing_is_deleted_without_an_answer() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let outcome = home.run(&["projects", "delete", "game"]).await;
    assert_eq!(outcome.code, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("--yes"), "{outcome:?}");
    assert!(platform.seen("/api/projects/game").is_empty());
}
