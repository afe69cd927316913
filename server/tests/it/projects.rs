//! The project API: projects, deploys, test players, backends.

use platform_protocol::claims::PrincipalKind;
use platform_test_ports::ReservedPort;
use reqwest::Method;
use serde_json::{Value, json};

use crate::caller::{Caller, archive};
use crate::listing::png;
use crate::support::{TestApp, send};

const PAGE: &str = r#"<head><script defer src="/__platform/runtime.js"></script></head>"#;
const DEV: &str = "/api/projects/game/environments/dev";

#[tokio::test]
async fn a_project_belongs_to_who_made_it() {
    let app = TestApp::start().await;
    let owner = Caller::account(&app).await;
    let made = owner.create("game").await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.header("location"), Some("/api/projects/game"));
    let project: Value = made.json();
    assert_eq!(project["slug"], "game");
    assert_eq!(project["created_at"], "2026-01-01T00:00:00Z");
    let dev = &project["environments"]["dev"];
    assert_eq!(dev["url"], app.origin("dev-game"));
    assert_eq!(dev["audience"], "game:dev-game");
    assert_eq!(dev["deployment"], Value::Null);
    assert_eq!(dev["backend"], Value::Null);
    let auth = app.origin("auth");
    let variables = json!({
        "AUTH_ISSUER": auth,
        "AUTH_AUDIENCE": "game:dev-game",
        "AUTH_JWKS_URL": format!("{auth}/.well-known/jwks.json"),
    });
    assert_eq!(dev["variables"], variables);
    for (slug, detail) in [
        ("game", "You already have a project with this name."),
        ("demo", "This project name is taken. Please choose another."),
    ] {
        let taken = owner.create(slug).await;
        assert_eq!(taken.problem(), "slug-taken");
        assert_eq!(taken.json::<Value>()["detail"], detail);
    }
    for slug in ["", "ab", "dev-x", "auth", "Game", "a_b"] {
        assert_eq!(
            owner.create(slug).await.problem(),
            "invalid-request",
            "{slug}"
        );
    }
    let list: Value = owner.get("/api/projects").await.json();
    assert_eq!(list["projects"].as_array().unwrap().len(), 1);

    let other = Caller::account(&app).await;
    let list: Value = other.get("/api/projects").await.json();
    assert_eq!(list, json!({ "projects": [], "is_admin": false }));
    for path in [
        "/api/projects/game",
        DEV,
        "/api/projects/game/logs",
        "/api/projects/demo",
    ] {
        assert_eq!(other.get(path).await.problem(), "not-allowed", "{path}");
    }
    assert_eq!(other.get("/api/projects/none").await.problem(), "not-found");
    let stranger = send(app.get("", "/api/projects")).await;
    assert_eq!(stranger.problem(), "not-signed-in");
    assert_eq!(stranger.header("www-authenticate"), Some("Bearer"));
    let guest = Caller::guest(&app).await;
    assert_eq!(guest.create("other").await.problem(), "not-allowed");
}

#[tokio::test]
async fn a_token_of_a_game_opens_no_project() {
    let app = TestApp::start().await;
    let token = send(app.post_token()).await.token();
    let request = app.get("", "/api/projects").bearer_auth(token);
    assert_eq!(send(request).await.problem(), "not-signed-in");
}

#[tokio::test]
async fn an_empty_page_is_warned_of_again_and_again() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let made = owner.deploy("dev", archive(&[("index.html", b"")])).await;
    let made: Value = made.json();
    assert_eq!(made["warnings"][0]["code"], "runtime-not-loaded");
    let shown: Value = owner.get(DEV).await.json();
    assert_eq!(shown["warnings"], made["warnings"]);
}

