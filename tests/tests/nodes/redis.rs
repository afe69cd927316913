//! What players notice when Redis does not answer: nothing.

use std::time::Duration;

use platform_cluster::Cluster;
use platform_tests::nodes::{self, Load, Seen};
use platform_tests::platform::Site;
use platform_tests::visitor::{Minted, Visitor};
use platform_tests::{poll, settings};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The requests a second of each kind.
const MINTS: u32 = 20;
const HEARTBEATS: u32 = 20;
const SIGN_INS: u32 = 1;
/// How many players play.
const PLAYERS: usize = 15;
/// How long Redis is away in seconds, unless this variable says otherwise.
const SECONDS: (&str, u32) = ("PLATFORM_OUTAGE_SECONDS", 15);
/// How long the load is measured before and after that, in seconds.
const COMPARED: u32 = 8;
/// How much longer than otherwise 99 of 100 requests may take.
const MORE: Duration = Duration::from_millis(60);
/// After so long the number of players is right again: 75 s after the last heartbeat that Redis
/// knew of, and some time to find Redis.
const RIGHT: Duration = Duration::from_secs(80);

/// What is lost with Redis.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// It keeps its connections open and answers nothing.
    Silent,
    /// It is killed, and starts again without data.
    Killed,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_silent_costs_no_player_anything() {
    lose_redis(Fault::Silent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_killed_costs_no_player_anything() {
    lose_redis(Fault::Killed).await;
}

/// Steady load of every kind that could need Redis.
struct Loads {
    mints: Load,
    heartbeats: Load,
    sign_ins: Load,
}

/// The longest times of 99 of 100 requests.
#[derive(Clone, Copy, Debug)]
struct Times {
    mint: Duration,
    heartbeat: Duration,
}

impl Loads {
    fn start(cluster: &Cluster, players: &[Minted]) -> Self {
        let visitor = nodes::visitor(cluster);
        // Sign-ins are started, not finished: the demo identity provider exists on each node, and
        // nodes reach it through the balancer.
        let sites = cluster.nodes.iter().map(|node| Site {
            origin: visitor.origin(),
            address: node.address,
        });
        Self {
            mints: Load::of_guests(&visitor, MINTS),
            heartbeats: Load::of_heartbeats(&visitor, players.to_vec(), HEARTBEATS),
            sign_ins: Load::of_sign_ins(sites.collect(), SIGN_INS),
        }
    }

    /// Waits until it has gone on for so many seconds.
    async fn go_on(&self, seconds: u32) {
        for _ in 0..seconds {
            self.mints.seen.until_more_passed(MINTS as usize).await;
        }
        self.heartbeats.seen.until_more_passed(1).await;
        self.sign_ins.seen.until_more_passed(1).await;
    }

    /// Ends it, and asserts that nothing failed.
    async fn end(self, when: &str) -> Times {
        let (mints, beats) = (self.mints.end().await, self.heartbeats.end().await);
        let sign_ins = self.sign_ins.end().await;
        let none = |what: &str, seen: &Seen| {
            assert!(seen.failures().is_empty(), "{what}: {:?}", seen.failures());
            seen.passed()
        };
        let times = Times {
            mint: mints.percentile(99),
            heartbeat: beats.percentile(99),
        };
        println!(
            "{when}: {} tokens, {} heartbeats, {} started sign-ins, 0 failed; {times:?}",
            none("tokens", &mints),
            none("heartbeats", &beats),
            none("sign-ins", &sign_ins)
        );
        times
    }
}

/// The number of current players of the demo, as everybody may read it.
async fn players_now(visitor: &Visitor) -> Value {
    let host = visitor.host("").trim_start_matches('.').to_owned();
    let request = visitor.request_host(Method::GET, &host, "/api/ranking");
    let ranking: Value = request.send().await.unwrap().json().await.unwrap();
    let games = ranking["games"].as_array().unwrap();
    let demo = games.iter().find(|game| game["slug"] == "demo");
    demo.unwrap()["players_now"].clone()
}

async fn until_players_are(visitor: &Visitor, expected: &Value) {
    poll::until(&format!("{expected} players"), async || {
        (players_now(visitor).await == *expected).then_some(())
    })
    .await;
}

/// Waits until every node says whether it lacks Redis.
async fn until_nodes_say(cluster: &Cluster, lacks: bool) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for node in &cluster.nodes {
        let url = format!("http://{}/readyz", node.operations);
        poll::until("/readyz to be right", async || {
            let answer = client.get(&url).send().await.unwrap();
            assert_eq!(answer.status(), 200, "a node goes on without Redis");
            let report: Value = answer.json().await.unwrap();
            let names = report["degraded"].as_array().unwrap();
            (names.contains(&json!("redis")) == lacks).then_some(())
        })
        .await;
    }
}

async fn lose_redis(fault: Fault) {
    let mut cluster = nodes::start();
    let visitor = nodes::visitor(&cluster);
    let mut players = Vec::new();
    for _ in 0..PLAYERS {
        players.push(visitor.mint("demo", None).await.unwrap());
    }
    let loads = Loads::start(&cluster, &players);
    loads.go_on(COMPARED).await;
    until_players_are(&visitor, &json!(PLAYERS)).await;
    until_nodes_say(&cluster, false).await;
    let before = loads.end("before").await;

    let loads = Loads::start(&cluster, &players);
    match fault {
        Fault::Silent => cluster.redis.process.signal("STOP").unwrap(),
        Fault::Killed => cluster.redis.process.kill().unwrap(),
    }
    let (name, usual) = SECONDS;
    let seconds = settings::variable(name).map_or(usual, |text| text.parse().unwrap());
    until_players_are(&visitor, &Value::Null).await;
    loads.go_on(seconds).await;
    assert_eq!(players_now(&visitor).await, Value::Null);
    until_nodes_say(&cluster, true).await;
    match fault {
        Fault::Silent => cluster.redis.process.signal("CONT").unwrap(),
        Fault::Killed => cluster.redis.restart().unwrap(),
    }
    let back = Instant::now();
    until_players_are(&visitor, &json!(PLAYERS)).await;
    println!("the number of players is right after {:?}", back.elapsed());
    assert!(back.elapsed() < RIGHT);
    until_nodes_say(&cluster, false).await;
    let without = loads.end("without Redis").await;

    let loads = Loads::start(&cluster, &players);
    loads.go_on(COMPARED).await;
    until_players_are(&visitor, &json!(PLAYERS)).await;
    let after = loads.end("after").await;
    // The machine may be busier at one time than at another.
    let mint = before.mint.max(after.mint);
    let heartbeat = before.heartbeat.max(after.heartbeat);
    assert!(
        without.mint < mint + MORE,
        "{without:?}, otherwise {mint:?}"
    );
    assert!(
        without.heartbeat < heartbeat + MORE,
        "{without:?}, otherwise {heartbeat:?}"
    );
}
