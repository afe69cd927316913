//! Groups of errors: listed, shown, and decided about.

use serde_json::{Value, json};

use crate::platform::Platform;
use crate::support::Home;

const GROUPS: &str = "GET - /api/projects/game/error-groups";

fn id(start: &str) -> String {
    format!("{start:0<32}")
}

fn group(start: &str, message: &str) -> Value {
    let mut hours = vec![0; 24];
    hours[23] = 4;
    json!({
        "id": id(start), "state": "open", "kind": "TypeError", "message": message,
        "place": "src/game.ts:3:7", "first_at": "2020-01-01T00:00:00Z",
        "last_at": "2020-01-02T00:00:00Z", "regressed_at": null, "count": 4, "players": 1,
        "hours": hours
    })
}

fn detail(start: &str) -> Value {
    let mut detail = group(start, "no \u{1b}[31mscore");
    let more = json!({
        "deployments": [{"id": "3f2a9c1b-0000-4000-8000-000000000000", "count": 4}],
        "browsers": [{"name": "firefox", "count": 4}],
        "frames": [{"call": "lose", "file": "src/game.ts", "line": 3, "column": 7, "mapped": true}],
        "excerpt": {"file": "src/game.ts", "first": 2, "line": 3, "lines": ["{", "  lose();", "}"]}
    });
    let all = detail.as_object_mut().unwrap();
    all.extend(more.as_object().unwrap().clone());
    detail
}

#[tokio::test]
async fn groups_are_listed_page_by_page() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let pages = [
        (
            200,
            json!({"groups": [group("ab12", "one")], "before": "17.x"}),
        ),
        (
            200,
            json!({"groups": [group("cd34", "two")], "before": null}),
        ),
    ];
    platform.say(GROUPS, &pages);
    let arguments = ["errors", "-p", "game", "--env", "prod", "--search", "a b"];
    let outcome = home.run(&arguments).await.succeeded();
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines[0], "ab120000 TypeError: one");
    assert!(
        lines[1].contains("4 times  1 player  last 2020-01-02  src/game.ts:3:7"),
        "{}",
        lines[1]
    );
    assert!(lines[1].ends_with("src/game.ts:3:7"), "{}", lines[1]);
    assert_eq!(lines[2], "cd340000 TypeError: two");
    let seen = platform.seen("/api/projects/game/error-groups");
    let first = &seen[0].path;
    assert!(
        first.ends_with("?env=prod&limit=50&state=open&search=a+b"),
        "{first}"
    );
    assert!(seen[1].path.ends_with("&before=17.x"), "{}", seen[1].path);
    platform.say(
        GROUPS,
        &[(
            200,
            json!({"groups": [group("ab12", "one")], "before": null}),
        )],
    );
    let arguments = ["errors", "-p", "game", "--state", "all", "--json"];
    let outcome = home.run(&arguments).await.succeeded();
    let line: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(line["id"], id("ab12"));
    assert!(
        !platform.seen("/api/projects/game/error-groups")[2]
            .path
            .contains("state")
    );
}

#[tokio::test]
async fn a_group_is_shown_by_the_beginning_of_its_id() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let listed = json!({"groups": [group("ab12", "one"), group("ab34", "two")], "before": null});
    platform.say(GROUPS, &[(200, listed)]);
    platform.say(
        &format!("{GROUPS}/{}", id("ab12")),
        &[(200, detail("ab12"))],
    );
    let outcome = home
        .run(&["errors", "show", "AB1", "-p", "game"])
        .await
        .succeeded();
    for part in [
        "> ",
        "3   lose();",
        "at lose (src/game.ts:3:7)",
        "firefox 4 times",
        "deployment 3f2a9c1b",
    ] {
        assert!(outcome.stdout.contains(part), "{part}: {}", outcome.stdout);
    }
    assert!(!outcome.stdout.contains('\u{1b}'), "{:?}", outcome.stdout);
    let listed = json!({"groups": [group("ab12", "one"), group("ab34", "two")], "before": null});
    platform.say(GROUPS, &[(200, listed.clone()), (200, listed)]);
    let several = home.run(&["errors", "show", "ab", "-p", "game"]).await;
    assert!(several.ended_with(1).stderr.contains("2 errors have ids"));
    let none = home.run(&["errors", "resolve", "ef", "-p", "game"]).await;
    assert!(none.ended_with(1).stderr.contains("No error on"));
    home.run(&["errors", "ignore", "x", "-p", "game"])
        .await
        .ended_with(2);
}

#[tokio::test]
async fn a_decision_is_sent_and_said() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let mut resolved = detail("ab12");
    resolved["state"] = json!("resolved");
    let path = format!("/api/projects/game/error-groups/{}", id("ab12"));
    platform.say(&format!("PUT - {path}"), &[(200, resolved)]);
    let arguments = [
        "errors",
        "resolve",
        &id("ab12"),
        "-p",
        "game",
        "--env",
        "prod",
    ];
    let outcome = home.run(&arguments).await.succeeded();
    assert!(
        outcome.stderr.contains("is resolved now."),
        "{}",
        outcome.stderr
    );
    let seen = platform.seen(&path);
    assert!(seen[0].path.ends_with("?env=prod"), "{}", seen[0].path);
}

#[tokio::test]
async fn a_group_is_deleted() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let path = format!("/api/projects/game/error-groups/{}", id("ab12"));
    platform.say(&format!("DELETE - {path}"), &[(200, json!({"removed": 1}))]);
    let outcome = home
        .run(&["errors", "delete", &id("ab12"), "-p", "game"])
        .await
        .succeeded();
    assert!(outcome.stderr.contains("was removed"), "{}", outcome.stderr);
}
