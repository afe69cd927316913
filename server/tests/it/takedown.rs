//! Projects that are disabled, deleted, restored and removed, and the responses of their addresses.

use platform_protocol::names::Environment;
use platform_server::domain::audit::Actor;
use platform_server::domain::takedown::{Change, FORGETTING, GRACE};
use platform_server::projects::removal;
use reqwest::Method;
use serde_json::{Value, json};

use crate::caller::{Caller, archive};
use crate::support::{Answer, TestApp, send};

/// The `Accept` header of browsers when a person opens an address.
const PAGE: &str = "text/html,application/xhtml+xml,*/*;q=0.8";
const FORGET: Option<&str> = Some("\"cache\", \"storage\"");

async fn with_game(app: &TestApp) -> Caller<'_> {
    let owner = Caller::with_project(app).await;
    for environment in Environment::ALL {
        let files = archive(&[("index.html", b"<!doctype html>game")]);
        let deployed = owner.deploy(environment.as_str(), files).await;
        assert_eq!(deployed.status, 201, "{}", deployed.text());
    }
    owner
}

async fn open(app: &TestApp, label: &str) -> Answer {
    send(app.get(label, "/").header("accept", PAGE)).await
}

/// Calls `POST /token` from the game's own page.
async fn token(app: &TestApp, label: &str) -> Answer {
    let request = app
        .request(Method::POST, "auth", "/token")
        .header("origin", app.origin(label));
    send(request).await
}

fn state(answer: &Answer) -> String {
    let project: Value = answer.json();
    project["standing"]["state"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_disabled_game_answers_a_problem_to_everything_and_gets_no_token() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    let shown = owner.get("/api/projects/game").await;
    assert_eq!(state(&shown), "live");
    let disabled = owner
        .post("/api/projects/game/disable", json!({ "reason": "Bugs." }))
        .await;
    assert_eq!(
        (disabled.status.as_u16(), &*state(&disabled)),
        (200, "disabled")
    );
    let standing = &disabled.json::<Value>()["standing"];
    assert_eq!(standing["by"], "owner");
    assert_eq!(standing["reason"], "Bugs.");

    let guests = app.count_players();
    for label in ["game", "dev-game"] {
        for (method, path) in [
            (Method::GET, "/"),
            (Method::GET, "/nothing.png"),
            (Method::GET, "/__platform/runtime.js"),
            (Method::POST, "/__platform/heartbeat"),
            (Method::POST, "/__platform/logs"),
            (Method::POST, "/api/me"),
        ] {
            let answer = send(app.request(method, label, path)).await;
            assert_eq!(answer.problem(), "project-disabled", "{label}{path}");
            assert_eq!(answer.status, 403);
            assert_eq!(answer.header("cache-control"), Some("no-store"));
        }
        let page = open(&app, label).await;
        assert_eq!(page.status, 403);
        assert_eq!(
            page.header("content-type"),
            Some("text/html; charset=utf-8")
        );
        assert!(page.text().contains("taken down"), "{}", page.text());
        let refused = token(&app, label).await;
        assert_eq!(refused.problem(), "project-disabled");
        // Its open pages can read the reason.
        let origin = app.origin(label);
        assert_eq!(
            refused.header("access-control-allow-origin"),
            Some(origin.as_str())
        );
    }
    assert_eq!(app.count_players(), guests, "no guest was made");
    let test = owner.post("/api/projects/game/test-tokens", json!({ "number": 1 }));
    assert_eq!(test.await.problem(), "project-disabled");
    let ranking: Value = send(app.get("", "/api/ranking")).await.json();
    assert!(!ranking.to_string().contains("\"game\""), "{ranking}");

    // It can be fixed in the meantime.
    let files = archive(&[("index.html", b"<!doctype html>mended")]);
    assert_eq!(owner.deploy("prod", files).await.status, 201);
    let enabled = send(owner.ask(Method::POST, "/api/projects/game/enable")).await;
    assert_eq!(state(&enabled), "live");
    assert_eq!(open(&app, "game").await.text(), "<!doctype html>mended");
    assert_eq!(token(&app, "game").await.status, 200);
}

#[tokio::test]
async fn an_owner_does_not_enable_what_an_administrator_disabled() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    let admin = Caller::admin(&app).await;
    let reason = json!({ "reason": "It steals passwords." });
    let disabled = admin.post("/api/projects/game/disable", reason).await;
    assert_eq!(disabled.json::<Value>()["standing"]["by"], "platform");
    // Neither by enabling it, nor by disabling it again as its owner.
    owner.post("/api/projects/game/disable", json!({})).await;
    let enable = || send(owner.ask(Method::POST, "/api/projects/game/enable"));
    assert_eq!(enable().await.problem(), "not-allowed");
    let read: Value = owner.get("/api/projects/game").await.json();
    assert_eq!(read["standing"]["reason"], "It steals passwords.");
    // Nor by deleting and restoring it.
    send(owner.ask(Method::DELETE, "/api/projects/game")).await;
    let restored = send(owner.ask(Method::POST, "/api/projects/game/restore")).await;
    assert_eq!(state(&restored), "disabled");
    assert_eq!(open(&app, "game").await.status, 403);

    let listed: Value = admin.get("/api/admin/projects").await.json();
    let game = listed["projects"].as_array().unwrap().iter();
    let mut game = game.filter(|project| project["slug"] == "game");
    assert_eq!(game.next().unwrap()["standing"]["state"], "disabled");
    let enabled = send(admin.ask(Method::POST, "/api/projects/game/enable")).await;
    assert_eq!(state(&enabled), "live");
    assert_eq!(open(&app, "game").await.status, 200);
}

