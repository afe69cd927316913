//! Storage limits for deployments, and a disk that is almost full.

use std::sync::Arc;

use platform_server::platform::disk::ManualDisk;
use reqwest::Method;
use serde_json::{Value, json};

use crate::caller::{Caller, archive};
use crate::support::{Answer, TestApp, send};

const MIB: u64 = 1024 * 1024;

/// A game of about `bytes`, different from every other game.
fn game(letter: u8, bytes: usize) -> Vec<u8> {
    archive(&[
        ("index.html", b"<!doctype html>"),
        ("data.bin", &vec![letter; bytes]),
    ])
}

async fn deploy_to(caller: &Caller<'_>, slug: &str, archive: Vec<u8>) -> Answer {
    let path = format!("/api/projects/{slug}/environments/prod/deployment");
    let request = caller
        .ask(Method::PUT, &path)
        .header("content-type", "application/gzip");
    send(request.body(archive)).await
}

#[tokio::test]
async fn a_project_keeps_no_more_than_it_may_and_earlier_deployments_go_first() {
    let app = TestApp::with(|config| config.project_mib = 3).await;
    let owner = Caller::with_project(&app).await;
    let mib = usize::try_from(MIB).unwrap();
    for letter in [1, 2] {
        assert_eq!(owner.deploy("prod", game(letter, mib)).await.status, 201);
    }
    let project: Value = owner.get("/api/projects/game").await.json();
    assert_eq!(project["files"]["quota_bytes"], json!(3 * MIB));
    let kept = project["files"]["bytes"].as_u64().unwrap();
    assert!((2 * MIB..2 * MIB + 32_768).contains(&kept), "{kept}");
    // Deploying the same content again takes almost no space.
    assert_eq!(owner.deploy("dev", game(2, mib)).await.status, 201);
    let again: Value = owner.get("/api/projects/game").await.json();
    let more = again["files"]["bytes"].as_u64().unwrap() - kept;
    assert!(more < 1_024, "{more}");

    // For a third deployment, the first has to be removed; the current one stays.
    let third = owner.deploy("prod", game(3, mib)).await;
    assert_eq!(third.status, 201, "{}", third.text());
    let warnings = &third.json::<Value>()["warnings"];
    let codes: Vec<&str> = warnings
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning["code"].as_str().unwrap())
        .collect();
    assert!(codes.contains(&"deployments-removed"), "{codes:?}");

    // A deployment that cannot fit is refused, and nothing is removed for it.
    let refused = owner.deploy("prod", game(4, 3 * mib)).await;
    assert_eq!(
        (refused.status.as_u16(), &*refused.problem()),
        (409, "quota-exceeded")
    );
    let detail = refused.json::<Value>()["detail"].to_string();
    assert!(detail.contains("the limit of 3 MiB"), "{detail}");
    let shown: Value = owner.get("/api/projects/game").await.json();
    let prod = &shown["environments"]["prod"]["deployments"];
    assert_eq!(prod.as_array().unwrap().len(), 2, "{prod}");
}

#[tokio::test]
async fn all_projects_of_an_account_share_its_room() {
    let app = TestApp::with(|config| config.account_mib = 3).await;
    let owner = Caller::account(&app).await;
    let other = Caller::account(&app).await;
    let mib = usize::try_from(MIB).unwrap();
    for (caller, slug) in [(&owner, "one"), (&owner, "two"), (&other, "three")] {
        caller.create(slug).await;
    }
    assert_eq!(deploy_to(&owner, "one", game(1, 2 * mib)).await.status, 201);
    let refused = deploy_to(&owner, "two", game(2, mib)).await;
    assert_eq!(refused.problem(), "quota-exceeded");
    let detail = refused.json::<Value>()["detail"].to_string();
    assert!(detail.contains("delete a project"), "{detail}");
    assert_eq!(deploy_to(&other, "three", game(2, mib)).await.status, 201);
    // Removing deployments frees space.
    let state = &app.running.state;
    send(owner.ask(Method::DELETE, "/api/projects/one")).await;
    assert_eq!(deploy_to(&owner, "two", game(2, mib)).await.status, 409);
    app.clock.advance(platform_server::domain::takedown::GRACE);
    platform_server::projects::removal::remove_deleted(&state.projects)
        .await
        .unwrap();
    let owner = Caller::with_cookie(&app, Some(&owner.cookie)).await;
    assert_eq!(deploy_to(&owner, "two", game(2, mib)).await.status, 201);
}

#[tokio::test]
async fn what_was_deployed_before_is_counted_as_well() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    assert_eq!(owner.deploy("prod", game(1, 100_000)).await.status, 201);
    app.sql("UPDATE projects SET kept_bytes = NULL");
    app.sweep_files().await;
    let kept = app
        .running
        .state
        .platform
        .store
        .find_room("game")
        .await
        .unwrap();
    assert!(kept > 100_000, "{kept}");
}

#[tokio::test]
async fn on_a_disk_that_is_almost_full_nothing_new_is_kept_and_play_goes_on() {
    let disk = Arc::new(ManualDisk::new(1_000 * MIB));
    let app = TestApp::on_disk(disk.clone(), |config| config.disk_floor_mib = 500).await;
    let owner = Caller::with_project(&app).await;
    assert_eq!(owner.deploy("prod", game(1, 10)).await.status, 201);
    let record = json!({"page": "A".repeat(22), "records": [
        {"time": 1, "level": "info", "source": "console", "message": "a"}]});
    let log = || {
        let request = app.request(Method::POST, "game", "/__platform/logs");
        send(request.json(&record))
    };
    assert_eq!(log().await.status, 204);

    disk.set(499 * MIB);
    for refused in [owner.deploy("prod", game(2, 10)).await, log().await] {
        assert_eq!(
            (refused.status.as_u16(), &*refused.problem()),
            (503, "unavailable")
        );
        assert_eq!(refused.header("retry-after"), Some("60"));
        let detail = refused.json::<Value>()["detail"].to_string();
        assert!(detail.contains("disk is almost full"), "{detail}");
    }
    assert_eq!(send(app.get("game", "/")).await.status, 200);
    assert_eq!(send(app.post_token()).await.status, 200);

    disk.set(501 * MIB);
    assert_eq!(owner.deploy("prod", game(2, 10)).await.status, 201);
    assert_eq!(log().await.status, 204);
    // A deployment that would leave less free disk space than the floor is refused after it was
    // unpacked.
    let mib = usize::try_from(MIB).unwrap();
    let refused = owner.deploy("prod", game(3, 2 * mib)).await;
    assert_eq!(refused.problem(), "unavailable");
}

#[tokio::test]
async fn the_demo_is_there_also_on_a_disk_that_is_almost_full() {
    let disk = Arc::new(ManualDisk::new(MIB));
    let app = TestApp::on_disk(disk, |config| config.disk_floor_mib = 500).await;
    assert_eq!(send(app.get("demo", "/")).await.status, 200);
}
