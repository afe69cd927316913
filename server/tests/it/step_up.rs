//! Administration requires a recent sign-in in a browser; refusals are recorded.

use platform_server::domain::audit::{AuditKind, AuditQuery};
use platform_server::domain::console_token::FRESH_MILLIS;
use serde_json::{Value, json};

use crate::browser::{Browser, hidden_field};
use crate::caller::{Caller, archive};
use crate::device::{account, signed_in};
use crate::support::{Answer, TestApp, send};

/// Requests of an administrator, and requests for somebody else's project.
const ADMINISTRATION: [&str; 4] = [
    "/api/admin/keys",
    "/api/admin/projects",
    "/api/projects/game",
    "/api/projects/game/logs",
];

/// Creates an administrator with an account, and another player with a game.
async fn administrator<'a>(app: &'a TestApp, name: &str) -> (Browser<'a>, Caller<'a>) {
    Caller::account(app).await.create("game").await;
    let browser = account(app, name).await;
    let admin = Caller::of(app, &browser).await;
    admin.grant().await;
    (browser, admin)
}

/// Signs in again, as the page that asks for it does.
async fn sign_in_again(app: &TestApp, browser: &mut Browser<'_>, name: &str) -> Answer {
    let (auth, back) = (
        app.origin("auth"),
        app.running.state.platform.origin.to_string(),
    );
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("redirect", &format!("{back}/admin"))
        .append_pair("again", "1")
        .finish();
    let page = browser.get(&format!("{auth}/login?{query}")).await;
    assert!(page.text().contains("Sign in again"), "{}", page.text());
    assert_eq!(hidden_field(&page, "again"), "1");
    let (token, redirect) = (
        browser.form_token().to_owned(),
        hidden_field(&page, "redirect"),
    );
    let fields = [
        ("csrf", token.as_str()),
        ("redirect", redirect.as_str()),
        ("again", "1"),
    ];
    let chosen = browser.post(&format!("{auth}/login/demo"), &fields).await;
    let asked = chosen.location_query();
    assert_eq!(asked["prompt"], "login");
    assert_eq!(asked["max_age"], "0");
    let page = browser.get(&chosen.location()).await;
    let request = hidden_field(&page, "request");
    let fields = [
        ("request", request.as_str()),
        ("name", name),
        ("action", "sign-in"),
    ];
    let answered = browser
        .post(&format!("{auth}/demo-provider/authorize"), &fields)
        .await;
    browser.get(&answered.location()).await
}

