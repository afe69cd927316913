//! Several nodes that share a store in PostgreSQL: what one of them changes holds on all of them, and
//! work that only one must do is done by one.

mod domains;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use platform_protocol::names::Environment;
use platform_server::auth::keys::KeyError;
use platform_server::clock::Clock as _;
use platform_server::config::Config;
use platform_server::domain::audit::Actor;
use platform_server::domain::node::{LEASE_MILLIS, NodeReport, STARTING};
use platform_server::platform::jobs::{Job, JobError, Leases as _, Schedule, spawn};
use platform_test_postgres::TestDatabase;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::caller::{Caller, archive};
use crate::postgres::settings;
use crate::support::{Answer, TestApp, send};

/// How long anything may take that other nodes do by themselves.
const PATIENCE: Duration = Duration::from_secs(30);

/// 365 days.
const YEAR: i64 = 365 * 24 * 60 * 60 * 1_000;

/// What several nodes share.
struct Cluster {
    database: TestDatabase,
    files: tempfile::TempDir,
}

impl Cluster {
    fn new() -> Self {
        Self {
            database: TestDatabase::new(),
            files: tempfile::tempdir().unwrap(),
        }
    }

    /// Starts a node. All nodes have one address, as behind a balancer.
    async fn node(&self) -> TestApp {
        self.node_with(900).await
    }

    async fn node_with(&self, token_seconds: u64) -> TestApp {
        self.node_set(|config| config.token_seconds = token_seconds)
            .await
    }

    /// Starts a node with changed settings.
    async fn node_set(&self, change: impl FnOnce(&mut Config)) -> TestApp {
        let shared = settings(&self.database, self.files.path());
        TestApp::with(|config| {
            shared(config);
            config.demo = false;
            config.token_seconds = 900;
            config.origin = Some("http://platform.localhost:8787".parse().unwrap());
            change(config);
        })
        .await
    }
}

/// Polls until `found` returns something.
async fn eventually<T>(mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let poll = async {
        loop {
            looks.tick().await;
            if let Some(found) = found().await {
                return found;
            }
        }
    };
    tokio::time::timeout(PATIENCE, poll).await.unwrap()
}

fn page(text: &str) -> Vec<u8> {
    archive(&[("index.html", text.as_bytes())])
}

async fn shown(node: &TestApp) -> (u16, String) {
    let answer = send(node.get("game", "/")).await;
    (answer.status.as_u16(), answer.text().to_owned())
}

/// A token for the game, as `node` gives one to a browser with this cookie or a new one.
async fn game_token(node: &TestApp) -> Answer {
    let request = node.request(Method::POST, "auth", "/token");
    send(request.header("origin", node.origin("game"))).await
}

/// The status of a heartbeat with this token.
async fn beat(node: &TestApp, token: &str) -> u16 {
    let request = node
        .request(Method::POST, "game", "/__platform/heartbeat")
        .bearer_auth(token)
        .header("content-type", "application/json")
        .body(json!({ "page": "aAAAAAAAAAAAAAAAAAAAAA" }).to_string());
    send(request).await.status.as_u16()
}

/// What a node at `address` says about itself that has applied no change.
fn report(node: &TestApp, address: &str) -> NodeReport {
    NodeReport {
        id: node.running.state.platform.entropy.uuid_v4(),
        address: address.to_owned(),
        binary: "0".into(),
        settings: "{}".into(),
        applied: 0,
        clock_offset: None,
        degraded: Vec::new(),
    }
}

#[tokio::test]
async fn what_one_node_deploys_the_others_serve_with_the_next_request() {
    let cluster = Cluster::new();
    let (one, other) = tokio::join!(cluster.node(), cluster.node());
    let third = cluster.node().await;
    let owner = Caller::account(&one).await;
    let there = Caller::with_cookie(&other, Some(&owner.cookie)).await;
    assert_eq!(owner.create("game").await.status, 201);
    let first = owner.deploy("prod", page("first")).await;
    assert_eq!(first.status, 201);
    for node in [&other, &third, &one] {
        assert_eq!(shown(node).await, (200, "first".to_owned()));
    }
    assert_eq!(there.deploy("prod", page("second")).await.status, 201);
    for node in [&one, &third] {
        assert_eq!(shown(node).await, (200, "second".to_owned()));
    }
    let first = json!({ "deployment": first.json::<Value>()["id"] });
    let path = "/api/projects/game/environments/prod/rollback";
    assert_eq!(owner.post(path, first).await.status, 200);
    for node in [&other, &third] {
        assert_eq!(shown(node).await, (200, "first".to_owned()));
    }
    let backend = json!({ "url": "http://127.0.0.1:3000", "paths": ["/api/"] });
    let path = "/api/projects/game/environments/prod/backend";
    assert_eq!(owner.put(path, backend).await.status, 200);
    for node in [&other, &third] {
        let game = node.running.state.games.catalogue.find("game").unwrap();
        assert_eq!(game.backend.as_ref().unwrap().paths, ["/api/"]);
        assert_eq!(game.environment, Environment::Prod);
    }
}

