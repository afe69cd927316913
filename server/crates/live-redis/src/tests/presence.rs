//! Tests of the current players.

use std::sync::Arc;

use super::cases::{Act, ROWS};
use super::*;

#[tokio::test]
async fn players_count_by_their_last_beat() {
    let mut world = World::new();
    let node = world.node().await;
    for (name, acts) in ROWS {
        assert_eq!(world.redis.ask("FLUSHALL"), "+OK\r\n");
        world.set_clock();
        for (step, act) in acts.iter().enumerate() {
            match *act {
                Act::Beat(who, on) => drop(node.beat(DEMO, player(who), page(on)).await.unwrap()),
                Act::Leave(on) => drop(node.leave(DEMO, page(on)).await.unwrap()),
                Act::Wait(millis) => world.advance(millis),
                Act::Playing(count) => {
                    assert_eq!(playing(&node).await, count, "{name}, step {step}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_farewell_says_whether_the_page_was_known_at_any_node() {
    let world = World::new();
    let (one, two) = (world.node().await, world.node().await);
    assert!(!one.leave(DEMO, page(1)).await.unwrap());
    one.beat(DEMO, player(1), page(1)).await.unwrap();
    assert!(two.leave(DEMO, page(1)).await.unwrap());
    assert!(!one.leave(DEMO, page(1)).await.unwrap());
}

#[tokio::test]
async fn environments_do_not_mix_and_are_counted_in_their_order() {
    let world = World::new();
    let node = world.node().await;
    node.beat(DEMO, player(1), page(1)).await.unwrap();
    node.beat("game:other", player(1), page(2)).await.unwrap();
    node.beat("game:other", player(2), page(3)).await.unwrap();
    assert!(!node.leave("game:dev-demo", page(1)).await.unwrap());
    let audiences = ["game:other", "game:dev-demo", DEMO];
    assert_eq!(node.count_playing(&audiences).await, Ok(vec![2, 0, 1]));
    let many = vec![DEMO; 1_001];
    assert_eq!(node.count_playing(&many).await, Ok(vec![1; 1_001]));
    assert_eq!(node.count_playing(&[]).await, Ok(Vec::new()));
}

#[tokio::test]
async fn two_nodes_count_one_player_once_and_know_the_time_since_the_last_beat() {
    let mut world = World::new();
    let (one, two) = (world.node().await, world.node().await);
    let beat = async |node: &LiveRedis, on: u8| node.beat(DEMO, player(1), page(on)).await;
    assert_eq!(beat(&one, 1).await, Ok(0));
    world.advance(30_000);
    assert_eq!(beat(&two, 1).await, Ok(30_000));
    world.advance(10_000);
    // Another tab, which the balancer sent to the first node.
    assert_eq!(beat(&one, 2).await, Ok(10_000));
    assert_eq!((playing(&one).await, playing(&two).await), (1, 1));
    // As in memory, a player who closes a game and opens it again within 75 s has played on.
    one.leave(DEMO, page(1)).await.unwrap();
    two.leave(DEMO, page(2)).await.unwrap();
    assert_eq!(playing(&one).await, 0);
    world.advance(20_000);
    assert_eq!(beat(&two, 3).await, Ok(20_000));
    world.advance(-1_000);
    assert_eq!(beat(&one, 3).await, Ok(-1_000));
}

#[tokio::test]
async fn made_up_page_ids_take_no_memory() {
    let mut world = World::new();
    let node = world.node().await;
    for on in 0..=50 {
        world.advance(1);
        node.beat(DEMO, player(1), page(on)).await.unwrap();
    }
    assert_eq!(world.length("HLEN", "pages"), "16");
    assert_eq!(playing(&node).await, 1);
    assert_eq!(
        node.leave(DEMO, page(34)).await,
        Ok(false),
        "it was displaced"
    );
    assert_eq!(node.leave(DEMO, page(35)).await, Ok(true));
    assert_eq!(node.leave(DEMO, page(50)).await, Ok(true));
}

#[tokio::test]
async fn silent_players_and_pages_are_forgotten() {
    let mut world = World::new();
    let node = world.node().await;
    for who in 1..=20 {
        node.beat(DEMO, player(who), page(who)).await.unwrap();
        node.beat(DEMO, player(who), page(100 + who)).await.unwrap();
    }
    node.leave(DEMO, page(1)).await.unwrap();
    node.leave(DEMO, page(101)).await.unwrap();
    world.advance(75_001);
    for _ in 0..5 {
        node.beat(DEMO, player(21), page(21)).await.unwrap();
    }
    for (command, name) in [
        ("ZCARD", "playing"),
        ("ZCARD", "beats"),
        ("HLEN", "pages"),
        ("HLEN", "players"),
    ] {
        assert_eq!(world.length(command, name), "1", "{name}");
        let left: i64 = world.length("PTTL", name).parse().unwrap();
        assert!((1..=750_000).contains(&left), "{name}: {left}");
    }
    // A page of a player who plays on.
    node.beat(DEMO, player(21), page(22)).await.unwrap();
    assert_eq!(world.length("HLEN", "pages"), "2");
    world.advance(75_001);
    node.beat(DEMO, player(21), page(22)).await.unwrap();
    assert_eq!(world.length("HLEN", "pages"), "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_beats_at_once_at_two_nodes_are_all_counted() {
    let world = World::new();
    let nodes = [Arc::new(world.node().await), Arc::new(world.node().await)];
    let tasks: Vec<_> = (0..150_u8)
        .map(|who| {
            let nodes = nodes.clone();
            tokio::spawn(async move {
                // A third of the players leave; all of them have a page at each node.
                for (half, node) in (0..).zip(&nodes) {
                    let mut on = [who; 16];
                    on[0] = half;
                    node.beat(DEMO, player(who), PageId(on)).await.unwrap();
                    if who % 3 == 0 {
                        assert!(nodes[0].leave(DEMO, PageId(on)).await.unwrap());
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(playing(&nodes[1]).await, 100);
    assert_eq!(world.length("HLEN", "pages"), "200");
}

#[tokio::test]
async fn without_a_clock_of_the_test_the_clock_of_redis_decides() {
    let redis = TestRedis::start();
    let mut node = LiveRedis::open(&redis.url()).await.unwrap();
    node.link.patience = [SOON; 2];
    assert_eq!(node.beat(DEMO, player(1), page(1)).await, Ok(0));
    let gap = node.beat(DEMO, player(1), page(1)).await.unwrap();
    assert!((0..30_000).contains(&gap), "{gap}");
    assert_eq!(playing(&node).await, 1);
}
