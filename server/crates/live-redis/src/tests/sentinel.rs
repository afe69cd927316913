//! Tests with a primary, its replica and a sentinel.

use platform_test_redis::TestSentinel;

use super::*;
use crate::Place;

#[tokio::test]
async fn the_primary_that_a_sentinel_names_is_used_also_after_a_failover() {
    let (primary, replica) = (TestRedis::start(), TestRedis::start());
    replica.follow(&primary);
    let sentinel = TestSentinel::watch(&primary, "mymaster");
    let place = Place::Sentinel {
        sentinels: vec![sentinel.url()],
        service: "mymaster".to_owned(),
    };
    let node = LiveRedis::open(place).await.unwrap();
    let beat = async || node.beat(DEMO, player(1), page(1)).await;
    until("a beat", async || beat().await.is_ok()).await;
    assert_ne!(primary.ask("DBSIZE"), ":0\r\n");
    primary.kill();
    let start = Instant::now();
    for _ in 0..200 {
        assert!(beat().await.is_err());
    }
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    until("the replica", async || beat().await.is_ok()).await;
    assert!(replica.ask("ROLE").contains("master"));
    until("a hint", async || node.tell_of_change().await.is_ok()).await;
    let told = tokio::time::timeout(SOON, node.told_of_change());
    assert!(told.await.is_ok());
}

#[tokio::test]
async fn an_unknown_service_is_no_redis() {
    let (primary, replica) = (TestRedis::start(), TestRedis::start());
    replica.follow(&primary);
    let sentinel = TestSentinel::watch(&primary, "mymaster");
    let place = Place::Sentinel {
        sentinels: vec![sentinel.url()],
        service: "another".to_owned(),
    };
    let node = LiveRedis::open(place).await.unwrap();
    assert!(!node.is_reachable());
}

#[tokio::test]
async fn a_sentinel_that_says_nothing_does_not_hide_the_others() {
    let (primary, replica) = (TestRedis::start(), TestRedis::start());
    replica.follow(&primary);
    let sentinel = TestSentinel::watch(&primary, "mymaster");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("redis://{}", listener.local_addr().unwrap());
    let place = Place::Sentinel {
        sentinels: vec![silent, sentinel.url()],
        service: "mymaster".to_owned(),
    };
    let node = LiveRedis::open(place).await.unwrap();
    let beat = async || node.beat(DEMO, player(1), page(1)).await;
    until("a beat", async || beat().await.is_ok()).await;
}
