//! Deploy tokens: what is checked of a new one, and how one ends.

use platform_server::domain::audit::{Actor, AuditKind, AuditQuery};
use platform_server::domain::deploy_token::DeploySecret;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::caller::{Caller, archive};
use crate::support::{Answer, TestApp, send};

const TOKENS: &str = "/api/projects/game/tokens";
const DAY: i64 = 24 * 60 * 60 * 1_000;

async fn create(owner: &Caller<'_>, body: Value) -> Answer {
    owner.post(TOKENS, body).await
}

/// Creates a token that may do everything. Returns a caller with it, and its id.
async fn token<'a>(owner: &Caller<'a>, days: u16) -> (Caller<'a>, String) {
    let scopes = ["deploy-dev", "deploy-prod", "logs"];
    let answer = create(
        owner,
        json!({ "name": "ci", "scopes": scopes, "days": days }),
    )
    .await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let created: Value = answer.json();
    let text = |member: &str| created[member].as_str().unwrap().to_owned();
    (owner.with_token(&text("secret")), text("id"))
}

async fn listed(owner: &Caller<'_>) -> Value {
    let mut list: Value = owner.get(TOKENS).await.json();
    list["tokens"].take()
}

#[tokio::test]
async fn a_token_is_shown_once_and_kept_as_a_hash() {
    let app = TestApp::start().await;
    let owner = Caller::account(&app).await;
    owner.create("game").await;
    let body = json!({ "name": " GitHub Actions ", "scopes": ["logs", "deploy-dev", "logs"] });
    let created: Value = create(&owner, body).await.json();
    let secret = created["secret"].as_str().unwrap();
    assert!(secret.starts_with("pdt_"));
    assert_eq!(created["name"], "GitHub Actions");
    assert_eq!(created["scopes"], json!(["deploy-dev", "logs"]));
    let mut list = listed(&owner).await;
    let mut told = created.clone();
    told.as_object_mut().unwrap().remove("secret");
    assert_eq!(list[0].take(), told);
    let from = |member: &str| created[member].as_str().unwrap().parse::<String>().unwrap();
    let days = |text: String| platform_server::domain::date::parse_rfc3339(&text).unwrap();
    assert_eq!(
        days(from("expires_at")) - days(from("created_at")),
        90 * DAY
    );
    let kept = app.sql_text("SELECT hex(hash) FROM deploy_tokens");
    assert_eq!(kept.len(), 64);
}

#[tokio::test]
async fn a_token_that_could_not_be_meant_is_refused() {
    let app = TestApp::start().await;
    let owner = Caller::account(&app).await;
    owner.create("game").await;
    for (name, scopes, days) in [
        ("", json!(["logs"]), json!(90)),
        ("a\nb", json!(["logs"]), json!(90)),
        ("ci", json!([]), json!(90)),
        ("ci", json!(["everything"]), json!(90)),
        ("ci", json!(["logs"]), json!(0)),
        ("ci", json!(["logs"]), json!(366)),
    ] {
        let body = json!({ "name": name, "scopes": scopes, "days": days });
        let answer = create(&owner, body.clone()).await;
        assert_eq!(answer.problem(), "invalid-request", "{body}");
    }
    let one = |number: usize| json!({ "name": format!("ci {number}"), "scopes": ["logs"] });
    for number in 0..20 {
        let answer = create(&owner, one(number)).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{number}");
    }
    assert_eq!(create(&owner, one(0)).await.problem(), "invalid-request");
    let answer = create(&owner, one(20)).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert_eq!(answer.problem(), "quota-exceeded");
}

#[tokio::test]
async fn a_token_that_ended_says_why() {
    let app = TestApp::start().await;
    let owner = Caller::account(&app).await;
    owner.create("game").await;
    let (ci, id) = token(&owner, 2).await;
    let look = async || {
        let answer = ci.get("/api/projects/game/logs").await;
        let detail: Value = answer.json();
        (answer.status, detail["detail"].as_str().map(str::to_owned))
    };
    assert_eq!(look().await.0, StatusCode::OK);
    // A damaged one does not reach the store.
    let damaged = owner.with_token(&ci.token[..ci.token.len() - 1]);
    let answer = damaged.get("/api/projects/game/logs").await;
    assert_eq!(answer.problem(), "not-signed-in");
    let detail: Value = answer.json();
    let sentence = "This is not a complete deploy token. Copy it again, or create another one.";
    assert_eq!(detail["detail"], sentence);
    app.clock.advance(2 * DAY);
    let (status, detail) = look().await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert!(
        detail
            .unwrap()
            .starts_with("The deploy token “ci” expired on ")
    );
    let owner = owner.sign_in_again().await;
    assert_eq!(listed(&owner).await[0]["expired"], true);
    let revoked = send(owner.ask(Method::DELETE, &format!("{TOKENS}/{id}"))).await;
    assert_eq!(revoked.status, StatusCode::OK);
    let (status, detail) = look().await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert!(
        detail
            .unwrap()
            .starts_with("The deploy token “ci” was revoked on ")
    );
    assert_eq!(listed(&owner).await, json!([]));
    let again = send(owner.ask(Method::DELETE, &format!("{TOKENS}/{id}"))).await;
    assert_eq!(again.problem(), "not-found");
}

