//! Previews: what is shown at their addresses, whose settings and audience they have, and how they
//! end.

use std::sync::Arc;
use std::time::Duration;

use platform_protocol::names::Environment;
use platform_server::domain::audit::Actor;
use platform_server::domain::preview::NewPreview;
use platform_server::domain::project::Deployment;
use platform_server::domain::takedown::Change;
use platform_server::projects::deploy;
use reqwest::Method;
use serde_json::{Value, json};

use crate::caller::{Caller, archive};
use crate::support::{Answer, NOW, TestApp, send};

const PREVIEWS: &str = "/api/projects/game/previews";
const PAGE: &str = "text/html,application/xhtml+xml,*/*;q=0.8";
const DAY: i64 = 24 * 60 * 60 * 1_000;

/// Deploys a preview of the project `game` whose page is this text.
async fn put(owner: &Caller<'_>, name: &str, page: &str) -> Answer {
    let files = archive(&[
        ("index.html", page.as_bytes()),
        ("game-0a1b2c3d.js", page.as_bytes()),
    ]);
    let request = owner
        .ask(Method::PUT, &format!("{PREVIEWS}/{name}?message=Rings"))
        .header("content-type", "application/gzip");
    send(request.body(files)).await
}

async fn names(owner: &Caller<'_>) -> Vec<String> {
    let list: Value = owner.get(PREVIEWS).await.json();
    let previews = list["previews"].as_array().unwrap();
    let name = |one: &Value| one["name"].as_str().unwrap().to_owned();
    previews.iter().map(name).collect()
}

async fn page(app: &TestApp, label: &str) -> Answer {
    send(app.get(label, "/").header("accept", PAGE)).await
}

/// The problem in the response to a program.
async fn problem(app: &TestApp, label: &str) -> String {
    send(app.get(label, "/")).await.problem()
}

async fn token(app: &TestApp, label: &str) -> Answer {
    let request = app.request(Method::POST, "auth", "/token");
    send(request.header("origin", app.origin(label))).await
}

#[tokio::test]
async fn a_preview_has_its_own_address_and_the_audience_of_dev() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    owner
        .deploy("dev", archive(&[("index.html", b"dev")]))
        .await;
    assert_eq!(token(&app, "rings--game").await.problem(), "unknown-origin");
    let answer = put(&owner, "rings", "preview").await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let deployed: Value = answer.json();
    assert_eq!(deployed["url"], app.origin("rings--game"));
    assert_eq!(page(&app, "rings--game").await.text(), "preview");
    assert_eq!(page(&app, "RINGS--Game").await.text(), "preview");
    assert_eq!(page(&app, "dev-game").await.text(), "dev");
    let runtime = send(app.get("rings--game", "/__platform/runtime.js")).await;
    assert_eq!(runtime.status, 200);
    for label in ["rings", "rings--other", "other--game", "dev-rings--game"] {
        assert_eq!(page(&app, label).await.status, 404, "{label}");
    }
    let answer = token(&app, "rings--game").await;
    assert_eq!(answer.claims().aud, "game:dev-game");
    let origin = app.origin("rings--game");
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some(origin.as_str())
    );
    // A sign-in returns to it, and the environment has not changed.
    let login = app.get("auth", "/login").query(&[("redirect", &origin)]);
    assert_eq!(send(login).await.status, 200);
    let dev: Value = owner
        .get("/api/projects/game/environments/dev")
        .await
        .json();
    assert_eq!(dev["deployments"].as_array().unwrap().len(), 1);
    assert_ne!(dev["deployment"]["id"], deployed["id"]);
    let path = "/api/projects/game/environments/dev/rollback";
    let back = json!({ "deployment": deployed["id"] });
    assert_eq!(owner.post(path, back).await.problem(), "not-found");
}

#[tokio::test]
async fn what_a_preview_reports_is_the_dev_environments() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let deployed: Value = put(&owner, "rings", "preview").await.json();
    let token = app.new_player("rings--game").await.0.token();
    let bearer = format!("Bearer {token}");
    let report = |path: &str, body: Value| {
        app.request(Method::POST, "rings--game", path)
            .header("content-type", "application/json")
            .header("authorization", &bearer)
            .body(body.to_string())
    };
    let page = "AAAAAAAAAAAAAAAAAAAAAA";
    let beat = send(report("/__platform/heartbeat", json!({ "page": page }))).await;
    assert_eq!(beat.status, 204);
    let presence = &app.running.state.games.presence;
    assert_eq!(presence.playing("game:dev-game", NOW).await, Some(1));
    let record = json!({"time": NOW, "level": "error", "source": "console", "message": "oh"});
    let body = json!({ "page": page, "records": [record] });
    assert_eq!(send(report("/__platform/logs", body)).await.status, 204);
    let logs: Value = owner.get("/api/projects/game/logs?env=dev").await.json();
    assert_eq!(logs["records"][0]["message"], "oh");
    assert_eq!(logs["records"][0]["deployment"], deployed["id"]);
    // The position of an error is found in the files of the preview.
    let id = deployed["id"].as_str().unwrap();
    let path = format!("/api/projects/game/environments/dev/deployments/{id}/file?path=index.html");
    assert_eq!(owner.get(&path).await.text(), "preview");
}