#[tokio::test]
async fn a_deploy_is_played_at_once_and_taken_back() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let first = owner
        .deploy(
            "dev",
            archive(&[
                ("./index.html", PAGE.as_bytes()),
                ("main.3f2a9c1b.js", b"one"),
            ]),
        )
        .await;
    assert_eq!(first.status, 201, "{first:?}");
    let first: Value = first.json();
    assert_eq!(first["url"], app.origin("dev-game"));
    assert_eq!(first["files"], 2);
    assert_eq!(first["bytes"], PAGE.len() + 3);
    assert_eq!(first["warnings"], json!([]));
    assert_eq!(send(app.get("dev-game", "/")).await.text(), PAGE);
    assert_eq!(send(app.get("game", "/")).await.problem(), "not-found");

    let second = owner
        .deploy("dev", archive(&[("index.html", b"<body>")]))
        .await;
    let second: Value = second.json();
    assert_eq!(second["warnings"][0]["code"], "runtime-not-loaded");
    assert_eq!(send(app.get("dev-game", "/")).await.text(), "<body>");
    let shown = owner.get(DEV).await;
    let shown: Value = shown.json();
    assert_eq!(
        shown["warnings"], second["warnings"],
        "they can be read later"
    );
    // The previous page can still load files that are named by their content.
    let kept = send(app.get("dev-game", "/main.3f2a9c1b.js")).await;
    assert_eq!((kept.status.as_u16(), kept.text()), (200, "one"));

    let back = json!({ "deployment": first["id"] });
    let environment = owner.post(&format!("{DEV}/rollback"), back).await;
    assert_eq!(environment.status, 200, "{environment:?}");
    let environment: Value = environment.json();
    assert_eq!(environment["deployment"]["id"], first["id"]);
    assert_eq!(environment["warnings"], json!([]));
    assert_eq!(environment["deployments"].as_array().unwrap().len(), 2);
    assert_eq!(send(app.get("dev-game", "/")).await.text(), PAGE);
    let elsewhere = json!({ "deployment": first["id"] });
    let prod = owner
        .post("/api/projects/game/environments/prod/rollback", elsewhere)
        .await;
    assert_eq!(prod.problem(), "not-found");
}

