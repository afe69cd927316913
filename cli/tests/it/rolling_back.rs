//! What was deployed before, and the way back to it.

use serde_json::{Value, json};

use crate::platform::Platform;
use crate::support::{Home, last_line};

/// An environment that keeps three deployments and shows the `current`th.
fn environment(current: Option<usize>) -> Value {
    let deployments: Vec<Value> = ["3", "2", "1"]
        .iter()
        .enumerate()
        .map(|(at, id)| {
            json!({"id": format!("id-{id}"), "created_at": format!("2026-01-0{id}T00:00:00Z"),
                   "files": 4, "bytes": 2_100_000, "current": current == Some(at)})
        })
        .collect();
    json!({"url": "http://dev-game.platform.localhost", "deployments": deployments})
}

const DEV: &str = "/api/projects/game/environments/dev";

#[tokio::test]
async fn deployments_are_listed_with_the_current_one() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    platform.say(&format!("GET - {DEV}"), &[(200, environment(Some(1)))]);
    let outcome = home.run(&["deployments", "-p", "game"]).await.succeeded();
    assert_eq!(
        outcome.stdout,
        "DEPLOYMENT  TIME                  FILES     SIZE\n\
         id-3        2026-01-03T00:00:00Z      4  2.10 MB\n\
         id-2        2026-01-02T00:00:00Z      4  2.10 MB  current\n\
         id-1        2026-01-01T00:00:00Z      4  2.10 MB\n"
    );
    let outcome = home
        .run(&["deployments", "-p", "game", "--json"])
        .await
        .succeeded();
    let list: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(
        list["deployments"],
        environment(Some(1))["deployments"],
        "{list}"
    );

    platform.has("game", "prod");
    let outcome = home
        .run(&["deployments", "-p", "game", "--env", "prod"])
        .await
        .succeeded();
    assert_eq!(outcome.stdout, "");
    assert!(outcome.stderr.contains("no deployment yet"), "{outcome:?}");
}

#[tokio::test]
async fn a_rollback_goes_to_the_one_before_the_current_or_to_the_one_that_is_named() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let path = format!("{DEV}/rollback");
    platform.say(&format!("GET - {DEV}"), &[(200, environment(Some(1)))]);
    platform.say(&format!("POST - {path}"), &[(200, environment(Some(2)))]);
    let outcome = home.run(&["rollback", "-p", "game"]).await.succeeded();
    assert_eq!(outcome.stdout, "http://dev-game.platform.localhost\n");
    assert!(
        outcome.stderr.contains("id-1 of 2026-01-01T00:00:00Z"),
        "{outcome:?}"
    );
    home.run(&["rollback", "id-3", "-p", "game"])
        .await
        .succeeded();
    let sent = platform.seen(&path);
    let body = |at: usize| serde_json::from_slice::<Value>(&sent[at].body).unwrap();
    assert_eq!(body(0), json!({"deployment": "id-1"}));
    assert_eq!(body(1), json!({"deployment": "id-3"}));
}

#[tokio::test]
async fn a_rollback_to_nothing_changes_nothing() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let call = format!("GET - {DEV}");
    for (current, arguments, part) in [
        (Some(2), &[][..], "from before the one that it shows"),
        (None, &[], "shows no deployment"),
        (Some(0), &["id-9"], "keeps no deployment id-9"),
    ] {
        platform.say(&call, &[(200, environment(current))]);
        let line = [&["rollback", "-p", "game"], arguments].concat();
        let outcome = home.run(&line).await.ended_with(1);
        assert!(outcome.stderr.contains(part), "{outcome:?}");
        assert!(
            outcome.stderr.contains("`platform deployments` lists"),
            "{outcome:?}"
        );
    }
    assert!(platform.seen(&format!("{DEV}/rollback")).is_empty());
}

#[tokio::test]
async fn production_is_not_rolled_back_unasked() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let path = "/api/projects/game/environments/prod";
    platform.say(&format!("GET - {path}"), &[(200, environment(Some(0)))]);
    platform.say(
        &format!("POST - {path}/rollback"),
        &[(200, environment(Some(1)))],
    );
    let line = ["rollback", "-p", "game", "--env", "prod"];
    let outcome = home.run(&line).await.ended_with(2);
    assert!(last_line(&outcome.stderr).contains("--yes"), "{outcome:?}");
    assert!(platform.seen(&format!("{path}/rollback")).is_empty());
    home.run(&[&line[..], &["--yes"]].concat())
        .await
        .succeeded();
    assert_eq!(platform.seen(&format!("{path}/rollback")).len(), 1);
}