#[tokio::test]
async fn a_preview_has_the_settings_of_dev() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    put(&owner, "rings", "preview").await;
    let set = async |path: &str, body: Value| {
        let path = format!("/api/projects/game/environments/dev/{path}");
        assert_eq!(owner.put(&path, body).await.status, 200);
    };
    set("frames", json!({ "ancestors": "platform" })).await;
    set("isolation", json!({ "cross_origin_isolated": true })).await;
    let shown = page(&app, "rings--game").await;
    let policy = shown.header("content-security-policy").unwrap();
    assert!(policy.starts_with("frame-ancestors 'self'"), "{policy}");
    assert_eq!(
        shown.header("cross-origin-opener-policy"),
        Some("same-origin")
    );
    let backend = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", backend.local_addr().unwrap());
    let answering = axum::Router::new().fallback(|headers: axum::http::HeaderMap| async move {
        headers["x-forwarded-host"].to_str().unwrap().to_owned()
    });
    tokio::spawn(async move { axum::serve(backend, answering).await });
    set("backend", json!({ "url": url, "paths": ["/api/"] })).await;
    let answer = send(app.get("rings--game", "/api/x")).await;
    let origin = app.origin("rings--game");
    assert_eq!(format!("http://{}", answer.text()), origin);
}

#[tokio::test]
async fn another_deploy_replaces_what_a_preview_shows_and_nothing_of_it_stays() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    put(&owner, "rings", "first").await;
    let script = "/game-0a1b2c3d.js";
    let first = send(app.get("rings--game", script)).await;
    assert_eq!((first.status.as_u16(), first.text()), (200, "first"));
    // A later deploy may change any file.
    assert_eq!(first.header("cache-control"), Some("no-cache"));
    let files = archive(&[("index.html", b"second")]);
    let request = owner
        .ask(Method::PUT, &format!("{PREVIEWS}/rings"))
        .header("content-type", "application/gzip");
    assert_eq!(send(request.body(files)).await.status, 201);
    assert_eq!(page(&app, "rings--game").await.text(), "second");
    assert_eq!(send(app.get("rings--game", script)).await.status, 404);
    // The sweep removes the files of the first, and none of the second.
    let state = &app.running.state;
    let swept = deploy::sweep(&*state.platform.store, &state.games.files);
    swept.await.unwrap();
    assert_eq!(page(&app, "rings--game").await.text(), "second");
    let room = async || {
        let project: Value = owner.get("/api/projects/game").await.json();
        project["files"]["bytes"].as_u64().unwrap()
    };
    assert!(room().await > 0);
    let path = format!("{PREVIEWS}/rings");
    let removed = send(owner.ask(Method::DELETE, &path)).await;
    assert_eq!(removed.status, 200);
    assert_eq!(removed.json::<Value>()["name"], "rings");
    assert_eq!(room().await, 0);
    assert_eq!(problem(&app, "rings--game").await, "unknown-host");
    let again = send(owner.ask(Method::DELETE, &path)).await;
    assert_eq!(again.problem(), "not-found");
}

/// What the server knows of the deployment that the preview `rings` shows.
fn shown_as_rings(app: &TestApp) -> Arc<Deployment> {
    let shown = app.running.state.games.catalogue.find("rings--game");
    shown.unwrap().deployment.clone().unwrap()
}

#[tokio::test]
async fn no_list_of_a_previews_files_is_in_memory_and_every_file_is_found() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let many: Vec<String> = (0..2_000)
        .map(|index| format!("levels/{index}.json"))
        .collect();
    let mut files: Vec<(&str, &[u8])> = vec![
        ("index.html", b"start"),
        ("404.html", b"lost"),
        ("a/index.html", b"folder"),
        ("b c.js", b"script"),
        ("b c.js.br", b"compressed"),
    ];
    files.extend(many.iter().map(|name| (name.as_str(), name.as_bytes())));
    let request = owner
        .ask(Method::PUT, &format!("{PREVIEWS}/rings"))
        .header("content-type", "application/gzip");
    assert_eq!(send(request.body(archive(&files))).await.status, 201);
    for (path, status, text) in [
        ("/", 200, "start"),
        ("/index.html", 200, "start"),
        ("/a/", 200, "folder"),
        ("/a", 308, ""),
        ("/b%20c.js", 200, "script"),
        ("/levels/1999.json", 200, "levels/1999.json"),
        ("/levels/2000.json", 404, "lost"),
        ("/%ff", 404, "lost"),
        ("/x%00y", 404, "lost"),
    ] {
        let answer = send(app.get("rings--game", path)).await;
        assert_eq!(
            (answer.status.as_u16(), answer.text()),
            (status, text),
            "{path}"
        );
        assert!(shown_as_rings(&app).files.is_empty(), "{path}");
    }
    let coded = app.get("rings--game", "/b%20c.js");
    let coded = send(coded.header("accept-encoding", "br")).await;
    assert_eq!(coded.header("content-encoding"), Some("br"));
    assert_eq!(coded.text(), "compressed");
}

