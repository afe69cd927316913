//! The audit log is bounded, even if somebody repeats an action without end.

use platform_server::auth::refusal_log;
use platform_server::domain::audit::{AuditEvent, AuditKind, AuditQuery, GIVEN_MILLIS};
use platform_server::projects::settings_limits::Act;
use reqwest::Method;
use serde_json::{Value, json};

use crate::caller::{Caller, archive};
use crate::support::{Answer, TestApp, send};

const PROD: &str = "/api/projects/game/environments/prod";

async fn events(app: &TestApp, kind: Option<AuditKind>) -> Vec<AuditEvent> {
    app.events(AuditQuery {
        kind,
        ..AuditQuery::newest(1_000)
    })
    .await
}

/// Returns a caller with a game, and the response to its deployment.
async fn owner(app: &TestApp) -> (Caller<'_>, Value) {
    let (owner, deployed) = Caller::with_game(app, "prod").await;
    (owner, deployed["id"].clone())
}

#[tokio::test]
async fn what_is_set_again_unchanged_leaves_no_event_and_is_answered_as_before() {
    let app = TestApp::start().await;
    let (owner, deployment) = owner(&app).await;
    let write = async |what: usize| -> Answer {
        match what {
            0 => {
                let backend = json!({ "url": "http://127.0.0.1:4990", "paths": ["/api/"] });
                owner.put(&format!("{PROD}/backend"), backend).await
            }
            1 => {
                let isolated = json!({ "cross_origin_isolated": true });
                owner.put(&format!("{PROD}/isolation"), isolated).await
            }
            2 => {
                let frames = json!({ "ancestors": ["https://portal.example"] });
                owner.put(&format!("{PROD}/frames"), frames).await
            }
            3 => {
                let back = json!({ "deployment": deployment });
                owner.post(&format!("{PROD}/rollback"), back).await
            }
            _ => {
                let reason = json!({ "reason": "Bugs." });
                owner.post("/api/projects/game/disable", reason).await
            }
        }
    };
    // The time of a backend's response differs each time.
    let said = |answer: &Answer| {
        let mut said: Value = answer.json();
        said.as_object_mut().unwrap().remove("trial");
        said
    };
    for what in 0..5 {
        let first = write(what).await;
        assert_eq!(first.status, 200, "{}", first.text());
        let kept = events(&app, None).await;
        for _ in 0..3 {
            let again = write(what).await;
            assert_eq!(again.status, 200);
            assert_eq!(said(&again), said(&first));
        }
        assert_eq!(events(&app, None).await, kept, "of write {what}");
    }
}

#[tokio::test]
async fn a_project_is_changed_so_often_an_hour_and_an_administrator_still_takes_it_down() {
    let app = TestApp::start().await;
    let (owner, _) = owner(&app).await;
    let admin = Caller::admin(&app).await;
    let isolation = async |caller: &Caller<'_>, on: bool| {
        let isolated = json!({ "cross_origin_isolated": on });
        caller.put(&format!("{PROD}/isolation"), isolated).await
    };
    // Requests that are refused anyway are not counted.
    let wrong = owner.put(&format!("{PROD}/isolation"), json!({})).await;
    assert_eq!(wrong.status, 400);
    for count in 0..120 {
        let set = isolation(&owner, count % 2 == 0).await;
        assert_eq!(set.status, 200, "{count}");
    }
    let refused = isolation(&owner, true).await;
    assert_eq!(refused.problem(), "too-many-requests");
    assert_eq!(refused.header("retry-after"), Some("30"));
    let told = refused.json::<Value>()["detail"].to_string();
    assert!(told.contains("settings of this project"), "{told}");
    // Every way of changing the project back and forth is counted, but no other project. Taking the
    // game down is not counted: it must never wait.
    let disabled = owner.post("/api/projects/game/disable", json!({})).await;
    assert_eq!(disabled.status, 200);
    let enabled = owner.post("/api/projects/game/enable", json!({})).await;
    assert_eq!(enabled.problem(), "too-many-requests");
    let backend = json!({ "url": null });
    let backend = owner.put(&format!("{PROD}/backend"), backend).await;
    assert_eq!(backend.problem(), "too-many-requests");
    owner.create("other-game").await;
    let other = "/api/projects/other-game/disable";
    assert_eq!(owner.post(other, json!({})).await.status, 200);
    assert_eq!(isolation(&admin, true).await.status, 200);
    let down = admin.post("/api/projects/game/disable", json!({})).await;
    assert_eq!(down.status, 200, "{}", down.text());
    app.clock.advance(30_000);
    assert_eq!(isolation(&owner, false).await.status, 200);
}