#[tokio::test]
async fn a_project_is_rolled_back_only_so_often_within_an_hour() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let deployed = owner.deploy("dev", archive(&[("index.html", b"a")])).await;
    let back = json!({ "deployment": deployed.json::<Value>()["id"] });
    let mut refused = None;
    for _ in 0..=120 {
        let answer = owner.post(&format!("{DEV}/rollback"), back.clone()).await;
        if answer.status != 200 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.unwrap();
    assert_eq!(refused.problem(), "too-many-requests");
    let wait: i64 = refused.header("retry-after").unwrap().parse().unwrap();
    app.clock.advance(wait * 1_000);
    let answer = owner.post(&format!("{DEV}/rollback"), back).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn an_inspection_is_kept_with_its_deployment_and_made_up_for_where_an_older_version_deployed()
{
    const LISTED: &[u8] = b"<head><title>Firefly</title>\
        <meta property=og:image content=cover.png>";
    let app = TestApp::start().await;
    let cookie = app.sign_in("owner", None).await;
    let files = app.directory.path().join("files");
    let owner = Caller::with_cookie(&app, Some(&cookie)).await;
    owner.create("game").await;
    let archive = archive(&[("index.html", LISTED), ("cover.png", &png(16, 9))]);
    assert_eq!(owner.deploy("prod", archive).await.status, 201);
    // The page of an inspected deployment is not read again.
    let aside = app.directory.path().join("aside");
    std::fs::rename(&files, &aside).unwrap();
    let app = app.restart(|config| config.demo = false).await;
    assert_listed(&app, &cookie).await;
    // An older version stores no inspection.
    let database = rusqlite::Connection::open(app.directory.path().join("platform.db")).unwrap();
    let changed = database.execute("UPDATE deployments SET inspection = NULL", []);
    assert!(changed.unwrap() > 0);
    std::fs::remove_dir_all(&files).unwrap();
    std::fs::rename(&aside, &files).unwrap();
    let app = app.restart(|config| config.demo = false).await;
    assert_listed(&app, &cookie).await;
    let kept = database.query_row(
        "SELECT count(*) FROM deployments d JOIN projects p ON p.id = d.project
         WHERE p.slug = 'game' AND d.inspection IS NOT NULL",
        [],
        |row| row.get::<_, i64>(0),
    );
    assert_eq!(kept.unwrap(), 1);
}

/// Asserts that the list shows the game with the title and image of its page, and that its owner
/// sees the warnings.
async fn assert_listed(app: &TestApp, cookie: &str) {
    let ranking: Value = send(app.get("", "/api/ranking")).await.json();
    let games = ranking["games"].as_array().unwrap();
    let game = games.iter().find(|game| game["slug"] == "game").unwrap();
    assert_eq!(game["title"], "Firefly");
    let picture = format!("{}/cover.png", app.origin("game"));
    assert_eq!(game["picture"], picture);
    let owner = Caller::with_cookie(app, Some(cookie)).await;
    let shown = owner.get("/api/projects/game/environments/prod").await;
    let shown: Value = shown.json();
    assert_eq!(shown["warnings"][0]["code"], "runtime-not-loaded");
}

#[tokio::test]
async fn a_project_whose_page_was_lost_is_shown_all_the_same() {
    let app = TestApp::start().await;
    let cookie = app.sign_in("owner", None).await;
    let owner = Caller::with_cookie(&app, Some(&cookie)).await;
    owner.create("game").await;
    let deployed = owner.deploy("dev", archive(&[("index.html", b"x")])).await;
    assert_eq!(deployed.status, 201);
    let TestApp {
        running, directory, ..
    } = app;
    running.stop().await.unwrap();
    std::fs::remove_dir_all(directory.path().join("files")).unwrap();
    let app = TestApp::in_directory(directory, |_| {}).await;
    let owner = Caller::with_cookie(&app, Some(&cookie)).await;
    for path in ["/api/projects", "/api/projects/game", DEV] {
        assert_eq!(owner.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_refused_archive_changes_nothing() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    owner
        .deploy("prod", archive(&[("index.html", b"good")]))
        .await;
    let whole = archive(&[("index.html", b"bad")]);
    for bad in [
        archive(&[]),
        archive(&[("main.js", b"x")]),
        archive(&[("index.html", b"bad"), ("__platform/x", b"x")]),
        archive(&[("index.html", b"bad"), ("index.html", b"twice")]),
        whole[..whole.len() - 4].to_vec(),
        b"no archive".to_vec(),
        Vec::new(),
    ] {
        let answer = owner.deploy("prod", bad).await;
        assert_eq!(answer.problem(), "deployment-invalid");
        assert_eq!(answer.status, 422);
    }
    assert_eq!(send(app.get("game", "/")).await.text(), "good");
    let uploads = std::fs::read_dir(app.directory.path().join("uploads")).unwrap();
    assert_eq!(uploads.count(), 0, "nothing of a refused archive stays");

    let path = "/api/projects/game/environments/prod/deployment";
    let zip = owner
        .ask(Method::PUT, path)
        .header("content-type", "application/zip")
        .body("x");
    assert_eq!(send(zip).await.problem(), "unsupported-media-type");
    let other = Caller::account(&app).await;
    assert_eq!(other.deploy("prod", whole).await.problem(), "not-allowed");
    let nowhere = owner.deploy("test", archive(&[("index.html", b"x")])).await;
    assert_eq!(nowhere.problem(), "not-found");
}

#[tokio::test]
async fn the_last_ten_deployments_are_kept_with_their_files() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let mut ids = Vec::new();
    for index in 0..13 {
        app.clock.advance(1_000);
        let content = format!("deploy {index}");
        let deployed = owner
            .deploy("dev", archive(&[("index.html", content.as_bytes())]))
            .await;
        ids.push(deployed.json::<Value>()["id"].clone());
    }
    let state = &app.running.state;
    let swept =
        platform_server::projects::deploy::sweep(&*state.platform.store, &state.games.files);
    swept.await.unwrap();
    let environment: Value = owner.get(DEV).await.json();
    let kept: Vec<&Value> = environment["deployments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|deployment| &deployment["id"])
        .collect();
    let expected: Vec<&Value> = ids.iter().rev().take(10).collect();
    assert_eq!(kept, expected);
    let names = state.games.files.list().await.unwrap();
    let unreferenced = state
        .platform
        .store
        .list_unreferenced_files(names.clone())
        .await;
    assert_eq!(unreferenced.unwrap(), Vec::<String>::new());
    let gone = json!({ "deployment": ids[0] });
    let gone = owner.post(&format!("{DEV}/rollback"), gone).await;
    assert_eq!(gone.problem(), "not-found");
    let back = json!({ "deployment": ids[3] });
    assert_eq!(
        owner.post(&format!("{DEV}/rollback"), back).await.status,
        200
    );
    assert_eq!(send(app.get("dev-game", "/")).await.text(), "deploy 3");
}

#[tokio::test]
async fn test_players_are_the_same_every_time() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let path = "/api/projects/game/test-tokens";
    let early = owner.post(path, json!({ "number": 1 })).await;
    assert_eq!(early.problem(), "not-deployed");
    owner.deploy("dev", archive(&[("index.html", b"x")])).await;
    let user = owner.post(path, json!({ "number": 3 })).await;
    let claims = user.claims();
    assert_eq!(claims.username, "test-user-3");
    assert_eq!(claims.aud, "game:dev-game");
    assert_eq!(claims.principal_kind, PrincipalKind::TestUser);
    assert!(!claims.is_anon);
    assert_eq!(claims.exp - claims.iat, 1_800);
    let user: Value = user.json();
    assert_eq!(user["sub"], claims.sub);
    assert_eq!(user["expires_in"], 1_800);
    let again = owner
        .post(path, json!({ "number": 3, "guest": false }))
        .await;
    assert_eq!(again.claims().sub, claims.sub);
    let guest = owner
        .post(path, json!({ "number": 3, "guest": true }))
        .await;
    assert_eq!(guest.claims().username, "test-guest-3");
    assert!(guest.claims().is_anon);
    assert_ne!(guest.claims().sub, claims.sub);
    for bad in [
        json!({ "number": 0 }),
        json!({ "number": 11 }),
        json!({ "number": "3" }),
        json!({ "number": 3, "more": 1 }),
        json!({}),
    ] {
        assert_eq!(owner.post(path, bad).await.problem(), "invalid-request");
    }
    let other = Caller::account(&app).await;
    let refused = other.post(path, json!({ "number": 3 })).await;
    assert_eq!(refused.problem(), "not-allowed");
}

#[tokio::test]
async fn an_environment_gets_a_backend_and_isolation() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "dev").await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = axum::Router::new().fallback(|| async { "the backend" });
    tokio::spawn(axum::serve(listener, router).into_future());
    let path = format!("{DEV}/backend");
    let set = owner
        .put(&path, json!({ "url": url, "paths": ["/api/", "/ws/"] }))
        .await;
    assert_eq!(set.status, 200, "{set:?}");
    assert_eq!(set.json::<Value>()["backend"]["url"], url);
    assert_eq!(
        send(app.get("dev-game", "/api/x")).await.text(),
        "the backend"
    );
    assert_eq!(
        send(app.get("dev-game", "/ws/x")).await.text(),
        "the backend"
    );
    assert_eq!(send(app.get("dev-game", "/")).await.text(), "x");
    // An incomplete body removes nothing.
    let half = owner.put(&path, json!({})).await;
    assert_eq!(half.problem(), "invalid-request");
    assert_eq!(
        send(app.get("dev-game", "/api/x")).await.text(),
        "the backend"
    );
    let gone = owner.put(&path, json!({ "url": null })).await;
    assert_eq!(gone.json::<Value>()["backend"], Value::Null);
    assert_eq!(
        send(app.get("dev-game", "/api/x")).await.problem(),
        "not-found"
    );
    let bad = owner.put(&path, json!({ "url": "ftp://x" })).await;
    assert_eq!(bad.problem(), "invalid-request");

    let path = format!("{DEV}/isolation");
    owner
        .put(&path, json!({ "cross_origin_isolated": true }))
        .await;
    let page = send(app.get("dev-game", "/")).await;
    assert_eq!(
        page.header("cross-origin-opener-policy"),
        Some("same-origin")
    );
    assert_eq!(
        page.header("cross-origin-embedder-policy"),
        Some("require-corp")
    );
}

