//! The server on a store in PostgreSQL, which several nodes can share.

use std::path::Path;

use platform_server::config::{Config, Secret};
use platform_server::domain::audit::AuditKind;
use platform_test_postgres::TestDatabase;
use serde_json::Value;

use crate::caller::{Caller, archive};
use crate::program::program;
use crate::support::{TestApp, send};

/// The settings of a node on `database`, which keeps deployed files in `files`.
pub(crate) fn settings(database: &TestDatabase, files: &Path) -> impl FnOnce(&mut Config) + use<> {
    let (url, files) = (Secret::new(database.url()), files.to_owned());
    move |config| {
        config.postgres = Some(url);
        config.files = Some(files);
    }
}

fn page(text: &str) -> Vec<u8> {
    archive(&[("index.html", text.as_bytes())])
}

#[tokio::test]
async fn a_guest_an_account_and_a_game_outlive_the_node() {
    let (database, files) = (TestDatabase::new(), tempfile::tempdir().unwrap());
    let app = TestApp::with(settings(&database, files.path())).await;
    let guest = send(app.post_token()).await;
    let (cookie, player) = (guest.cookie().unwrap().to_owned(), guest.claims().sub);
    let owner = Caller::account(&app).await;
    assert_eq!(owner.create("my-game").await.status, 201);
    let path = "/api/projects/my-game/environments/prod/deployment";
    let deployed = owner.ask(reqwest::Method::PUT, path);
    let deployed = deployed.header("content-type", "application/gzip");
    assert_eq!(send(deployed.body(page("one"))).await.status, 201);
    assert_eq!(send(app.get("my-game", "/")).await.text(), "one");

    let app = app.restart(settings(&database, files.path())).await;
    assert_eq!(send(app.get("my-game", "/")).await.text(), "one");
    let again = send(app.post_token().header("cookie", cookie)).await;
    assert_eq!(again.claims().sub, player);
    let known = app.events_of(AuditKind::Deployed).await;
    assert_eq!(known.len(), 1);
    drop(app);
}

#[tokio::test]
async fn two_nodes_have_one_key_set_one_demo_and_the_same_players() {
    let (database, files) = (TestDatabase::new(), tempfile::tempdir().unwrap());
    let (one, other) = tokio::join!(
        TestApp::with(settings(&database, files.path())),
        TestApp::with(settings(&database, files.path()))
    );
    let key_set = async |app: &TestApp| {
        let set = send(app.get("auth", "/.well-known/jwks.json")).await;
        set.json::<Value>()["keys"].clone()
    };
    assert_eq!(key_set(&one).await, key_set(&other).await);
    assert_eq!(key_set(&one).await.as_array().unwrap().len(), 1);
    let guest = send(one.post_token()).await;
    let cookie = guest.cookie().unwrap();
    let there = send(other.post_token().header("cookie", cookie)).await;
    assert_eq!(there.claims().sub, guest.claims().sub);
    for app in [&one, &other] {
        assert_eq!(send(app.get("demo", "/")).await.status, 200);
    }
}

#[test]
fn the_address_of_the_database_is_shown_without_its_password() {
    let data = tempfile::tempdir().unwrap();
    let mut command = program(data.path());
    command.env(
        "PLATFORM_DATABASE_URL",
        "postgres://platform:hunter2@127.0.0.1:1/x",
    );
    let shown = command.arg("config").output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("database_url = \"postgres://(hidden)\""),
        "{shown}"
    );
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_database_that_cannot_be_reached_stops_the_start_without_its_password() {
    let data = tempfile::tempdir().unwrap();
    let mut command = program(data.path());
    command.env(
        "PLATFORM_DATABASE_URL",
        "postgres://platform:hunter2@127.0.0.1:1/x",
    );
    let ended = command.arg("serve").output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(said.starts_with("platform-server: "), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn logs_of_their_own_database_need_a_store_in_postgres() {
    let data = tempfile::tempdir().unwrap();
    let mut command = program(data.path());
    command.env(
        "PLATFORM_LOGS_DATABASE_URL",
        "postgres://platform@127.0.0.1:1/logs",
    );
    let ended = command.arg("serve").output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        said.contains("logs_database_url: the embedded store keeps its logs"),
        "{said}"
    );
}
