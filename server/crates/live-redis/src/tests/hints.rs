//! Tests of hints.

use tokio::time::timeout;

use super::*;

async fn told(node: &LiveRedis) -> bool {
    timeout(SOON, node.told_of_change()).await.is_ok()
}

#[tokio::test]
async fn every_node_is_told_of_a_change_also_after_an_outage() {
    let redis = TestRedis::start();
    let one = LiveRedis::open(&redis.url()).await.unwrap();
    let two = LiveRedis::open(&redis.url()).await.unwrap();
    // With their subscriptions, since they may have missed something.
    assert!(told(&one).await && told(&two).await);
    until("a hint", async || one.tell_of_change().await.is_ok()).await;
    assert!(told(&one).await && told(&two).await);
    redis.kill();
    let _redis = redis.restart();
    assert!(told(&one).await && told(&two).await);
    until("a hint", async || two.tell_of_change().await.is_ok()).await;
    assert!(told(&one).await && told(&two).await);
}