#[tokio::test]
async fn an_environment_has_its_requests_traced_if_it_asks_for_it() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "dev").await;
    let script = async || send(app.get("dev-game", "/__platform/runtime.js")).await;
    let before = script().await;
    assert!(!before.text().contains("traceparent"), "nobody pays for it");
    let path = format!("{DEV}/tracing");
    let on = owner.put(&path, json!({ "trace_requests": true })).await;
    assert_eq!(on.json::<Value>()["trace_requests"], true, "{on:?}");
    let traced = script().await;
    assert!(traced.text().contains("traceparent"));
    assert_ne!(traced.header("etag"), before.header("etag"));
    let other = send(app.get("demo", "/__platform/runtime.js")).await;
    assert_eq!(other.body, before.body);
    let off = owner.put(&path, json!({ "trace_requests": false })).await;
    assert_eq!(off.json::<Value>()["trace_requests"], false);
    assert_eq!(script().await.body, before.body);
    let half = owner.put(&path, json!({})).await;
    assert_eq!(half.problem(), "invalid-request");
}

#[tokio::test]
async fn a_game_says_who_may_show_it_in_a_frame() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "dev").await;
    let path = format!("{DEV}/frames");
    let policy = async || {
        let page = send(app.get("dev-game", "/")).await;
        page.header("content-security-policy").map(str::to_owned)
    };
    assert_eq!(policy().await, None, "anyone, unless it is set");
    let console = app.origin("").replace("://.", "://");
    let portal = "https://portal.example";
    for (ancestors, shown, expected) in [
        (
            json!("platform"),
            json!("platform"),
            Some(format!("frame-ancestors 'self' {console}")),
        ),
        (
            json!(["https://Portal.example/", "https://b.example:8443"]),
            json!([portal, "https://b.example:8443"]),
            Some(format!(
                "frame-ancestors 'self' {console} {portal} https://b.example:8443"
            )),
        ),
        (json!("any"), json!("any"), None),
    ] {
        let set = owner.put(&path, json!({ "ancestors": ancestors })).await;
        assert_eq!(set.status, 200);
        assert_eq!(set.json::<Value>()["frame_ancestors"], shown);
        assert_eq!(policy().await, expected);
    }
    for bad in [
        json!({}),
        json!({ "ancestors": null }),
        json!({ "ancestors": "self" }),
        json!({ "ancestors": [] }),
        json!({ "ancestors": ["https://*.example"] }),
        json!({ "ancestors": ["http://portal.example"] }),
        json!({ "ancestors": ["https://portal.example; script-src *"] }),
        json!({ "ancestors": vec![portal; 21] }),
        json!({ "ancestors": "any", "more": 1 }),
    ] {
        let answer = owner.put(&path, bad.clone()).await;
        assert_eq!(answer.problem(), "invalid-request", "{bad}");
    }
}