#[tokio::test]
async fn whom_one_node_suspends_the_others_refuse_with_the_next_request() {
    let cluster = Cluster::new();
    let (one, other) = tokio::join!(cluster.node(), cluster.node());
    let owner = Caller::account(&one).await;
    owner.create("game").await;
    assert_eq!(owner.deploy("prod", page("game")).await.status, 201);
    let token = game_token(&other).await;
    let (player, token) = (token.claims().sub, token.token());
    assert_eq!(beat(&other, &token).await, 204);

    let admin = Caller::admin(&one).await;
    let path = format!("/api/admin/players/{player}/suspension");
    let suspended = admin.put(&path, json!({ "reason": "Cheating." })).await;
    assert_eq!(suspended.status, 200);
    assert_eq!(beat(&other, &token).await, 403);
    let lifted = send(admin.ask(Method::DELETE, &path)).await;
    assert_eq!(lifted.status, 200);
    assert_eq!(beat(&other, &token).await, 204);

    // The games of a suspended player are taken down.
    assert_eq!(shown(&other).await.0, 200);
    let path = format!("/api/admin/players/{}/suspension", owner.sub);
    assert_eq!(
        admin.put(&path, json!({ "reason": null })).await.status,
        200
    );
    assert_ne!(shown(&other).await.0, 200);
    assert_eq!(send(admin.ask(Method::DELETE, &path)).await.status, 200);
    assert_eq!(shown(&other).await.0, 200);
    let path = "/api/projects/game/disable";
    let disabled = admin.post(path, json!({ "reason": "Not now." })).await;
    assert_eq!(disabled.status, 200);
    assert_ne!(shown(&other).await.0, 200);
}

#[tokio::test]
async fn no_game_has_another_node_as_its_backend() {
    let cluster = Cluster::new();
    let one = cluster.node().await;
    let another = report(&one, "127.0.0.9:3000");
    let store = &one.running.state.platform.store;
    store.report_node(&another).await.unwrap();
    // Nodes are found at the start, and then twice a minute.
    let other = cluster.node().await;
    let owner = Caller::account(&other).await;
    assert_eq!(owner.create("game").await.status, 201);
    let path = "/api/projects/game/environments/dev/backend";
    let backend = |url: &str| json!({ "url": url, "paths": ["/api/"] });
    let refused = eventually(async || {
        let answer = owner.put(path, backend("http://127.0.0.9:3000")).await;
        (answer.status != 200).then_some(answer)
    });
    let refused = refused.await;
    assert!(
        refused.text().contains("platform itself"),
        "{}",
        refused.text()
    );
    let another = owner.put(path, backend("http://127.0.0.9:3001")).await;
    assert_eq!(another.status, 200);
}

#[tokio::test]
async fn a_key_that_one_node_revokes_is_gone_from_all_key_sets_with_its_answer() {
    let cluster = Cluster::new();
    let (one, other) = tokio::join!(cluster.node(), cluster.node());
    let key_set = async |node: &TestApp| {
        let set = send(node.get("auth", "/.well-known/jwks.json")).await;
        set.json::<Value>()["keys"].clone()
    };
    let keys = key_set(&one).await;
    assert_eq!(keys, key_set(&other).await);
    assert_eq!(keys.as_array().unwrap().len(), 1);
    let kid = keys[0]["kid"].as_str().unwrap();
    let admin = Caller::admin(&one).await;
    let path = format!("/api/admin/keys/{kid}/revoke");
    assert_eq!(admin.post(&path, json!({})).await.status, 200);
    assert_ne!(key_set(&other).await[0]["kid"], kid);
    assert_eq!(key_set(&other).await, key_set(&one).await);
}

