//! Tests with a cluster of three servers.

use std::num::NonZeroU32;

use platform_test_redis::TestRedisCluster;

use super::cases::{Act, ROWS};
use super::*;
use crate::link::Unavailable;
use crate::{Place, SharedRate};

/// What all calls of a test may take together: far less than if each waited for 50 ms.
const FAST: Duration = Duration::from_secs(5);

fn place(cluster: &TestRedisCluster) -> Place {
    // The first two name the third.
    Place::Cluster(cluster.urls()[..2].to_vec())
}

/// Returns one of the nodes, which waits for a busy machine.
async fn node(cluster: &TestRedisCluster) -> LiveRedis {
    let mut node = LiveRedis::open(place(cluster)).await.unwrap();
    node.link.patience = [SOON; 2];
    until("the cluster", async || node.is_reachable()).await;
    node
}

/// Moves the clock that the scripts of a node read. In a cluster no key has the time for all.
fn set_clock(node: &mut LiveRedis, now: Millis) {
    let clock = format!("local now = {now}\nlocal micros = now * 1000");
    node.scripts = Scripts::with_clock(&clock);
}

#[tokio::test]
async fn players_count_by_their_last_beat() {
    let cluster = TestRedisCluster::start();
    let mut node = node(&cluster).await;
    let mut now = START;
    // With one shard, and with several.
    for crowd in [100, 0] {
        node.crowd = crowd;
        for (name, acts) in ROWS {
            cluster.tell("FLUSHALL");
            set_clock(&mut node, now);
            // If one player is a crowd already, the second time it has its own shard.
            for _ in 0..2 {
                node.beat(DEMO, player(250), page(250)).await.unwrap();
            }
            node.leave(DEMO, page(250)).await.unwrap();
            for (step, act) in acts.iter().enumerate() {
                match *act {
                    Act::Beat(who, on) => {
                        node.beat(DEMO, player(who), page(on)).await.unwrap();
                    }
                    Act::Leave(on) => {
                        node.leave(DEMO, page(on)).await.unwrap();
                    }
                    Act::Wait(millis) => {
                        now += millis;
                        set_clock(&mut node, now);
                    }
                    Act::Playing(count) => {
                        assert_eq!(playing(&node).await, count, "{name}, step {step}, {crowd}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn a_crowd_has_several_shards_and_every_player_counts_once() {
    let cluster = TestRedisCluster::start();
    let (mut one, mut two) = (node(&cluster).await, node(&cluster).await);
    (one.crowd, two.crowd) = (10, 10);
    // The second node does not know that the first one has several shards.
    two.beat(DEMO, player(200), page(200)).await.unwrap();
    for who in 0..50 {
        one.beat(DEMO, player(who), page(who)).await.unwrap();
    }
    for who in 0..50 {
        two.beat(DEMO, player(who), page(who)).await.unwrap();
    }
    assert_eq!((playing(&one).await, playing(&two).await), (51, 51));
    let held = |shard: u8| format!("ZCARD platform:{{{DEMO}:{shard}}}:playing");
    let holds_some = |shard: u8| {
        // The others say where the key is.
        let answers = cluster
            .servers
            .iter()
            .map(|server| server.ask(&held(shard)));
        answers
            .into_iter()
            .any(|answer| answer.starts_with(':') && answer != ":0\r\n")
    };
    assert!((0..16).all(holds_some), "a shard has no players");
    // Another player on the same page, which has another shard.
    one.beat(DEMO, player(101), page(7)).await.unwrap();
    assert_eq!(playing(&two).await, 51);
    assert_eq!(two.leave(DEMO, page(7)).await, Ok(true));
    assert_eq!(one.leave(DEMO, page(7)).await, Ok(false));
    assert_eq!(playing(&one).await, 50);
    // A node that has just started learns of the shards from the first one.
    let three = node(&cluster).await;
    assert_eq!(three.leave(DEMO, page(8)).await, Ok(true));
    assert_eq!(playing(&three).await, 49);
    let gap = three.beat(DEMO, player(9), page(9)).await.unwrap();
    assert!((1..30_000).contains(&gap), "{gap}");
}

#[tokio::test]
async fn environments_on_different_servers_are_counted_in_their_order() {
    let cluster = TestRedisCluster::start();
    let node = node(&cluster).await;
    let names: Vec<String> = (0..40).map(|number| format!("game:{number}")).collect();
    for (name, who) in names.iter().zip(1..) {
        for who in 0..who % 3 {
            node.beat(name, player(who), page(who)).await.unwrap();
        }
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let expected: Vec<usize> = (1..=40).map(|who| who % 3).collect();
    assert_eq!(node.count_playing(&names).await, Ok(expected));
    // The keys of different environments are on different servers.
    for server in &cluster.servers {
        assert_ne!(server.ask("DBSIZE"), ":0\r\n");
    }
}

#[tokio::test]
async fn nodes_share_limits() {
    let cluster = TestRedisCluster::start();
    let (one, two) = (node(&cluster).await, node(&cluster).await);
    let rate = SharedRate {
        count: NonZeroU32::MIN,
        period: Duration::from_secs(3_600),
        burst: NonZeroU32::new(2).unwrap(),
    };
    for key in 0..20 {
        let key = key.to_string();
        let take = async |node: &LiveRedis| node.take("test", &key, rate, NonZeroU32::MIN).await;
        assert_eq!(take(&one).await, Ok(None));
        assert_eq!(
            two.spend("test", &key, rate, 1, 0)
                .await
                .map(|wait| wait.is_some()),
            Ok(true)
        );
        assert!(take(&one).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn every_node_is_told_of_a_change() {
    let cluster = TestRedisCluster::start();
    let (one, two) = (node(&cluster).await, node(&cluster).await);
    for node in [&one, &two] {
        // With their subscriptions, since they may have missed something.
        let told = tokio::time::timeout(SOON, node.told_of_change());
        assert!(told.await.is_ok());
    }
    for node in [&one, &two] {
        assert_eq!(node.tell_of_change().await, Ok(()));
        for node in [&one, &two] {
            let told = tokio::time::timeout(SOON, node.told_of_change());
            assert!(told.await.is_ok());
        }
    }
}

/// Makes calls that somebody waits for and that concern every server until the breaker has opened, and then more. All must be
/// fast.
async fn opens_soon(node: &LiveRedis) {
    let start = Instant::now();
    for round in 0..100_u8 {
        for shard in 0..16 {
            let name = format!("game:{shard}");
            let _ = node.leave(&name, page(round)).await;
        }
        if !node.is_reachable() {
            break;
        }
    }
    assert!(!node.is_reachable());
    for _ in 0..200 {
        assert_eq!(node.leave(DEMO, page(1)).await, Err(Unavailable));
    }
    assert_eq!(node.count_playing(&[DEMO]).await, Err(Unavailable));
    assert!(start.elapsed() < FAST, "{:?}", start.elapsed());
}

#[tokio::test]
async fn nobody_waits_for_a_server_of_a_cluster_that_was_killed() {
    for number in 0..3 {
        let cluster = TestRedisCluster::start();
        let node = LiveRedis::open(place(&cluster)).await.unwrap();
        until("the cluster", async || node.is_reachable()).await;
        cluster.servers[number].kill();
        opens_soon(&node).await;
    }
}

#[tokio::test]
async fn nobody_waits_for_a_silent_server_of_a_cluster_and_it_is_used_again_afterwards() {
    let cluster = TestRedisCluster::start();
    let node = LiveRedis::open(place(&cluster)).await.unwrap();
    until("the cluster", async || node.is_reachable()).await;
    cluster.servers[1].pause();
    opens_soon(&node).await;
    cluster.servers[1].resume();
    cluster.wait();
    until("the breaker to close", async || node.is_reachable()).await;
    until("a beat", async || {
        node.beat(DEMO, player(1), page(1)).await.is_ok()
    })
    .await;
    until("a count", async || {
        node.count_playing(&[DEMO]).await == Ok(vec![1])
    })
    .await;
}
