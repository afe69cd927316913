//! Earlier deployments, and going back to one.

use serde_json::{Value, json};

use crate::platform::Platform;
use crate::support::{Home, last_line};

/// An environment that keeps three deployments, of which the `current`th is current.
fn environment(current: Option<usize>) -> Value {
    let deployments: Vec<Value> = ["3", "2", "1"]
        .iter()
        .enumerate()
        .map(|(at, id)| {
            json!({"id": format!("id-{id}"), "created_at": format!("2020-01-0{id}T00:00:00Z"),
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
        "DEPLOYMENT  TIME        BY  FILES     SIZE           MESSAGE\n\
         id-3        2020-01-03  -       4  2.10 MB\n\
         id-2        2020-01-02  -       4  2.10 MB  current\n\
         id-1        2020-01-01  -       4  2.10 MB\n"
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
        outcome
            .stderr
            .contains("id-1, deployed 2020-01-01, in place of id-2, deployed 2020-01-02."),
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
async fn a_rollback_prints_the_warnings_of_the_deployment_that_it_shows() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    platform.say(&format!("GET - {DEV}"), &[(200, environment(Some(1)))]);
    let mut after = environment(Some(2));
    after["warnings"] = json!([{"code": "runtime-not-loaded", "message": "Load the runtime."}]);
    platform.say(&format!("POST - {DEV}/rollback"), &[(200, after)]);
    let outcome = home.run(&["rollback", "-p", "game"]).await.succeeded();
    assert!(
        outcome
            .stderr
            .contains("Load the runtime. (runtime-not-loaded)"),
        "{outcome:?}"
    );
}

/// Two deployments in the same minute, as the platform returns them.
fn told() -> Value {
    let one = |id: &str, at: &str, message: Option<&str>, current: bool| {
        json!({"id": id, "short_id": &id[..8], "created_at": at, "files": 4, "bytes": 2_100_000,
               "current": current, "deployed_by": {"sub": "0198c2d4-0000-7000-8000-000000000001",
               "username": "otter"}, "client": "platform-cli/0.1.0", "network": "192.0.2.1",
               "message": message, "revision": "3f2a9c1b8d7e6f5a4b3c3f2a9c1b8d7e6f5a4b3c-dirty"})
    };
    let deployments = [
        one(
            "3f2a9c1b-1111-4000-8000-000000000001",
            "2020-01-03T00:00:01Z",
            Some("Fix the rings"),
            true,
        ),
        one(
            "3f2a77aa-1111-4000-8000-000000000002",
            "2020-01-03T00:00:00Z",
            None,
            false,
        ),
    ];
    json!({"url": "http://dev-game.platform.localhost", "deployments": deployments})
}

#[tokio::test]
async fn deployments_are_told_apart_by_a_short_id_who_from_where_and_why() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let path = format!("{DEV}/rollback");
    platform.say(&format!("GET - {DEV}"), &[(200, told())]);
    platform.say(&format!("POST - {path}"), &[(200, told())]);
    let outcome = home.run(&["deployments", "-p", "game"]).await.succeeded();
    let row = "3f2a9c1b    2020-01-03  otter (platform-cli/0.1.0, 192.0.2.1)      4  \
               2.10 MB  current  Fix the rings, 3f2a9c1b-dirty\n";
    assert!(outcome.stdout.contains(row), "{}", outcome.stdout);

    // A roll-back shows both deployments, and accepts the beginning of an id.
    let outcome = home
        .run(&["rollback", "3f2a77", "-p", "game"])
        .await
        .succeeded();
    let both = "Showing 3f2a77aa, deployed 2020-01-03, 3f2a9c1b-dirty, in place of 3f2a9c1b, \
                deployed 2020-01-03, Fix the rings, 3f2a9c1b-dirty.";
    assert!(outcome.stderr.contains(both), "{outcome:?}");
    let sent = platform.seen(&path);
    let body: Value = serde_json::from_slice(&sent[0].body).unwrap();
    assert_eq!(
        body,
        json!({"deployment": "3f2a77aa-1111-4000-8000-000000000002"})
    );
    let outcome = home
        .run(&["rollback", "3f2a", "-p", "game"])
        .await
        .ended_with(1);
    assert!(
        outcome.stderr.contains("several stored deployments"),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_rollback_to_nothing_changes_nothing() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let call = format!("GET - {DEV}");
    for (current, arguments, part) in [
        (Some(2), &[][..], "from before the current one"),
        (None, &[], "has no current deployment"),
        (Some(0), &["id-9"], "has no stored deployment id-9"),
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