#[tokio::test]
async fn a_player_who_signs_out_at_one_node_has_left_the_others_within_about_a_second() {
    let cluster = Cluster::new();
    let (one, other) = tokio::join!(cluster.node(), cluster.node());
    let owner = Caller::account(&one).await;
    owner.create("game").await;
    assert_eq!(owner.deploy("prod", page("game")).await.status, 201);
    let begun = tokio::time::Instant::now();
    for _ in 0..3 {
        let minted = game_token(&other).await;
        let (cookie, token) = (minted.cookie().unwrap(), minted.token());
        assert_eq!(beat(&other, &token).await, 204);
        // A token of the second in which the session ends may be that of the next session, and so
        // may one within the difference of the clocks. These stand still, so that they differ by
        // the time between two comparisons with the database's.
        for node in [&one, &other] {
            node.clock.advance(5_000);
        }
        let sign_out = one
            .request(Method::POST, "auth", "/sign-out")
            .header("origin", one.origin("game"))
            .header("cookie", cookie);
        assert_eq!(send(sign_out).await.status, 204);
        eventually(async || (beat(&other, &token).await == 401).then_some(())).await;
    }
    // All that ended is read again every ten seconds: of three sign-outs, the last one would be known
    // after twenty.
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(15), "{took:?}");
}

#[tokio::test]
async fn what_an_operators_command_changes_all_nodes_follow() {
    let cluster = Cluster::new();
    let (one, other) = tokio::join!(cluster.node(), cluster.node());
    let owner = Caller::account(&one).await;
    owner.create("game").await;
    assert_eq!(owner.deploy("prod", page("game")).await.status, 201);
    let token = game_token(&other).await;
    let (player, token) = (token.claims().sub.parse().unwrap(), token.token());
    // A command changes the store in its own process, and waits for nobody.
    let store = &one.running.state.platform.store;
    let suspended = store.suspend_player(player, None, Actor::Operator.into(), one.clock.now());
    assert!(suspended.await.unwrap());
    for node in [&one, &other] {
        eventually(async || (beat(node, &token).await == 403).then_some(())).await;
    }
}

#[tokio::test]
async fn a_node_that_applies_nothing_delays_a_deploy_for_two_seconds_at_most() {
    let cluster = Cluster::new();
    let node = cluster.node().await;
    let owner = Caller::account(&node).await;
    assert_eq!(owner.create("game").await.status, 201);
    let store = &node.running.state.platform.store;
    let stuck = report(&node, "stuck:1");
    store.report_node(&stuck).await.unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(owner.deploy("prod", page("game")).await.status, 201);
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(2), "nobody waited: {took:?}");
    assert_eq!(shown(&node).await.0, 200);
    let starts = NodeReport {
        applied: STARTING,
        ..stuck
    };
    store.report_node(&starts).await.unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(owner.deploy("prod", page("again")).await.status, 201);
    let again = begun.elapsed();
    assert!(
        again < took,
        "it waited for itself, or for a node that starts"
    );
}

/// Counts its runs.
struct Count(Arc<AtomicUsize>);

#[async_trait]
impl Job for Count {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("count", Duration::from_millis(10)).on_one_node()
    }

    async fn run(&mut self) -> Result<(), JobError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// Starts the job on a node. Returns the number of its runs there.
fn count_on(node: &TestApp, tasks: &mut JoinSet<()>) -> Arc<AtomicUsize> {
    let runs = Arc::<AtomicUsize>::default();
    let leases = Arc::clone(&node.running.state.platform.nodes);
    spawn(Count(Arc::clone(&runs)), leases, tasks);
    runs
}

async fn runs_again(runs: &AtomicUsize) {
    let before = runs.load(Ordering::SeqCst);
    eventually(async || (runs.load(Ordering::SeqCst) > before + 5).then_some(())).await;
}

#[tokio::test]
async fn one_node_does_what_one_must_do_and_another_goes_on_after_its_end() {
    let cluster = Cluster::new();
    let nodes = tokio::join!(cluster.node(), cluster.node(), cluster.node());
    let (mut first, mut second, mut third) = (JoinSet::new(), JoinSet::new(), JoinSet::new());
    let of_first = count_on(&nodes.0, &mut first);
    runs_again(&of_first).await;
    let of_second = count_on(&nodes.1, &mut second);
    runs_again(&of_first).await;
    assert_eq!(of_second.load(Ordering::SeqCst), 0);

    // It stops, and says so.
    first.shutdown().await;
    nodes.0.running.stop().await.unwrap();
    runs_again(&of_second).await;
    let of_third = count_on(&nodes.2, &mut third);
    runs_again(&of_second).await;
    assert_eq!(of_third.load(Ordering::SeqCst), 0);

    // It is killed. Its lease ends by the database's clock, which the test puts forward.
    let killed = nodes.1.running.state.platform.nodes.id();
    second.shutdown().await;
    drop(nodes.1.running);
    let store = &nodes.2.running.state.platform.store;
    let leases = store.list_leases().await.unwrap();
    assert!(
        leases
            .iter()
            .any(|lease| lease.name == "count" && lease.holder == killed)
    );
    assert!(leases.iter().all(|lease| lease.left <= LEASE_MILLIS));
    assert_eq!(of_third.load(Ordering::SeqCst), 0);
    store.renew_leases(killed, -1).await.unwrap();
    runs_again(&of_third).await;
}