#[tokio::test]
async fn a_new_project_has_no_slug_that_looks_like_the_platforms_own() {
    let app = TestApp::start().await;
    let owner = Caller::account(&app).await;
    for slug in ["login", "support", "wpad", "mta-sts", "a--b"] {
        let request = owner.ask(Method::POST, "/api/projects");
        let answer = send(request.json(&json!({ "slug": slug }))).await;
        assert_eq!(answer.problem(), "invalid-request", "{slug}");
    }
    // A project that already has such a slug can still be deployed to.
    owner.create("game").await;
    app.sql("UPDATE projects SET slug = 'login' WHERE slug = 'game'");
    let deployed = owner.ask(
        Method::PUT,
        "/api/projects/login/environments/dev/deployment",
    );
    let deployed = deployed.header("content-type", "application/gzip");
    let deployed = send(deployed.body(archive(&[("index.html", b"x")]))).await;
    assert_eq!(deployed.status, 201);
    assert_eq!(send(app.get("dev-login", "/")).await.status, 200);
    assert_eq!(send(app.get("", "/build/login")).await.status, 200);
}

#[tokio::test]
async fn the_description_is_there_for_everybody() {
    let app = TestApp::start().await;
    let answer = send(app.get("", "/api/openapi.json")).await;
    let description: Value = answer.json();
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"));
    assert!(description["paths"]["/api/projects"]["post"].is_object());
}