#[tokio::test]
async fn a_suspended_owners_games_are_not_shown() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    let admin = Caller::admin(&app).await;
    let path = format!("/api/admin/players/{}/suspension", owner.sub);
    admin.put(&path, json!({ "reason": null })).await;
    let page = open(&app, "game").await;
    assert_eq!(
        (page.status.as_u16(), page.header("clear-site-data")),
        (403, FORGET)
    );
    assert_eq!(token(&app, "game").await.problem(), "project-disabled");
    send(admin.ask(Method::DELETE, &path)).await;
    assert_eq!(open(&app, "game").await.status, 200);
}

#[tokio::test]
async fn a_project_whose_owner_is_suspended_is_said_to_be_down_for_that() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    let admin = Caller::admin(&app).await;
    let listed = async || {
        let all: Value = admin.get("/api/admin/projects").await.json();
        let mut all = all["projects"].as_array().unwrap().iter();
        let game = all.find(|project| project["slug"] == "game");
        game.unwrap()["standing"].clone()
    };
    let told = async || {
        let project: Value = admin.get("/api/projects/game").await.json();
        assert_eq!(project["standing"], listed().await);
        project["standing"].clone()
    };
    assert_eq!(told().await["state"], "live");
    let path = format!("/api/admin/players/{}/suspension", owner.sub);
    admin.put(&path, json!({ "reason": "Spam." })).await;
    let down = told().await;
    assert_eq!(down["state"], "owner-suspended");
    assert_eq!(down["by"], "platform");
    assert!(down["since"].is_string(), "{down}");
    assert_eq!(
        (&down["reason"], &down["removed_at"]),
        (&Value::Null, &Value::Null)
    );
    // The project's own state takes precedence over its owner's, which then shows again.
    for (method, path, expected) in [
        (Method::POST, "/api/projects/game/disable", "disabled"),
        (Method::DELETE, "/api/projects/game", "deleted"),
        (Method::POST, "/api/projects/game/restore", "disabled"),
        (Method::POST, "/api/projects/game/enable", "owner-suspended"),
    ] {
        let request = admin.ask(method, path);
        let changed = match expected {
            "disabled" if path.ends_with("disable") => send(request.json(&json!({}))).await,
            _ => send(request).await,
        };
        assert_eq!(state(&changed), expected, "{path}: {changed:?}");
    }
    send(admin.ask(Method::DELETE, &path)).await;
    assert_eq!(told().await["state"], "live");
}