#[tokio::test]
async fn every_sweep_is_done_by_one_node() {
    let cluster = Cluster::new();
    let (one, other) = tokio::join!(cluster.node(), cluster.node());
    let ids = [&one, &other].map(|node| node.running.state.platform.nodes.id());
    let store = &one.running.state.platform.store;
    let expected = [
        "apply-retention",
        "group-errors",
        "look-at-domains",
        "rank-games",
        "remove-players",
        "send-alerts",
        "send-player-events",
        "sweep-counts",
        "sweep-deployments",
        "sweep-logs",
        "sweep-sessions",
    ];
    let leases = eventually(async || {
        let leases = store.list_leases().await.unwrap();
        (leases.len() == expected.len()).then_some(leases)
    });
    for (lease, name) in leases.await.into_iter().zip(expected) {
        assert_eq!(lease.name, name);
        assert!(ids.contains(&lease.holder) && lease.left > 0, "{lease:?}");
    }
    let nodes = [&one, &other].map(|node| &node.running.state.platform.nodes);
    let taken = [
        nodes[0].take("sweep-logs").await,
        nodes[1].take("sweep-logs").await,
    ];
    assert!(taken[0] != taken[1]);
}

#[tokio::test]
async fn administrators_see_every_node_and_settings_that_differ() {
    let cluster = Cluster::new();
    let one = cluster.node().await;
    let other = cluster.node_with(600).await;
    let admin = Caller::admin(&one).await;
    let seen: Value = admin.get("/api/admin/nodes").await.json();
    assert_eq!(seen["shared"], true);
    // The tests' database has no standby.
    assert_eq!(seen["waits_for_standby"], false);
    let nodes = seen["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 2);
    let addresses = [&one, &other].map(|app| format!(":{}", app.port()));
    for (node, address) in nodes.iter().zip(&addresses) {
        assert!(
            node["address"].as_str().unwrap().ends_with(address),
            "{node}"
        );
        assert_eq!(node["live"], true);
        assert_eq!(node["version"], env!("CARGO_PKG_VERSION"));
    }
    assert_eq!(
        (&nodes[0]["this"], &nodes[1]["this"]),
        (&json!(true), &json!(false))
    );
    let differing = seen["differing_settings"].as_array().unwrap();
    assert_eq!(differing.len(), 1, "{differing:?}");
    assert_eq!(differing[0]["name"], "token_seconds");
    let values = differing[0]["values"].as_array().unwrap();
    assert_eq!(
        (&values[0]["value"], &values[1]["value"]),
        (&json!("600"), &json!("900"))
    );

    other.running.stop().await.unwrap();
    let seen: Value = admin.get("/api/admin/nodes").await.json();
    assert_eq!(seen["nodes"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_node_whose_clock_is_far_off_takes_no_lease_and_changes_no_key() {
    let cluster = Cluster::new();
    let (one, other) = tokio::join!(cluster.node(), cluster.node());
    let nodes = &other.running.state.platform.nodes;
    let keys = &other.running.state.auth.keys;
    let stored = async || {
        let keys = one.running.state.platform.store.list_keys().await.unwrap();
        keys.into_iter().map(|key| key.kid).collect::<Vec<_>>()
    };
    // A lease waits for a comparison of the clocks that was fast enough.
    eventually(async || nodes.take("fit").await.then_some(())).await;
    let before = stored().await;
    // By a clock a year ahead, the key is old, so that a new one would follow. It is refused from now
    // on, whether the clocks were compared before or after it was set.
    other.clock.advance(YEAR);
    assert!(!nodes.take("fit").await);
    assert!(!nodes.take("unfit").await);
    let refused = keys.rotate(Actor::Operator).await;
    assert!(matches!(refused, Err(KeyError::Clock)), "{refused:?}");
    keys.refresh().await.unwrap();
    assert_eq!(stored().await, before);
    other.clock.advance(-YEAR);
    // If the clocks were compared meanwhile, the node trusts its own again with the next report.
    eventually(async || nodes.take("unfit").await.then_some(())).await;
    eventually(async || keys.rotate(Actor::Operator).await.ok()).await;
    assert_eq!(stored().await.len(), before.len() + 1);
}
