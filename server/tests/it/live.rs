//! Several nodes that share who plays now in Redis, and what they do without it.

use std::time::Duration;

use platform_server::config::Secret;
use platform_test_postgres::TestDatabase;
use platform_test_redis::TestRedis;
use reqwest::Method;
use serde_json::{Value, json};

use crate::caller::{Caller, archive};
use crate::postgres::settings;
use crate::support::{TestApp, send};

/// How long anything may take that nodes do by themselves.
const SOON: Duration = Duration::from_secs(30);

/// What the nodes share.
struct Cluster {
    database: TestDatabase,
    files: tempfile::TempDir,
    redis: TestRedis,
}

impl Cluster {
    fn new() -> Self {
        Self {
            database: TestDatabase::new(),
            files: tempfile::tempdir().unwrap(),
            redis: TestRedis::start(),
        }
    }

    async fn node(&self) -> TestApp {
        let shared = settings(&self.database, self.files.path());
        let node = TestApp::with(|config| {
            shared(config);
            config.redis = Some(Secret::new(self.redis.url()));
            config.demo = false;
            config.operations_listen = Some("127.0.0.1:0".parse().unwrap());
            config.origin = Some("http://platform.localhost:8787".parse().unwrap());
        })
        .await;
        // Their clocks are that of the store: otherwise they are not ready.
        let nodes = &node.running.state.platform.nodes;
        nodes.report().await.unwrap();
        node.clock.advance(-nodes.clock_offset().unwrap());
        node.running.state.auth.keys.refresh().await.unwrap();
        nodes.report().await.unwrap();
        node
    }
}

async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let poll = async {
        while !is_so().await {
            looks.tick().await;
        }
    };
    let happened = tokio::time::timeout(SOON, poll).await;
    assert!(happened.is_ok(), "{what} did not happen");
}

/// A token for the game of a new guest, with a cookie that came back.
async fn mint(node: &TestApp) -> String {
    node.new_player("game").await.0.token()
}

/// The status of a heartbeat of a page, which is a digit.
async fn beat(node: &TestApp, token: &str, page: char) -> u16 {
    let page = format!("{page}AAAAAAAAAAAAAAAAAAAAA");
    let request = node
        .request(Method::POST, "game", "/__platform/heartbeat")
        .bearer_auth(token)
        .header("content-type", "application/json")
        .body(json!({ "page": page }).to_string());
    send(request).await.status.as_u16()
}

/// The number of current players, as the project API says it.
async fn players_now(caller: &Caller<'_>) -> Value {
    let seen: Value = caller.get("/api/projects/game/players").await.json();
    seen["now"].clone()
}

fn names_redis(degraded: &Value) -> bool {
    let names = degraded.as_array();
    names.is_some_and(|names| names.contains(&json!("redis")))
}

/// Whether `/readyz` names Redis under `degraded`. The clock of the tests stands still, and may be
/// named as well.
async fn lacks_redis(node: &TestApp) -> bool {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://{}/readyz", node.running.operations.unwrap());
    let body = client.get(url).send().await.unwrap().text().await.unwrap();
    let report: Value = serde_json::from_str(&body).unwrap();
    names_redis(&report["degraded"])
}

#[tokio::test]
async fn a_player_at_two_nodes_is_one_player_on_both() {
    let cluster = Cluster::new();
    let (one, other) = (cluster.node().await, cluster.node().await);
    let owner = Caller::account(&one).await;
    let there = Caller::with_cookie(&other, Some(&owner.cookie)).await;
    assert_eq!(owner.create("game").await.status, 201);
    let page = archive(&[("index.html", b"game")]);
    assert_eq!(owner.deploy("prod", page).await.status, 201);
    let (first, second) = (mint(&one).await, mint(&other).await);
    // A busy machine may take longer than 50 ms for one of them, so they are repeated.
    eventually("two players", async || {
        for (node, token, page) in [
            (&one, &first, '1'),
            (&other, &first, '2'),
            (&other, &second, '3'),
        ] {
            assert_eq!(beat(node, token, page).await, 204);
        }
        players_now(&owner).await == 2 && players_now(&there).await == 2
    })
    .await;
    for node in [&one, &other] {
        eventually("the ranking", async || {
            let ranking: Value = send(node.get("", "/api/ranking")).await.json();
            ranking["games"][0]["players_now"] == 2
        })
        .await;
        eventually("readiness", async || !lacks_redis(node).await).await;
    }
}

#[tokio::test]
async fn without_redis_nobody_fails_and_the_number_of_players_is_unknown() {
    let mut cluster = Cluster::new();
    let node = cluster.node().await;
    let owner = Caller::account(&node).await;
    let admin = Caller::admin(&node).await;
    assert_eq!(owner.create("game").await.status, 201);
    let page = archive(&[("index.html", b"game")]);
    assert_eq!(owner.deploy("prod", page).await.status, 201);
    let token = mint(&node).await;
    let plays = async || {
        assert_eq!(beat(&node, &token, '1').await, 204);
        players_now(&owner).await == 1
    };
    eventually("a player", plays).await;

    cluster.redis.kill();
    for _ in 0..20 {
        assert_eq!(beat(&node, &token, '1').await, 204);
    }
    mint(&node).await;
    eventually("the knowledge of the outage", async || {
        players_now(&owner).await == Value::Null
    })
    .await;
    let project: Value = owner.get("/api/projects/game").await.json();
    assert_eq!(project["environments"]["prod"]["players"], Value::Null);
    let ranking: Value = send(node.get("", "/api/ranking")).await.json();
    assert_eq!(ranking["games"][0]["players_now"], Value::Null);
    let home = send(node.get("", "/")).await.text().to_owned();
    assert!(
        !home.contains("playing now") && !home.contains("Be the first"),
        "{home}"
    );
    eventually("readiness", async || lacks_redis(&node).await).await;
    eventually("the other nodes' knowledge", async || {
        let seen: Value = admin.get("/api/admin/nodes").await.json();
        names_redis(&seen["nodes"][0]["degraded"])
    })
    .await;

    cluster.redis = cluster.redis.restart();
    eventually("the end of the outage", async || !lacks_redis(&node).await).await;
    eventually("a player again", plays).await;
}