#[tokio::test]
async fn a_service_worker_whose_script_is_gone_unregisters_itself() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    let files = archive(&[
        ("index.html", b"<!doctype html>game"),
        ("sw.js", b"self.onfetch = () => {};"),
        ("sw.3f2a9c1b.js", b"self.onfetch = () => {};"),
    ]);
    assert_eq!(owner.deploy("prod", files).await.status, 201);
    let script = |path: &'static str| {
        let request = app.get("game", path);
        send(request.header("service-worker", "script"))
    };
    assert_eq!(script("/sw.js").await.text(), "self.onfetch = () => {};");

    // The next deployment has no worker, and an old file with a hash in its name is not served as a
    // worker either, though a page gets it.
    let files = archive(&[("index.html", b"<!doctype html>game")]);
    assert_eq!(owner.deploy("prod", files).await.status, 201);
    assert_eq!(send(app.get("game", "/sw.js")).await.status, 404);
    assert_eq!(send(app.get("game", "/sw.3f2a9c1b.js")).await.status, 200);
    let mut gone = vec![script("/sw.js").await, script("/sw.3f2a9c1b.js").await];
    let disabled = owner.post("/api/projects/game/disable", json!({})).await;
    assert_eq!(disabled.status, 200);
    for path in ["/sw.js", "/index.html", "/api/worker.js"] {
        gone.push(script(path).await);
    }
    for answer in gone {
        assert_eq!(answer.status, 200);
        let header = |name| answer.header(name);
        assert_eq!(
            header("content-type"),
            Some("text/javascript; charset=utf-8")
        );
        assert_eq!(header("cache-control"), Some("no-store"));
        assert_eq!(header("service-worker-allowed"), Some("/"));
        assert!(answer.text().contains("self.registration.unregister()"));
        assert!(!answer.text().contains("clients.claim"));
    }
}

#[tokio::test]
async fn browsers_forget_what_a_game_stored_after_it_was_taken_down_or_transferred() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    assert_eq!(open(&app, "game").await.header("clear-site-data"), None);
    owner.post("/api/projects/game/disable", json!({})).await;
    for _ in 0..2 {
        assert_eq!(open(&app, "game").await.header("clear-site-data"), FORGET);
    }
    send(owner.ask(Method::POST, "/api/projects/game/enable")).await;
    // Players who return after that delete their data once, and keep what they store then.
    let first = open(&app, "game").await;
    assert_eq!(first.header("clear-site-data"), FORGET);
    let cookie = first.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let again = || {
        let request = app.get("game", "/").header("accept", PAGE);
        send(request.header("cookie", &cookie))
    };
    assert_eq!(again().await.header("clear-site-data"), None);
    // A request for a file is not a navigation.
    let file = send(app.get("game", "/index.html").header("accept", "*/*")).await;
    assert_eq!(file.header("clear-site-data"), None);

    app.clock.advance(1_000);
    let admin = Caller::admin(&app).await;
    let other = Caller::account(&app).await;
    let transferred = admin.put(
        "/api/admin/projects/game/owner",
        json!({ "owner": other.sub }),
    );
    assert_eq!(transferred.await.status, 200);
    let page = again().await;
    assert_eq!(
        (page.status.as_u16(), page.header("clear-site-data")),
        (200, FORGET)
    );
    app.clock.advance(FORGETTING);
    assert_eq!(open(&app, "game").await.header("clear-site-data"), None);
}

