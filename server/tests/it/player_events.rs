//! Webhooks that are told about deleted players.

use platform_server::auth::deletions;
use platform_server::clock::Clock as _;
use platform_server::domain::audit::Actor;
use platform_server::domain::deletion::AskDeletion;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::caller::{Caller, archive};
use crate::support::{TestApp, send};
use crate::webhooks::{Receiver, WEBHOOK, eventually};

const DELIVERIES: &str = "/api/projects/game/webhook/deliveries";
const MINUTE: i64 = 60_000;

/// Deletes a new guest of the project `game` as the operator's command does, and runs the job. Returns the
/// guest's id.
async fn delete_guest(app: &TestApp) -> Uuid {
    delete_guest_of(app, "game").await
}

/// The same, of the game with this label.
async fn delete_guest_of(app: &TestApp, label: &str) -> Uuid {
    let token = app.request(reqwest::Method::POST, "auth", "/token");
    let token = send(token.header("origin", app.origin(label))).await;
    let sub: Uuid = token.claims().sub.parse().unwrap();
    let (store, now) = (&app.running.state.platform.store, app.clock.now());
    let ask = AskDeletion {
        player: sub,
        browser: None,
        at: now,
        by: Actor::Operator.into(),
        now,
    };
    store.ask_for_deletion(ask).await.unwrap();
    // The server's own job may have been faster.
    deletions::remove_due(&**store, now).await.unwrap();
    assert_eq!(store.find_player(sub).await.unwrap(), None);
    sub
}

async fn set(owner: &Caller<'_>, url: &str, events: &[&str]) -> Value {
    let set = owner
        .put(WEBHOOK, json!({ "url": url, "events": events }))
        .await;
    assert_eq!(set.status, 200, "{}", set.text());
    set.json()
}

async fn deliveries(owner: &Caller<'_>) -> Vec<Value> {
    let listed = owner.get(DELIVERIES).await;
    assert_eq!(listed.status, 200, "{}", listed.text());
    listed.json::<Value>()["deliveries"]
        .as_array()
        .unwrap()
        .clone()
}

#[tokio::test]
async fn a_webhook_that_asked_for_it_is_told_who_was_deleted() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "prod").await;
    let mut receiver = Receiver::start(&[500]).await;
    let set = set(&owner, &receiver.url, &["players"]).await;
    assert_eq!(set["webhook"]["events"], json!(["players"]));
    let secret = set["secret"].as_str().unwrap();
    assert_eq!(deliveries(&owner).await, [] as [Value; 0]);
    let sub = delete_guest(&app).await;
    let first = receiver.next().await;
    assert!(first.is_signed_with(secret));
    let event = first.event();
    assert_eq!(event["type"], "player.deleted");
    assert_eq!(event["data"]["sub"], sub.to_string());
    assert_eq!(event["data"]["merged_subs"], json!([]));
    eventually("no failure is listed", async || {
        let listed = deliveries(&owner).await;
        listed.len() == 1 && listed[0]["tries"] == 1 && listed[0]["last"]["status"] == 500
    })
    .await;
    // The log does not say who it was.
    let listed = owner.get(DELIVERIES).await;
    assert!(!listed.text().contains(&sub.to_string()));
    app.clock.advance(MINUTE);
    let again = receiver.next().await;
    assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
    assert_eq!(again.body, first.body);
    eventually("it is not delivered", async || {
        deliveries(&owner).await[0]["delivered_at"].is_string()
    })
    .await;

    let id = deliveries(&owner).await[0]["id"].as_i64().unwrap();
    let replay = format!("{DELIVERIES}/{id}/replay");
    let replayed = owner.post(&replay, json!({})).await;
    assert_eq!(replayed.status, 200, "{}", replayed.text());
    let third = receiver.next().await;
    assert_eq!(third.header("webhook-id"), first.header("webhook-id"));
    let missing = owner
        .post(&format!("{DELIVERIES}/999/replay"), json!({}))
        .await;
    assert_eq!(missing.problem(), "not-found");
    let wrong = owner
        .post(&format!("{DELIVERIES}/x/replay"), json!({}))
        .await;
    assert_eq!(wrong.problem(), "not-found");
}

#[tokio::test]
async fn a_webhook_is_told_of_the_players_who_had_a_token_of_its_game_alone() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "prod").await;
    let dev = owner.deploy("dev", archive(&[("index.html", b"x")])).await;
    assert_eq!(dev.status, 201, "{dev:?}");
    let mut receiver = Receiver::start(&[]).await;
    set(&owner, &receiver.url, &["players"]).await;
    // Players of another game, and of none.
    delete_guest_of(&app, "demo").await;
    assert_eq!(deliveries(&owner).await, [] as [Value; 0]);
    for label in ["game", "dev-game"] {
        let sub = delete_guest_of(&app, label).await.to_string();
        assert_eq!(receiver.next().await.event()["data"]["sub"], sub, "{label}");
    }
    assert_eq!(deliveries(&owner).await.len(), 2);
}

#[tokio::test]
async fn a_webhook_is_told_what_it_asked_for_and_nothing_else() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "prod").await;
    let mut receiver = Receiver::start(&[]).await;
    // As before, errors alone.
    let plain = owner.put(WEBHOOK, json!({ "url": receiver.url })).await;
    let plain: Value = plain.json();
    assert_eq!(plain["webhook"]["events"], json!(["errors"]));
    delete_guest(&app).await;
    assert_eq!(deliveries(&owner).await, [] as [Value; 0]);
    let both = set(&owner, &receiver.url, &["players", "errors"]).await;
    assert_eq!(both["webhook"]["events"], json!(["errors", "players"]));
    let sub = delete_guest(&app).await;
    assert_eq!(
        receiver.next().await.event()["data"]["sub"],
        sub.to_string()
    );
    for wrong in [
        json!([]),
        json!(["everything"]),
        json!(["errors", "errors", "players"]),
    ] {
        let body = json!({ "url": receiver.url, "events": wrong });
        let refused = owner.put(WEBHOOK, body).await;
        let is_double = wrong.as_array().unwrap().len() == 3;
        assert_eq!(refused.status == 200, is_double, "{wrong}");
    }
}