#[tokio::test]
async fn a_preview_that_was_just_deployed_or_removed_elsewhere_shows_nothing_old() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    put(&owner, "rings", "first").await;
    let state = &app.running.state;
    // What another node writes is in the store before this one reads it.
    let store = &state.platform.store;
    let shown = shown_as_rings(&app);
    let mut second = store.find_deployment(shown.id).await.unwrap().unwrap();
    second.id = state.platform.entropy.uuid_v4();
    second.files.remove("game-0a1b2c3d.js");
    let id = second.id;
    let new = NewPreview {
        name: "rings".into(),
        deployment: second,
        most: 20,
    };
    store.put_preview(new, Actor::Own.into()).await.unwrap();
    let script = "/game-0a1b2c3d.js";
    assert_eq!(send(app.get("rings--game", script)).await.status, 404);
    assert_eq!(page(&app, "rings--game").await.text(), "first");
    assert_eq!(shown_as_rings(&app).id, id);
    let removed = store.remove_preview("game", "rings", Actor::Own.into(), NOW);
    assert!(removed.await.unwrap());
    // The server may have followed the change in this moment.
    let gone = problem(&app, "rings--game").await;
    assert!(["not-found", "unknown-host"].contains(&&*gone), "{gone}");
    assert_eq!(problem(&app, "rings--game").await, "unknown-host");
}

#[tokio::test]
async fn a_name_that_is_no_part_of_an_address_is_refused() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    for name in ["Rings", "a--b", "-a", "a_b", "xn", "a%2Fb", &"a".repeat(58)] {
        let answer = put(&owner, name, "x").await;
        assert_eq!(answer.problem(), "invalid-request", "{name}");
    }
    // With `--game`, this is a whole label of a host name.
    let longest = "a".repeat(57);
    assert_eq!(put(&owner, &longest, "x").await.status, 201);
    assert_eq!(page(&app, &format!("{longest}--game")).await.text(), "x");
}

#[tokio::test]
async fn the_address_of_an_older_project_stays_its_own() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    owner.create("older").await;
    app.sql("UPDATE projects SET slug = 'rings--game' WHERE slug = 'older'");
    app.running.state.hosting.refresh_all().await.unwrap();
    let answer = put(&owner, "rings", "x").await;
    assert_eq!(answer.problem(), "invalid-request", "{}", answer.text());
    assert_eq!(problem(&app, "rings--game").await, "not-found");
}

#[tokio::test]
async fn a_project_has_twenty_previews_and_learns_which_one_to_remove() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    for number in 0..20 {
        let answer = put(&owner, &format!("p{number}"), "x").await;
        assert_eq!(answer.status, 201, "{number}");
    }
    app.clock.advance(DAY);
    let owner = owner.sign_in_again().await;
    assert_eq!(put(&owner, "p0", "x").await.status, 201);
    let answer = put(&owner, "one-more", "x").await;
    assert_eq!(answer.problem(), "quota-exceeded");
    let detail: Value = answer.json();
    assert_eq!(
        detail["detail"],
        "This project has 20 previews, as many as it may have. Remove one first: p1 was used \
         longest ago, on 1 January 2026."
    );
    let removed = send(owner.ask(Method::DELETE, &format!("{PREVIEWS}/p1"))).await;
    assert_eq!(removed.status, 200);
    assert_eq!(put(&owner, "one-more", "x").await.status, 201);
    assert_eq!(names(&owner).await.len(), 20);
}