#[tokio::test]
async fn administration_wants_a_sign_in_of_the_last_fifteen_minutes() {
    let app = TestApp::start().await;
    let (mut browser, admin) = administrator(&app, "Ada").await;
    admin.create("own-game").await;
    for path in ADMINISTRATION {
        assert_eq!(admin.get(path).await.status, 200, "{path}");
    }
    app.clock.advance(FRESH_MILLIS + 1);
    let admin = Caller::of(&app, &browser).await;
    for path in ADMINISTRATION {
        let refused = admin.get(path).await;
        assert_eq!(refused.problem(), "step-up-required", "{path}");
        assert_eq!(refused.status, 403);
    }
    let archive = archive(&[("index.html", b"x")]);
    let refused = admin.deploy("prod", archive).await;
    assert_eq!(refused.problem(), "step-up-required");
    let shown = admin.get("/api/projects/own-game").await;
    assert_eq!(shown.status, 200, "what is one's own is no administration");
    let page = send(app.get("auth", "/problems/step-up-required")).await;
    assert!(page.text().contains("15 minutes"), "{}", page.text());

    let back = sign_in_again(&app, &mut browser, "Ada").await;
    assert!(back.location().ends_with("/admin"), "{back:?}");
    let admin = Caller::of(&app, &browser).await;
    for path in ADMINISTRATION {
        assert_eq!(admin.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_device_never_administers_whoever_let_it_in() {
    let app = TestApp::start().await;
    let (mut browser, admin) = administrator(&app, "Ada").await;
    let given = signed_in(&app, &mut browser).await;
    let device = admin.with_token(&given.token());
    for path in ADMINISTRATION {
        let refused = device.get(path).await;
        assert_eq!(refused.problem(), "step-up-required", "{path}");
    }
    let refused = device
        .deploy("prod", archive(&[("index.html", b"x")]))
        .await;
    assert_eq!(refused.problem(), "step-up-required");
    let store = &app.running.state.platform.store;
    let owner = store.find_project("game").await.unwrap().unwrap().owner;
    let owner = store.find_player(owner.unwrap()).await.unwrap().unwrap();
    let told = refused.json::<Value>()["detail"].to_string();
    let whose = format!("belongs to {}", owner.username);
    assert!(told.contains(&whose) && told.contains("device"), "{told}");
    // The device may access their own projects.
    assert_eq!(device.create("own-game").await.status, 201);
}

#[tokio::test]
async fn what_was_refused_is_kept_with_where_it_came_from_and_not_without_end() {
    let app = TestApp::start().await;
    let player = Caller::account(&app).await;
    let refused = player.get("/api/admin/keys").await;
    assert_eq!(refused.problem(), "not-allowed");
    let kept = app.events_of(AuditKind::AdministrationRefused).await;
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].player, Some(player.sub));
    assert_eq!(kept[0].subject.as_deref(), Some("not-allowed"));
    assert_eq!(kept[0].detail.as_deref(), Some("GET /api/admin/keys"));
    assert_eq!(kept[0].network.as_deref(), Some("127.0.0.1"));
    assert_eq!(kept[0].request.as_deref(), refused.header("x-request-id"));

    let mut browser = Browser::new(&app);
    let callback = format!(
        "{}/callback/demo?code=made-up&state=made-up",
        app.origin("auth")
    );
    let failed = browser.get(&callback).await;
    assert_eq!(failed.setback().0, "expired");
    let kept = app.events_of(AuditKind::SignInFailed).await;
    assert_eq!(kept.len(), 1);
    assert_eq!(
        (kept[0].player, kept[0].subject.as_deref()),
        (None, Some("demo"))
    );
    assert_eq!(kept[0].request.as_deref(), failed.header("x-request-id"));
    for _ in 0..50 {
        browser.get(&callback).await;
    }
    let kept = app.events_of(AuditKind::SignInFailed).await.len();
    assert!((2..=20).contains(&kept), "{kept} of one network are kept");

    // None of these events is kept for long; events of changes stay.
    app.clock.advance(91 * 24 * 60 * 60 * 1_000);
    app.sweep_sessions().await;
    for kind in [AuditKind::SignInFailed, AuditKind::AdministrationRefused] {
        assert_eq!(app.events_of(kind).await, []);
    }
    assert_eq!(app.events_of(AuditKind::KeyAdded).await.len(), 1);
}

#[tokio::test]
async fn what_is_done_is_kept_with_what_it_was_and_where_it_came_from() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "Ann").await;
    let ann = Caller::of(&app, &browser).await;
    signed_in(&app, &mut browser).await;
    ann.create("game").await;
    let deployed = ann.deploy("prod", archive(&[("index.html", b"x")])).await;
    let id = deployed.json::<Value>()["id"].as_str().unwrap().to_owned();
    let newer = ann.deploy("prod", archive(&[("index.html", b"y")])).await;
    let newer = newer.json::<Value>()["id"].as_str().unwrap().to_owned();
    let environment = "/api/projects/game/environments/prod";
    let back = json!({ "deployment": id });
    let back = ann.post(&format!("{environment}/rollback"), back).await;
    assert_eq!(back.status, 200);
    let backend = json!({ "url": "http://127.0.0.1:4990", "paths": ["/api/"] });
    let backend = ann.put(&format!("{environment}/backend"), backend).await;
    assert_eq!(backend.status, 200);
    let given = ann
        .post("/api/projects/game/test-tokens", json!({ "number": 2 }))
        .await;
    assert_eq!(given.status, 200);
    app.sign_out(&ann.cookie).await;
    let events = app.events(AuditQuery::of(ann.sub, 100)).await;
    let told: Vec<_> = events
        .into_iter()
        .map(|event| {
            assert_eq!(event.network.as_deref(), Some("127.0.0.1"), "{event:?}");
            assert!(event.request.is_some(), "{event:?}");
            (event.kind.as_str(), event.detail.unwrap_or_default())
        })
        .collect();
    let of_prod = |what: &str| format!("prod {what}");
    let expected = [
        ("signed-out", String::new()),
        ("test-token-given", "test-user-2".to_owned()),
        ("backend-changed", of_prod("http://127.0.0.1:4990")),
        ("rolled-back", of_prod(&format!("{id} in place of {newer}"))),
        ("deployed", of_prod(&newer)),
        ("deployed", of_prod(&id)),
        ("project-created", String::new()),
        ("device-approved", "127.0.0.1".to_owned()),
        ("created", String::new()),
    ];
    assert_eq!(told, expected);
}
