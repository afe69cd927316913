//! What players notice when Redis does not answer: nothing.

use std::time::Duration;

use platform_cluster::Cluster;
use platform_tests::nodes::{self, Load, Seen};
use platform_tests::platform::Site;
use platform_tests::poll;
use platform_tests::visitor::{Minted, Visitor};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{assert_none_failed, readiness, wanted};

/// The requests a second of each kind.
const MINTS: u32 = 20;
const HEARTBEATS: u32 = 20;
const SIGN_INS: u32 = 1;
const PAGES: u32 = 20;
/// How many players play.
const PLAYERS: usize = 15;
/// How long Redis is away in seconds, unless `TESTS_OUTAGE_SECONDS` has another number.
const SECONDS: usize = 15;
/// How long the load is measured before and after that, in seconds.
const COMPARED: usize = 8;
/// In this time after the fault, nodes notice it: each request that is under way waits once for as
/// long as a node waits for Redis. In a short test, these alone can be more than one of 100.
const NOTICED: Duration = Duration::from_secs(1);
/// How long such a request may take.
const ONCE: Duration = Duration::from_secs(3);
/// How much longer than otherwise 99 of 100 of the later requests may take, beside the time that pages take,
/// which need no Redis: the machine may be busy.
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

/// Steady load of every kind that could need Redis.
struct Loads {
    mints: Load,
    heartbeats: Load,
    sign_ins: Load,
    /// Pages of a game, which need no Redis.
    pages: Load,
}

/// The longest times of 99 of 100 requests that began after [`NOTICED`].
#[derive(Clone, Copy, Debug)]
struct Times {
    mint: Duration,
    heartbeat: Duration,
    page: Duration,
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
            pages: Load::of_gets(&visitor, "demo", "/", PAGES),
        }
    }

    /// Waits until it has gone on for so many seconds.
    async fn go_on(&self, seconds: usize) {
        for _ in 0..seconds {
            self.mints.seen.until_more_passed(MINTS as usize).await;
        }
        self.heartbeats.seen.until_more_passed(1).await;
        self.sign_ins.seen.until_more_passed(1).await;
    }

    /// Ends it, and asserts that nothing failed.
    async fn end(self, cluster: &Cluster, when: &str) -> Times {
        let (mints, beats) = (self.mints.end().await, self.heartbeats.end().await);
        let (sign_ins, pages) = (self.sign_ins.end().await, self.pages.end().await);
        let none = |what: &str, seen: &Seen| {
            assert_none_failed(cluster, what, seen);
            assert!(seen.longest() < ONCE, "{what}: {:?}", seen.longest());
            seen.passed()
        };
        let times = Times {
            mint: mints.percentile(99, NOTICED),
            heartbeat: beats.percentile(99, NOTICED),
            page: pages.percentile(99, NOTICED),
        };
        println!(
            "{when}: {} tokens, {} heartbeats, {} started sign-ins, {} pages, 0 failed; {times:?}",
            none("tokens", &mints),
            none("heartbeats", &beats),
            none("sign-ins", &sign_ins),
            none("pages", &pages)
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
    for node in &cluster.nodes {
        poll::until("/readyz to be right", async || {
            let (status, report) = readiness(node).await.unwrap();
            assert_eq!(status, 200, "a node goes on without Redis");
            let names = report["degraded"].as_array().unwrap();
            (names.contains(&json!("redis")) == lacks).then_some(())
        })
        .await;
    }
}

/// Load while Redis answers.
async fn with_redis(cluster: &Cluster, players: &[Minted]) -> Times {
    let loads = Loads::start(cluster, players);
    loads.go_on(COMPARED).await;
    until_players_are(&nodes::visitor(cluster), &json!(PLAYERS)).await;
    until_nodes_say(cluster, false).await;
    loads.end(cluster, "with Redis").await
}

/// Load while Redis is lost, and until the nodes know again who plays.
async fn without_redis(cluster: &mut Cluster, players: &[Minted], fault: Fault) -> Times {
    let visitor = nodes::visitor(cluster);
    let loads = Loads::start(cluster, players);
    match fault {
        Fault::Silent => cluster.redis.process.signal("STOP").unwrap(),
        Fault::Killed => cluster.redis.process.kill().unwrap(),
    }
    let seconds = wanted("TESTS_OUTAGE_SECONDS", SECONDS);
    until_players_are(&visitor, &Value::Null).await;
    loads.go_on(seconds).await;
    assert_eq!(players_now(&visitor).await, Value::Null);
    until_nodes_say(cluster, true).await;
    match fault {
        Fault::Silent => cluster.redis.process.signal("CONT").unwrap(),
        Fault::Killed => cluster.redis.restart().unwrap(),
    }
    let back = Instant::now();
    until_players_are(&visitor, &json!(PLAYERS)).await;
    println!("the number of players is right after {:?}", back.elapsed());
    assert!(back.elapsed() < RIGHT);
    until_nodes_say(cluster, false).await;
    loads
        .end(cluster, &format!("{fault:?} for {seconds} s"))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_falls_silent_or_is_killed_costs_no_player_anything() {
    let mut cluster = nodes::start();
    let visitor = nodes::visitor(&cluster);
    let mut players = Vec::new();
    for _ in 0..PLAYERS {
        players.push(visitor.mint_player("demo").await.unwrap());
    }
    let mut before = with_redis(&cluster, &players).await;
    for fault in [Fault::Silent, Fault::Killed] {
        let without = without_redis(&mut cluster, &players, fault).await;
        let after = with_redis(&cluster, &players).await;
        // The machine may be busier at one time than at another.
        let usual = Times {
            mint: before.mint.max(after.mint),
            heartbeat: before.heartbeat.max(after.heartbeat),
            page: before.page.max(after.page),
        };
        let more = without.page.saturating_sub(usual.page) + MORE;
        let is_quick =
            without.mint < usual.mint + more && without.heartbeat < usual.heartbeat + more;
        assert!(is_quick, "{fault:?}: {without:?}, otherwise {usual:?}");
        before = after;
    }
}
