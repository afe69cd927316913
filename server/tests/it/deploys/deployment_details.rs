//! The information about deployments: who made them, from where, with which message and from which
//! commit.

use platform_server::domain::audit::{AuditKind, AuditQuery};
use reqwest::Method;
use serde_json::{Value, json};

use crate::caller::{Caller, archive};
use crate::support::{Answer, TestApp, send};

async fn deploy(caller: &Caller<'_>, query: &str, agent: &str) -> Answer {
    let path = format!("/api/projects/game/environments/dev/deployment{query}");
    let request = caller
        .ask(Method::PUT, &path)
        .header("content-type", "application/gzip")
        .header("user-agent", agent);
    send(request.body(archive(&[("index.html", b"<!doctype html>")]))).await
}

#[tokio::test]
async fn a_deployment_tells_who_made_it_from_where_and_why() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let query = "?message=Fix+the+rings&revision=3f2a9c1b-dirty";
    let deployed: Value = deploy(&owner, query, "platform-cli/0.1.0 (x)").await.json();
    let id = deployed["id"].as_str().unwrap();
    assert_eq!(deployed["short_id"], json!(id[..8]));

    let shown: Value = owner
        .get("/api/projects/game/environments/dev")
        .await
        .json();
    let one = &shown["deployments"][0];
    assert_eq!(one["short_id"], json!(id[..8]));
    assert_eq!(one["deployed_by"]["sub"], json!(owner.sub.to_string()));
    assert_eq!(
        one["deployed_by"]["username"],
        json!(owner.claims().username)
    );
    assert_eq!(one["client"], "platform-cli/0.1.0");
    assert_eq!(one["network"], "127.0.0.1");
    assert_eq!(one["message"], "Fix the rings");
    assert_eq!(one["revision"], "3f2a9c1b-dirty");

    for (query, agent) in [
        ("?message=", "x"),
        ("?message=a%0Ab", "x"),
        ("?message=a%E2%80%AEb", "x"),
        ("?revision=a+b", "x"),
        ("?other=1", "x"),
    ] {
        let answer = deploy(&owner, query, agent).await;
        assert_eq!(answer.problem(), "invalid-request", "{query}");
    }
    deploy(&owner, "", "Mozilla/5.0 (X11)").await;
    deploy(&owner, "", "<b>").await;
    let shown: Value = owner
        .get("/api/projects/game/environments/dev")
        .await
        .json();
    assert_eq!(shown["deployments"][0]["client"], Value::Null);
    assert_eq!(shown["deployments"][1]["client"], "a browser");
}

#[tokio::test]
async fn deployments_of_one_minute_differ_in_the_first_characters_of_their_ids() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let mut made = Vec::new();
    // The clock stands still all the time, and they are still listed in their order.
    for _ in 0..4 {
        let deployed: Value = deploy(&owner, "", "x").await.json();
        made.insert(0, deployed["short_id"].clone());
    }
    let shown: Value = owner
        .get("/api/projects/game/environments/dev")
        .await
        .json();
    let listed = shown["deployments"].as_array().unwrap();
    let listed: Vec<_> = listed.iter().map(|one| one["short_id"].clone()).collect();
    assert_eq!(listed, made);
    let unique: std::collections::BTreeSet<_> = made.iter().map(Value::to_string).collect();
    assert_eq!(unique.len(), 4, "{made:?}");
}

#[tokio::test]
async fn the_log_of_events_names_both_sides_of_a_roll_back() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let first: Value = deploy(&owner, "", "x").await.json();
    let second: Value = deploy(&owner, "", "x").await.json();
    let path = "/api/projects/game/environments/dev/rollback";
    let back = owner.post(path, json!({ "deployment": first["id"] })).await;
    assert_eq!(back.status, 200);
    let event = app.events(AuditQuery::of(owner.sub, 1)).await.remove(0);
    let side = |deployed: &Value| deployed["id"].as_str().unwrap().to_owned();
    let both = format!("dev {} in place of {}", side(&first), side(&second));
    assert_eq!(event.kind, AuditKind::RolledBack);
    assert_eq!(event.detail, Some(both));
}
