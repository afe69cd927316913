//! Tests of rate limits.

use std::num::NonZeroU32;

use super::*;
use crate::SharedRate;

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

/// One event per second, and several at once.
fn rate(burst: u32) -> SharedRate {
    SharedRate {
        count: number(60),
        period: Duration::from_secs(60),
        burst: number(burst),
    }
}

#[tokio::test]
async fn nodes_share_a_limit() {
    let mut world = World::new();
    let (one, two) = (world.node().await, world.node().await);
    let take = async |node: &LiveRedis, key: &str| {
        node.take("test", key, rate(4), NonZeroU32::MIN)
            .await
            .unwrap()
    };
    for node in [&one, &two, &one, &two] {
        assert_eq!(take(node, "here").await, None);
    }
    let second = Some(Duration::from_secs(1));
    assert_eq!(
        (take(&one, "here").await, take(&two, "here").await),
        (second, second)
    );
    assert_eq!(take(&one, "there").await, None);
    world.advance(400);
    assert_eq!(take(&two, "here").await, Some(Duration::from_millis(600)));
    world.advance(600);
    assert_eq!(take(&two, "here").await, None);
    assert_eq!(take(&one, "here").await, second);
    // After a quiet time there is a whole burst again, and no more.
    world.advance(3_600_000);
    for _ in 0..4 {
        assert_eq!(take(&one, "here").await, None);
    }
    assert_eq!(take(&two, "here").await, second);
}

#[tokio::test]
async fn many_pass_together_or_not_at_all() {
    let mut world = World::new();
    let node = world.node().await;
    let many = async |count| {
        node.take("test", "here", rate(10), number(count))
            .await
            .unwrap()
    };
    assert_eq!(many(8).await, None);
    assert_eq!(many(4).await, Some(Duration::from_secs(2)));
    assert_eq!(many(2).await, None);
    // A number larger than the burst counts as the burst.
    assert!(many(50).await.is_some());
    world.advance(10_000);
    assert_eq!(many(50).await, None);
    assert_eq!(many(1).await, Some(Duration::from_secs(1)));
}

#[tokio::test]
async fn a_clock_that_is_set_back_locks_nobody_out() {
    let mut world = World::new();
    let node = world.node().await;
    let take = async || {
        node.take("test", "here", rate(3), NonZeroU32::MIN)
            .await
            .unwrap()
    };
    for _ in 0..3 {
        assert_eq!(take().await, None);
    }
    world.advance(-3_600_000);
    assert_eq!(take().await, Some(Duration::from_secs(1)));
    world.advance(1_000);
    assert_eq!(take().await, None);
}

#[tokio::test]
async fn events_that_have_happened_always_count() {
    let mut world = World::new();
    let (one, two) = (world.node().await, world.node().await);
    let spend = async |node: &LiveRedis, open, many| {
        node.spend("test", "here", rate(10), open, many)
            .await
            .unwrap()
    };
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(spend(&one, 4, 0).await, None);
    assert_eq!(spend(&two, 3, 2).await, None);
    // There is room for one more.
    assert_eq!(spend(&one, 0, 2).await, seconds(1));
    assert_eq!(spend(&one, 0, 0).await, None);
    // What is refused does not count, and what happened does, however much it is.
    assert_eq!(spend(&two, 1, 4).await, seconds(4));
    assert_eq!(spend(&one, 5, 0).await, seconds(6));
    world.advance(5_000);
    assert_eq!(spend(&two, 0, 1).await, seconds(1));
    world.advance(1_000);
    assert_eq!(spend(&two, 0, 1).await, None);
    // Exact limits and those with a credit count alike.
    assert_eq!(
        one.take("test", "here", rate(10), NonZeroU32::MIN).await,
        Ok(seconds(1))
    );
    // A number larger than the burst counts as the burst, and nobody is locked out for longer than
    // after two.
    world.advance(60_000);
    assert_eq!(spend(&one, 0, 99).await, None);
    assert_eq!(spend(&one, 1_000, 0).await, seconds(11));
    world.advance(-3_600_000);
    assert_eq!(spend(&one, 0, 1).await, seconds(11));
}
