//! The people of a project.

use serde_json::{Value, json};

use crate::platform::Platform;
use crate::support::Home;

const PROJECT: &str = "/api/projects/game";

fn person(sub: &str, username: &str, role: &str) -> Value {
    let since = if role == "owner" {
        Value::Null
    } else {
        json!("2026-01-01T00:00:00Z")
    };
    json!({ "sub": sub, "username": username, "role": role, "since": since })
}

fn people() -> Value {
    json!({
        "people": [person("1", "otter", "owner"), person("7", "Ada", "developer")],
        "most": 50,
    })
}

fn handover() -> Value {
    json!({
        "sub": "7", "username": "Ada",
        "offered_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-08T00:00:00Z",
    })
}

#[tokio::test]
async fn the_link_of_an_invitation_alone_is_the_result() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let link = "https://games.example/invitations#platform_in_x";
    let created = json!({
        "link": link, "id": "9", "role": "viewer",
        "created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-08T00:00:00Z",
    });
    let call = format!("POST - {PROJECT}/invitations");
    platform.say(&call, &[(201, created.clone())]);
    let invite = ["-p", "game", "people", "invite", "viewer"];
    let outcome = home.run(&invite).await.succeeded();
    assert_eq!(outcome.stdout, format!("{link}\n"));
    assert!(
        outcome.stderr.contains("joins game as a viewer"),
        "{outcome:?}"
    );
    let seen = platform.seen(&format!("{PROJECT}/invitations"));
    let body: Value = serde_json::from_slice(&seen[0].body).unwrap();
    assert_eq!(body, json!({ "role": "viewer" }));
    let outcome = home
        .run(&[&invite[..], &["--json"]].concat())
        .await
        .succeeded();
    let told: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(told, created);
    home.run(&["-p", "game", "people", "invite", "owner"])
        .await
        .ended_with(2);
}

#[tokio::test]
async fn people_are_listed_and_found_by_their_names() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    platform.say(&format!("GET - {PROJECT}/people"), &[(200, people())]);
    let ada = person("7", "Ada", "viewer");
    let path = format!("{PROJECT}/people/7");
    platform.say(&format!("PUT - {path}"), &[(200, ada.clone())]);
    let mut removed = ada;
    removed["invitations_withdrawn"] = json!(2);
    removed["left"] = json!(["webhook", "backend-prod"]);
    platform.say(&format!("DELETE - {path}"), &[(200, removed)]);
    let run = async |arguments: &[&str]| {
        let all = [&["-p", "game", "people"], arguments].concat();
        home.run(&all).await
    };
    let outcome = run(&["list"]).await.succeeded();
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines[1], "otter  owner");
    assert!(lines[2].starts_with("Ada    developer  "), "{outcome:?}");
    let outcome = run(&["list", "--json"]).await.succeeded();
    assert_eq!(
        serde_json::from_str::<Value>(&outcome.stdout).unwrap(),
        people()
    );
    let outcome = run(&["role", "ada", "viewer"]).await.succeeded();
    assert!(
        outcome.stderr.contains("Ada is a viewer of game now."),
        "{outcome:?}"
    );
    let outcome = run(&["remove", "7"]).await.succeeded();
    let words = "2 open invitations were withdrawn";
    assert!(outcome.stderr.contains(words), "{outcome:?}");
    let words = "They had set: webhook, backend-prod.";
    assert!(outcome.stderr.contains(words), "{outcome:?}");
    let outcome = run(&["remove", "ben"]).await.ended_with(1);
    assert!(
        outcome.stderr.contains("Nobody with the name"),
        "{outcome:?}"
    );
    assert_eq!(platform.seen(&path).len(), 2);
}

#[tokio::test]
async fn handing_a_project_on_needs_a_confirmation() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    platform.say(&format!("GET - {PROJECT}/people"), &[(200, people())]);
    let path = format!("{PROJECT}/handover");
    platform.say(&format!("PUT - {path}"), &[(200, handover())]);
    let hand_on = ["-p", "game", "people", "hand-on", "ada"];
    home.run(&hand_on).await.ended_with(2);
    assert!(platform.seen(&path).is_empty());
    let outcome = home
        .run(&[&hand_on[..], &["--yes"]].concat())
        .await
        .succeeded();
    assert!(
        outcome
            .stderr
            .contains("game is offered to Ada, who can accept it until"),
        "{outcome:?}"
    );
    let body: Value = serde_json::from_slice(&platform.seen(&path)[0].body).unwrap();
    assert_eq!(body, json!({ "sub": "7" }));
}

#[tokio::test]
async fn an_offered_project_is_listed_taken_on_and_declined() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let mut offered = people();
    offered["handover"] = handover();
    platform.say(&format!("GET - {PROJECT}/people"), &[(200, offered)]);
    let accept = format!("{PROJECT}/handover/accept");
    platform.say(&format!("POST - {accept}"), &[(200, json!({}))]);
    let end = format!("{PROJECT}/handover");
    platform.say(&format!("DELETE - {end}"), &[(200, handover())]);
    let run = async |arguments: &[&str]| {
        let all = [&["-p", "game", "people"], arguments].concat();
        home.run(&all).await
    };
    let outcome = run(&["list"]).await.succeeded();
    assert!(
        outcome.stderr.contains("game is offered to Ada, until"),
        "{outcome:?}"
    );
    run(&["take-on"]).await.ended_with(2);
    assert!(platform.seen(&accept).is_empty());
    let outcome = run(&["take-on", "--yes"]).await.succeeded();
    assert!(
        outcome.stderr.contains("game belongs to you now."),
        "{outcome:?}"
    );
    for name in ["end-offer", "decline"] {
        let outcome = run(&[name]).await.succeeded();
        let words = "game is not offered to Ada any more.";
        assert!(outcome.stderr.contains(words), "{outcome:?}");
    }
    assert_eq!(platform.seen(&end).len(), 2);
}
