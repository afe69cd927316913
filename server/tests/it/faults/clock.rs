//! A clock that somebody sets: back by an hour, or a year ahead.

use std::net::SocketAddr;
use std::time::Duration;

use platform_protocol::log::LogLevel;
use platform_protocol::names::Environment;
use platform_server::clock::{Clock as _, SystemClock};
use platform_server::domain::audit::Actor;
use platform_server::domain::deletion::{AskDeletion, DeletionAsked, REGRET_MILLIS};
use platform_server::domain::log::LogQuery;
use reqwest::Method;
use serde_json::{Value, json};

use super::small_disk::copy;
use crate::operations::{ask, with_operations};
use crate::restore::return_as;
use crate::support::{NOW, TestApp, send};

const HOUR: i64 = 60 * 60 * 1_000;
const YEAR: i64 = 365 * 24 * HOUR;

async fn degraded(operations: SocketAddr) -> Value {
    let (status, body) = ask(operations, "node-1", "/readyz").await;
    assert_eq!(status, 200, "{body}");
    serde_json::from_str::<Value>(&body).unwrap()["degraded"].take()
}

/// Asserts that somebody new can play, with a token that the server takes.
async fn assert_new_guests_play(app: &TestApp) {
    let guest = send(app.post_token()).await;
    let beat = app.request(Method::POST, "demo", "/__platform/heartbeat");
    let beat = beat.bearer_auth(guest.token());
    let beat = beat.json(&json!({ "page": "A".repeat(22) }));
    assert_eq!(send(beat).await.status, 204);
}

/// A guest and an account: their cookies and ids.
async fn players(app: &TestApp) -> [(String, String); 2] {
    let guest = send(app.post_token()).await;
    let guest = guest.cookie().unwrap().to_owned();
    let account = app.sign_in("somebody", None).await;
    let ids = [
        return_as(app, "demo", &guest).await,
        return_as(app, "demo", &account).await,
    ];
    let [guest_id, account_id] = ids;
    [(guest, guest_id), (account, account_id)]
}

async fn assert_the_same(app: &TestApp, players: &[(String, String)]) {
    for (cookie, id) in players {
        assert_eq!(&return_as(app, "demo", cookie).await, id);
    }
}

#[tokio::test]
async fn a_clock_set_back_by_an_hour_costs_no_player_anything() {
    let (app, operations) = with_operations().await;
    let players = players(&app).await;
    for by in [-HOUR, HOUR] {
        app.clock.jump(by);
        assert_the_same(&app, &players).await;
        assert_new_guests_play(&app).await;
        app.sign_in("somebody else", None).await;
        assert_eq!(degraded(operations).await, json!([]));
    }
}

#[tokio::test]
async fn with_a_clock_a_year_ahead_players_play_and_nothing_is_removed_until_it_is_right() {
    let (app, operations) = with_operations().await;
    let players = players(&app).await;
    let platform = &app.running.state.platform;
    let leaver = app.sign_in("leaver", None).await;
    let leaver = return_as(&app, "demo", &leaver).await.parse().unwrap();
    let asked = AskDeletion {
        player: leaver,
        browser: None,
        at: NOW + REGRET_MILLIS,
        by: Actor::Own.into(),
        now: NOW,
    };
    let asked = platform.store.ask_for_deletion(asked).await.unwrap();
    assert_eq!(asked, DeletionAsked::At(NOW + REGRET_MILLIS));
    assert!(platform.nodes.may_remove_by_age());

    app.clock.jump(YEAR);
    // As the server does within three seconds: the keys were last read a year ago.
    app.running.state.auth.keys.refresh().await.unwrap();
    assert_eq!(degraded(operations).await, json!(["clock"]));
    assert!(!platform.nodes.may_remove_by_age(), "for a day");
    assert_the_same(&app, &players).await;
    assert_new_guests_play(&app).await;

    app.clock.jump(-YEAR);
    assert_eq!(degraded(operations).await, json!([]));
    assert!(platform.nodes.may_remove_by_age());
    assert_the_same(&app, &players).await;
    assert_new_guests_play(&app).await;
    let deletion = platform.store.find_deletion(leaver).await.unwrap();
    assert!(deletion.is_some(), "it can still be taken back");
}

/// Returns how many log records the demo has.
async fn records(app: &TestApp) -> usize {
    let query = LogQuery {
        slug: "demo".into(),
        environment: Environment::Prod,
        level: LogLevel::Debug,
        before: None,
        limit: 10,
        bytes: usize::MAX,
    };
    let store = &app.running.state.platform.store;
    store.list_log_records(query).await.unwrap().records.len()
}

#[tokio::test]
async fn a_server_that_starts_with_a_clock_a_year_ahead_removes_nothing_either() {
    let app = TestApp::start().await;
    app.clock.jump(SystemClock.now() - app.clock.now());
    let record = json!({ "time": 1, "level": "error", "source": "console", "message": "m" });
    let logs = app.request(Method::POST, "demo", "/__platform/logs");
    let logs = logs.json(&json!({ "page": "A".repeat(22), "records": [record] }));
    assert_eq!(send(logs).await.status, 204);
    assert_eq!(records(&app).await, 1);
    let (data, running) = (app.directory, app.running);
    running.stop().await.unwrap();
    let ahead = SystemClock.now() + YEAR;

    // If the store was used until now by that clock, the record is really old, and goes at the start.
    let used = tempfile::tempdir().unwrap();
    copy(data.path(), used.path());
    let mut options = std::fs::File::options();
    let file = options.write(true).open(used.path().join("platform.db"));
    let at = std::time::UNIX_EPOCH + Duration::from_millis(ahead.unsigned_abs());
    file.unwrap().set_modified(at).unwrap();
    let old = TestApp::at(used, ahead).await;
    let (begun, mut looks) = (tokio::time::Instant::now(), 0);
    while records(&old).await > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is swept");
        looks += 1;
        tokio::task::yield_now().await;
    }

    let app = TestApp::at(data, ahead).await;
    for _ in 0..looks + 1_000 {
        assert_eq!(records(&app).await, 1);
        tokio::task::yield_now().await;
    }
    assert!(!app.running.state.platform.nodes.may_remove_by_age());
}
