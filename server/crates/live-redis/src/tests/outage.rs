//! Tests without Redis: callers never wait for long.

use super::*;
use crate::link::{AddressError, PATIENCE, Unavailable};

/// What all calls of a test may take together: far less than if each heartbeat waited for a second.
const FAST: Duration = Duration::from_secs(10);

async fn beat(node: &LiveRedis) -> Result<Millis, Unavailable> {
    node.beat(DEMO, player(1), page(1)).await
}

/// Makes calls that must all fail, fast.
async fn fail_fast(node: &LiveRedis) {
    let start = Instant::now();
    for _ in 0..200 {
        assert_eq!(beat(node).await, Err(Unavailable));
    }
    assert!(start.elapsed() < FAST, "{:?}", start.elapsed());
}

/// Waits until the node asks Redis again, and Redis answers as before.
async fn is_used_again(node: &LiveRedis) {
    until("the breaker to close", async || node.is_reachable()).await;
    until("a beat", async || beat(node).await.is_ok()).await;
    until("a count", async || {
        node.count_playing(&[DEMO]).await == Ok(vec![1])
    })
    .await;
}

#[tokio::test]
async fn nobody_waits_for_a_redis_that_is_silent_and_it_is_used_again_afterwards() {
    let redis = TestRedis::start();
    let node = LiveRedis::open(&redis.url()).await.unwrap();
    until("a beat", async || beat(&node).await.is_ok()).await;
    redis.pause();
    fail_fast(&node).await;
    assert!(!node.is_reachable());
    assert_eq!(node.count_playing(&[DEMO]).await, Err(Unavailable));
    redis.resume();
    is_used_again(&node).await;
}

#[tokio::test]
async fn a_late_answer_still_says_how_long_was_played_and_says_it_once() {
    let mut world = World::new();
    let (one, mut two) = (world.node().await, world.node().await);
    two.link.patience[0] = PATIENCE;
    for who in [1, 2] {
        assert_eq!(one.beat(DEMO, player(who), page(who)).await, Ok(0));
    }
    world.advance(30_000);
    world.redis.pause();
    let silence = async {
        until("the breaker to open", async || {
            two.count_playing(&[DEMO]).await.is_err() && !two.is_reachable()
        })
        .await;
        // Heartbeats are still sent: their answers may come.
        let late = two.beat(DEMO, player(2), page(2));
        let resumed = async { world.redis.resume() };
        tokio::join!(biased; late, resumed).0
    };
    let (first, second) = tokio::join!(two.beat(DEMO, player(1), page(1)), silence);
    assert_eq!((first, second), (Ok(30_000), Ok(30_000)));
    world.advance(10_000);
    for who in [1, 2] {
        assert_eq!(one.beat(DEMO, player(who), page(who)).await, Ok(10_000));
        assert_eq!(two.beat(DEMO, player(who), page(who)).await, Ok(0));
    }
}

#[tokio::test]
async fn a_redis_that_falls_silent_is_noticed_where_nobody_plays() {
    let redis = TestRedis::start();
    let node = LiveRedis::open(&redis.url()).await.unwrap();
    until("the breaker to close", async || node.is_reachable()).await;
    redis.pause();
    until("the breaker to open", async || !node.is_reachable()).await;
    redis.resume();
    until("the breaker to close", async || node.is_reachable()).await;
}

#[tokio::test]
async fn nobody_waits_for_a_redis_that_was_killed_and_its_successor_is_used() {
    let redis = TestRedis::start();
    let node = LiveRedis::open(&redis.url()).await.unwrap();
    until("a beat", async || beat(&node).await.is_ok()).await;
    redis.kill();
    fail_fast(&node).await;
    assert!(!node.is_reachable());
    let _redis = redis.restart();
    // The scripts are loaded again.
    is_used_again(&node).await;
}

#[tokio::test]
async fn a_node_starts_without_redis_and_uses_it_later() {
    let redis = TestRedis::start();
    redis.kill();
    let url = redis.url();
    let node = LiveRedis::open(&url).await.unwrap();
    assert!(!node.is_reachable());
    fail_fast(&node).await;
    let _redis = redis.restart();
    until("the breaker to close", async || node.is_reachable()).await;
}

#[tokio::test]
async fn a_redis_that_accepts_no_writes_is_not_used() {
    let redis = TestRedis::start();
    let node = LiveRedis::open(&redis.url()).await.unwrap();
    until("a beat", async || beat(&node).await.is_ok()).await;
    // It is a replica of a server that does not exist.
    assert_eq!(redis.ask("REPLICAOF 127.0.0.1 1"), "+OK\r\n");
    fail_fast(&node).await;
    assert!(!node.is_reachable());
    assert_eq!(redis.ask("REPLICAOF NO ONE"), "+OK\r\n");
    until("a beat", async || beat(&node).await.is_ok()).await;
}

#[tokio::test]
async fn an_address_and_a_connection_never_show_the_password() {
    for url in [
        "redis://x:hunter2@host:port",
        "http://x:hunter2@host",
        "hunter2",
    ] {
        let error = LiveRedis::open(url).await.unwrap_err();
        assert_eq!(error, AddressError, "{url}");
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
    // Nobody listens on port 1.
    let node = LiveRedis::open("redis://x:hunter2@127.0.0.1:1/3")
        .await
        .unwrap();
    assert!(!format!("{node:?}").contains("hunter2"));
    let secure = LiveRedis::open("rediss://x:hunter2@127.0.0.1:1")
        .await
        .unwrap();
    assert!(!secure.is_reachable());
}

#[tokio::test]
async fn tls_to_a_server_without_tls_fails_without_a_panic() {
    let redis = TestRedis::start();
    let url = redis.url().replacen("redis://", "rediss://", 1);
    let node = LiveRedis::open(&url).await.unwrap();
    assert!(!node.is_reachable());
    fail_fast(&node).await;
}