#[tokio::test]
async fn a_project_is_deployed_so_often_an_hour_by_each_person_and_token() {
    let app = TestApp::start().await;
    let (owner, deployment) = owner(&app).await;
    let ada = owner.invite("developer").await;
    let admin = Caller::admin(&app).await;
    let body = json!({ "name": "ci", "scopes": ["deploy-prod", "deploy-dev"] });
    let token: Value = owner.post("/api/projects/game/tokens", body).await.json();
    let token = owner.with_token(token["secret"].as_str().unwrap());
    let files = || archive(&[("index.html", b"x")]);
    let preview = async |caller: &Caller<'_>| {
        let request = caller
            .ask(Method::PUT, "/api/projects/game/previews/rings")
            .header("content-type", "application/gzip");
        send(request.body(files())).await
    };
    // The deploy that made the game was one of 120.
    let limits = &app.running.state.projects.settings_limits;
    for _ in 0..117 {
        let counted = limits.count(Act::Deploy, "game", owner.sub).await;
        assert!(counted.is_ok());
    }
    assert_eq!(owner.deploy("prod", files()).await.status, 201);
    assert_eq!(preview(&owner).await.status, 201);
    let deployed = events(&app, Some(AuditKind::Deployed)).await;
    for refused in [owner.deploy("prod", files()).await, preview(&owner).await] {
        assert_eq!(refused.problem(), "too-many-requests");
        assert_eq!(refused.header("retry-after"), Some("30"));
        let told = refused.json::<Value>()["detail"].to_string();
        assert!(told.contains("deployed this project 120 times"), "{told}");
    }
    assert_eq!(events(&app, Some(AuditKind::Deployed)).await, deployed);
    let uploads = app.directory.path().join("uploads");
    assert_eq!(std::fs::read_dir(uploads).unwrap().count(), 0);
    // Nobody else waits, the owner's pipeline neither; and the owner may still undo a deploy.
    for caller in [&ada, &admin, &token] {
        assert_eq!(caller.deploy("prod", files()).await.status, 201);
        assert_eq!(preview(caller).await.status, 201);
    }
    let back = json!({ "deployment": deployment });
    let back = owner.post(&format!("{PROD}/rollback"), back).await;
    assert_eq!(back.status, 200);
    app.clock.advance(30_000);
    assert_eq!(owner.deploy("prod", files()).await.status, 201);
}

#[tokio::test]
async fn a_test_token_that_a_program_asks_for_over_and_over_is_told_once_an_hour() {
    let app = TestApp::start().await;
    let (owner, _) = owner(&app).await;
    let given = async |number: u8, times: usize| {
        for _ in 0..times {
            let player = json!({ "number": number });
            let token = owner.post("/api/projects/game/test-tokens", player).await;
            assert_eq!(token.status, 200, "{}", token.text());
        }
        events(&app, Some(AuditKind::TestTokenGiven)).await.len()
    };
    assert_eq!(given(1, 5).await, 1);
    assert_eq!(given(2, 5).await, 2);
    app.clock.advance(GIVEN_MILLIS);
    let owner = Caller::with_cookie(&app, Some(&owner.cookie)).await;
    let player = json!({ "number": 1 });
    let token = owner.post("/api/projects/game/test-tokens", player).await;
    assert_eq!(token.status, 200);
    assert_eq!(events(&app, Some(AuditKind::TestTokenGiven)).await.len(), 3);
}

#[tokio::test]
async fn refusals_that_are_too_many_to_be_kept_are_counted_in_the_log() {
    let app = TestApp::start().await;
    let player = Caller::account(&app).await;
    for _ in 0..50 {
        let refused = player.get("/api/admin/keys").await;
        assert_eq!(refused.problem(), "not-allowed");
    }
    let refusals = events(&app, Some(AuditKind::AdministrationRefused)).await;
    refusal_log::tell_left_out(&app.running.state.auth, true).await;
    let told = events(&app, Some(AuditKind::EventsLeftOut)).await;
    assert!(!told.is_empty());
    let left_out = |event: &AuditEvent| {
        assert_eq!(event.subject.as_deref(), Some("administration-refused"));
        assert_eq!((event.player, event.network.as_deref()), (None, None));
        event.detail.as_ref().unwrap().parse::<usize>().unwrap()
    };
    let left_out: usize = told.iter().map(left_out).sum();
    assert_eq!(refusals.len() + left_out, 50, "none is lost uncounted");
    // Nothing was left out since then.
    app.clock.advance(GIVEN_MILLIS);
    refusal_log::tell_left_out(&app.running.state.auth, true).await;
    let now = events(&app, Some(AuditKind::EventsLeftOut)).await;
    assert_eq!(now, told);
}