#[tokio::test]
async fn an_account_owns_as_many_projects_as_the_settings_say() {
    let app = TestApp::with(|config| config.projects_per_account = 2).await;
    let caller = Caller::account(&app).await;
    let other = Caller::account(&app).await;
    let create = async |caller: &Caller<'_>, slug: &str| {
        let request = caller.ask(Method::POST, "/api/projects");
        send(request.json(&json!({ "slug": slug }))).await
    };
    // Sequential requests would not test simultaneous ones.
    let all = ["one", "two", "three", "four", "five"].map(|slug| create(&caller, slug));
    let answers = futures_util::future::join_all(all).await;
    let made = answers.iter().filter(|answer| answer.status == 201);
    assert_eq!(made.count(), 2);
    for refused in answers.iter().filter(|answer| answer.status != 201) {
        assert_eq!(refused.problem(), "not-allowed");
        assert!(refused.text().contains("2 projects"), "{}", refused.text());
    }
    assert_eq!(create(&other, "six").await.status, 201);
}

#[tokio::test]
async fn a_suspended_developer_reads_the_reason_with_the_next_call() {
    let app = TestApp::start().await;
    let session = app.sign_in("ada", None).await;
    let token = app.console_token(&session).await;
    let ask = async || send(app.get("", "/api/projects").bearer_auth(token.token())).await;
    assert_eq!(ask().await.status, 200);
    // An operator's command, about which no node has been told.
    let player = token.claims().sub.parse().unwrap();
    app.suspend(player, Some("You sold lights.")).await;
    let refused = ask().await;
    assert_eq!(refused.problem(), "account-suspended");
    assert!(refused.text().contains("You sold lights."), "{refused:?}");
    app.unsuspend(player).await;
    assert_eq!(ask().await.status, 200);
}

#[tokio::test]
async fn a_file_of_a_kept_deployment_is_for_its_developer_as_it_was() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let first: Value = owner
        .deploy(
            "dev",
            archive(&[("index.html", b"one"), ("a.js.map", b"{}")]),
        )
        .await
        .json();
    owner
        .deploy("dev", archive(&[("index.html", b"two")]))
        .await;
    let id = first["id"].as_str().unwrap();
    let file = |environment: &str, path: &str| {
        format!("/api/projects/game/environments/{environment}/deployments/{id}/file?path={path}")
    };
    for (path, text) in [("index.html", "one"), ("a.js.map", "{}")] {
        let answer = owner.get(&file("dev", path)).await;
        assert_eq!(
            (answer.status.as_u16(), answer.text()),
            (200, text),
            "{path}"
        );
        assert_eq!(
            answer.header("content-type"),
            Some("application/octet-stream")
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(
            answer.header("content-security-policy"),
            Some("default-src 'none'; sandbox")
        );
    }
    for missing in [
        file("dev", "b.js"),
        file("prod", "index.html"),
        file("dev", "../a"),
    ] {
        assert_eq!(
            owner.get(&missing).await.problem(),
            "not-found",
            "{missing}"
        );
    }
    let none = file("dev", "index.html").replace("?path=index.html", "");
    assert_eq!(owner.get(&none).await.problem(), "invalid-request");
}

#[tokio::test]
async fn a_backend_is_tried_when_it_is_saved() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let backend = axum::Router::new().route("/api/", axum::routing::get(|| async { "here" }));
    tokio::spawn(async move { axum::serve(listener, backend).await });
    let path = "/api/projects/game/environments/dev/backend";
    let set = async |url: Option<String>| -> Value {
        owner.put(path, json!({ "url": url })).await.json()
    };
    let there = set(Some(format!("http://{address}"))).await;
    assert_eq!(there["trial"]["reached"], true, "{there}");
    assert_eq!(there["trial"]["status"], 200);
    let closed = ReservedPort::take().unwrap();
    let nobody = closed.address();
    let away = set(Some(format!("http://{nobody}"))).await;
    assert_eq!(away["trial"]["reached"], false, "{away}");
    assert_eq!(
        away["backend"]["url"],
        format!("http://{nobody}"),
        "it is saved all the same"
    );
    let sentence = away["trial"]["sentence"].as_str().unwrap();
    assert!(sentence.contains("does not respond"), "{sentence}");
    assert_eq!(set(None).await["trial"], Value::Null);
    let demo = Caller::admin(&app).await.get("/api/projects/demo").await;
    let demo: Value = demo.json();
    assert_eq!(
        demo["environments"]["prod"]["built_in_backend"], true,
        "{demo}"
    );
    assert_eq!(demo["environments"]["prod"]["backend"], Value::Null);
}