#[tokio::test]
async fn a_deleted_project_is_restored_or_removed_with_its_files() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    let running = &app.running.state;
    let deleted = send(owner.ask(Method::DELETE, "/api/projects/game")).await;
    assert_eq!(
        (deleted.status.as_u16(), &*state(&deleted)),
        (200, "deleted")
    );
    let standing = &deleted.json::<Value>()["standing"];
    assert_eq!(standing["since"], "2026-01-01T00:00:00Z");
    assert_eq!(standing["removed_at"], "2026-01-08T00:00:00Z");
    assert_eq!(open(&app, "game").await.status, 403);
    let files = archive(&[("index.html", b"<!doctype html>new")]);
    assert_eq!(
        owner.deploy("prod", files).await.problem(),
        "project-disabled"
    );

    app.clock.advance(GRACE - 1);
    assert_eq!(removal::remove_deleted(&running.projects).await.unwrap(), 0);
    let owner = Caller::with_cookie(&app, Some(&owner.cookie)).await;
    let restored = send(owner.ask(Method::POST, "/api/projects/game/restore")).await;
    assert_eq!(state(&restored), "live");
    assert_eq!(open(&app, "game").await.text(), "<!doctype html>game");

    let record = json!({ "time": 1, "level": "error", "source": "console", "message": "lost" });
    let records = json!({ "page": "AAECAwQFBgcICQoLDA0ODw", "records": [record] });
    let told = app.request(Method::POST, "game", "/__platform/logs");
    assert_eq!(send(told.json(&records)).await.status, 204);
    assert!(running.platform.store.log_bytes("game").await.unwrap() > 0);
    send(owner.ask(Method::DELETE, "/api/projects/game")).await;
    let before = running.games.files.list().await.unwrap().len();
    app.clock.advance(GRACE);
    // The server may be removing it at the same time.
    removal::remove_deleted(&running.projects).await.unwrap();
    assert_eq!(
        running.platform.store.find_project("game").await.unwrap(),
        None
    );
    assert_eq!(running.platform.store.log_bytes("game").await.unwrap(), 0);
    app.sweep_files().await;
    assert_eq!(running.games.files.list().await.unwrap().len(), before - 1);
    let owner = Caller::with_cookie(&app, Some(&owner.cookie)).await;
    assert_eq!(owner.get("/api/projects/game").await.problem(), "not-found");
    assert_eq!(owner.create("game").await.problem(), "slug-taken");
    let page = open(&app, "game").await;
    assert_eq!(
        (page.status.as_u16(), page.header("clear-site-data")),
        (403, FORGET)
    );
}

#[tokio::test]
async fn a_picture_that_runs_scripts_is_served_by_its_own_deployment_alone() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    let files = archive(&[
        ("index.html", b"<!doctype html>game"),
        ("a.3f2a9c1b.svg", b"<svg/>"),
        ("a.3f2a9c1b.xml", b"<a/>"),
        ("a.3f2a9c1b.png", b"png"),
    ]);
    assert_eq!(owner.deploy("prod", files).await.status, 201);
    let status = async |ending: &str| {
        let path = format!("/a.3f2a9c1b.{ending}");
        send(app.get("game", &path)).await.status.as_u16()
    };
    for ending in ["svg", "xml", "png"] {
        assert_eq!(status(ending).await, 200, "{ending}");
    }
    let files = archive(&[("index.html", b"<!doctype html>game")]);
    assert_eq!(owner.deploy("prod", files).await.status, 201);
    assert_eq!(status("svg").await, 404);
    assert_eq!(status("xml").await, 404);
    assert_eq!(status("png").await, 200);
}

#[tokio::test]
async fn a_platform_whose_demo_was_removed_starts_without_it() {
    let app = TestApp::start().await;
    let state = &app.running.state;
    let deleted =
        state
            .platform
            .store
            .change_standing("demo", Change::Delete, Actor::Operator.into(), 1);
    deleted.await.unwrap();
    removal::remove_deleted(&state.projects).await.unwrap();
    assert_eq!(
        state.platform.store.find_project("demo").await.unwrap(),
        None
    );
    let app = app.restart(|_| {}).await;
    assert_eq!(open(&app, "demo").await.status, 403);
}