#[tokio::test]
async fn an_address_that_sends_many_unknown_tokens_has_to_wait() {
    let app = TestApp::start().await;
    let owner = Caller::account(&app).await;
    owner.create("game").await;
    let (ci, id) = token(&owner, 90).await;
    let look = async |caller: &Caller<'_>| caller.get("/api/projects/game/logs").await;
    assert_eq!(look(&ci).await.status, 200);
    let entropy = &*app.running.state.platform.entropy;
    let unknown = || owner.with_token(DeploySecret::generate(entropy.uuid_v4(), entropy).expose());
    let mut refused = look(&unknown()).await;
    for _ in 0..200 {
        if refused.problem() != "not-signed-in" {
            break;
        }
        refused = look(&unknown()).await;
    }
    assert_eq!(refused.problem(), "too-many-requests");
    assert_eq!(refused.header("retry-after"), Some("1"));
    // One that was valid before goes on, until it is revoked.
    assert_eq!(look(&ci).await.status, 200);
    let revoked = send(owner.ask(Method::DELETE, &format!("{TOKENS}/{id}"))).await;
    assert_eq!(revoked.status, StatusCode::OK);
    assert_eq!(look(&ci).await.problem(), "not-signed-in");
    assert_eq!(look(&ci).await.problem(), "too-many-requests");
    app.clock.advance(1_000);
    assert_eq!(look(&ci).await.problem(), "not-signed-in");
}

#[tokio::test]
async fn a_use_is_recorded_by_its_day() {
    let app = TestApp::start().await;
    let owner = Caller::account(&app).await;
    owner.create("game").await;
    let (ci, _) = token(&owner, 90).await;
    assert_eq!(listed(&owner).await[0]["used_on"], Value::Null);
    assert_eq!(ci.get("/api/projects/game/logs").await.status, 200);
    let first = listed(&owner).await[0]["used_on"].clone();
    assert_eq!(first.as_str().unwrap().len(), "2026-01-31".len());
    app.clock.advance(DAY);
    // Also if the call is one that the token does not allow.
    assert_eq!(ci.get("/api/projects/game").await.problem(), "not-allowed");
    let owner = owner.sign_in_again().await;
    assert_ne!(listed(&owner).await[0]["used_on"], first);
}

#[tokio::test]
async fn a_deploy_with_a_token_names_it() {
    let app = TestApp::start().await;
    let owner = Caller::account(&app).await;
    owner.create("game").await;
    let (ci, _) = token(&owner, 90).await;
    let deployed = ci.deploy("prod", archive(&[("index.html", b"x")])).await;
    assert_eq!(deployed.status, StatusCode::CREATED);
    let project: Value = owner.get("/api/projects/game").await.json();
    let deployment = &project["environments"]["prod"]["deployment"];
    assert_eq!(deployment["deploy_token"], "ci");
    assert_eq!(deployment["deployed_by"]["sub"], owner.sub.to_string());
    let events = app.events(AuditQuery::of(owner.sub, 10)).await;
    let event = events.iter().find(|one| one.kind == AuditKind::Deployed);
    let event = event.unwrap();
    assert_eq!(event.actor, Actor::Own);
    let detail = event.detail.as_deref().unwrap();
    assert!(detail.ends_with(" with the deploy token ci"), "{detail}");
}

#[tokio::test]
async fn tokens_of_a_suspended_or_earlier_owner_do_nothing() {
    let app = TestApp::start().await;
    let owner = Caller::account(&app).await;
    let admin = Caller::admin(&app).await;
    owner.create("game").await;
    let (ci, _) = token(&owner, 90).await;
    let files = || archive(&[("index.html", b"x")]);
    app.suspend(owner.sub, None).await;
    let refused = ci.deploy("dev", files()).await;
    assert_eq!(refused.problem(), "account-suspended");
    app.unsuspend(owner.sub).await;
    assert_eq!(ci.deploy("dev", files()).await.status, 201);
    let to = json!({ "owner": admin.sub });
    let given = admin.put("/api/admin/projects/game/owner", to).await;
    assert_eq!(given.status, StatusCode::OK);
    let refused = ci.deploy("dev", files()).await;
    assert_eq!(refused.problem(), "not-signed-in");
}

#[tokio::test]
async fn no_token_deploys_to_a_deleted_project() {
    let app = TestApp::start().await;
    let owner = Caller::account(&app).await;
    owner.create("game").await;
    let (ci, _) = token(&owner, 90).await;
    send(owner.ask(Method::DELETE, "/api/projects/game")).await;
    let refused = ci.deploy("dev", archive(&[("index.html", b"x")])).await;
    assert_eq!(refused.problem(), "project-disabled");
    // Its logs can be read as long as it can be restored.
    assert_eq!(ci.get("/api/projects/game/logs").await.status, 200);
}