/// Polls the day of the last use of the preview `opened`.
async fn used_on(owner: &Caller<'_>, expected: &str) {
    let poll = async {
        loop {
            let list: Value = owner.get(PREVIEWS).await.json();
            let previews = list["previews"].as_array().unwrap();
            let opened = previews.iter().find(|one| one["name"] == "opened");
            if opened.unwrap()["used_on"] == expected {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), poll).await;
    waited.unwrap();
}

#[tokio::test]
async fn a_preview_ends_after_fourteen_days_in_which_nobody_opened_it() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    for name in ["opened", "unused"] {
        put(&owner, name, "x").await;
    }
    let state = &app.running.state;
    app.clock.advance(10 * DAY);
    let owner = owner.sign_in_again().await;
    // A program that fetches a file is no use.
    assert_eq!(send(app.get("opened--game", "/")).await.status, 200);
    assert_eq!(page(&app, "opened--game").await.status, 200);
    used_on(&owner, "2026-01-11").await;
    let list: Value = owner.get(PREVIEWS).await.json();
    let ends = |name: &str| {
        let previews = list["previews"].as_array().unwrap();
        let found = previews.iter().find(|one| one["name"] == name).unwrap();
        found["expires_at"].as_str().unwrap().to_owned()
    };
    assert!(ends("opened").starts_with("2026-01-26T00:00:00"));
    assert!(ends("unused").starts_with("2026-01-16T00:00:00"));
    app.clock.advance(5 * DAY - 1);
    let removed = deploy::remove_unused_previews(&state.projects).await;
    assert_eq!(removed.unwrap(), 0);
    app.clock.advance(1);
    let removed = deploy::remove_unused_previews(&state.projects).await;
    assert_eq!(removed.unwrap(), 1);
    let owner = owner.sign_in_again().await;
    assert_eq!(names(&owner).await, ["opened"]);
    assert_eq!(problem(&app, "unused--game").await, "unknown-host");
    assert_eq!(page(&app, "opened--game").await.status, 200);
}

#[tokio::test]
async fn a_game_that_is_taken_down_takes_its_previews_along() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    put(&owner, "rings", "x").await;
    let answer = owner.post("/api/projects/game/disable", json!({})).await;
    assert_eq!(answer.status, 200);
    assert_eq!(page(&app, "rings--game").await.status, 403);
    assert_eq!(
        token(&app, "rings--game").await.problem(),
        "project-disabled"
    );
    owner.post("/api/projects/game/enable", json!({})).await;
    assert_eq!(page(&app, "rings--game").await.status, 200);
    // So does a suspension of the owner.
    app.suspend(owner.sub, None).await;
    app.running.state.hosting.refresh_all().await.unwrap();
    assert_eq!(page(&app, "rings--game").await.status, 403);
    app.unsuspend(owner.sub).await;
    // A removed project has none.
    let store = &app.running.state.platform.store;
    let by = Actor::Operator.into();
    let deleted = store.change_standing("game", Change::Delete, by, NOW);
    deleted.await.unwrap();
    while store.remove_deleted(NOW, NOW).await.unwrap().is_some() {}
    app.running.state.hosting.refresh_all().await.unwrap();
    assert_eq!(problem(&app, "rings--game").await, "unknown-host");
}

#[tokio::test]
async fn a_deploy_token_for_dev_deploys_lists_and_removes_previews() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let body = json!({ "name": "ci", "scopes": ["deploy-dev"] });
    let created: Value = owner.post("/api/projects/game/tokens", body).await.json();
    let ci = owner.with_token(created["secret"].as_str().unwrap());
    assert_eq!(put(&ci, "rings", "x").await.status, 201);
    let list: Value = ci.get(PREVIEWS).await.json();
    let deployment = &list["previews"][0]["deployment"];
    assert_eq!(deployment["deploy_token"], "ci");
    assert_eq!(deployment["message"], "Rings");
    assert_eq!(list["most"], 20);
    let code: Value = ci.get(&format!("{PREVIEWS}/rings/qr")).await.json();
    assert_eq!(code["url"], app.origin("rings--game"));
    assert!(code["path"].as_str().unwrap().starts_with("M4 4h7v1h-7z"));
    let none = ci.get(&format!("{PREVIEWS}/none/qr")).await;
    assert_eq!(none.problem(), "not-found");
    let removed = send(ci.ask(Method::DELETE, &format!("{PREVIEWS}/rings"))).await;
    assert_eq!(removed.status, 200);
    let events = app
        .running
        .state
        .platform
        .store
        .list_audit_events(platform_server::domain::audit::AuditQuery::of(owner.sub, 2));
    let details: Vec<_> = events
        .await
        .unwrap()
        .into_iter()
        .map(|event| (event.kind.as_str(), event.detail.unwrap()))
        .collect();
    let id = deployment["id"].as_str().unwrap();
    let with = "with the deploy token ci";
    assert_eq!(
        details,
        [
            ("preview-removed", format!("rings {with}")),
            ("preview-deployed", format!("rings {id} {with}")),
        ]
    );
    assert_eq!(
        app.running
            .state
            .games
            .catalogue
            .all()
            .iter()
            .filter(|game| game.slug == "game" && game.environment == Environment::Dev)
            .count(),
        1
    );
}
