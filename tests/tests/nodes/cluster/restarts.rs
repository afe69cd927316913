//! Nodes are killed, and restarted in turn.

use std::time::Duration;

use platform_cluster::Cluster;
use platform_tests::nodes::{self, Load, Seen};

use super::{
    assert_none_failed, assert_the_same_accounts, assert_the_same_players, sign_some_in, wanted,
};

/// How many requests are sent at once to find out how many the nodes carry.
const FULL: usize = 24;
/// How many requests that takes.
const TRIED: usize = 400;
/// How many requests players send at once while nodes are restarted.
const PLAYERS: usize = 8;
/// How many requests pass while nodes are restarted, unless `TESTS_REQUESTS` has another number. They
/// are more if all nodes have not been restarted twice by then.
const REQUESTS: usize = 2_000;
/// What the next version of the program does with the database: it adds something.
const NEXT_SCHEMA: &str = "ALTER TABLE players ADD COLUMN of_the_next_version INTEGER;
    INSERT INTO platform_schema_history (version, name, applied_on, checksum)
    SELECT version + 1, 'next', applied_on, checksum FROM platform_schema_history
    ORDER BY version DESC LIMIT 1";

/// Returns how many tokens a second the nodes mint at most, now and on this machine.
async fn capacity(cluster: &Cluster) -> f64 {
    let load = Load::of_guests_at_once(&nodes::visitor(cluster), FULL);
    // The first requests open connections to the database.
    load.seen.until_more_passed(TRIED / 4).await;
    let (before, since) = (load.seen.passed(), load.began.elapsed());
    load.seen.until_more_passed(TRIED).await;
    let (after, until) = (load.seen.passed(), load.began.elapsed());
    load.end().await;
    #[expect(clippy::cast_precision_loss, reason = "some hundred requests")]
    let requests = (after - before) as f64;
    requests / (until - since).as_secs_f64()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_killed_at_half_of_what_all_carry_costs_its_own_requests_and_loses_nobody() {
    let mut cluster = nodes::start();
    let accounts = sign_some_in(&cluster).await;
    let capacity = capacity(&cluster).await;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some hundred a second"
    )]
    let rate = (capacity / 2.0) as u32;
    let second = usize::try_from(rate).unwrap();
    let load = Load::of_guests(&nodes::visitor(&cluster), rate);
    load.seen.until_more_passed(2 * second).await;
    cluster.nodes[1].process.kill().unwrap();
    load.seen.until_more_passed(4 * second).await;
    cluster.nodes[1].restart().unwrap();
    load.seen.until_more_passed(2 * second).await;
    let seen = load.end().await;
    let failures = seen.failures();
    println!(
        "at {rate} requests a second, of {capacity:.0}: {} passed, {} failed: {failures:?}",
        seen.passed(),
        failures.len()
    );
    // Those in flight there, and two seconds of its share.
    let allowed = second * 2 / 3 + FULL;
    assert!(failures.len() <= allowed, "{failures:?}");
    assert_the_same_players(&cluster, &seen).await;
    assert_the_same_accounts(&cluster, accounts).await;
}

/// Restarts every node once, one after the other.
fn restart_in_turn(cluster: &mut Cluster) {
    for node in &mut cluster.nodes {
        // It says that it is not ready, and goes on until the balancer has noticed.
        let status = node.stop().unwrap();
        assert!(status.success(), "{status}");
        node.restart().unwrap();
    }
}

/// Restarts all nodes again and again until so many requests have passed. Returns how often.
fn restart_until(cluster: &mut Cluster, seen: &Seen, requests: usize) -> usize {
    let mut times = 0;
    while times == 0 || seen.passed() < requests {
        restart_in_turn(cluster);
        times += cluster.nodes.len();
    }
    times
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_are_restarted_in_turn_cost_no_request_on_either_schema() {
    let mut cluster = nodes::start();
    let requests = wanted("TESTS_REQUESTS", REQUESTS);
    let load = Load::of_players_at_once(&nodes::visitor_who_stays(&cluster), PLAYERS);
    load.seen.until_more_passed(100).await;
    let old = restart_until(&mut cluster, &load.seen, requests / 2);
    let primary = &cluster.postgres.primary;
    primary.sql("platform", NEXT_SCHEMA).unwrap();
    let new = restart_until(&mut cluster, &load.seen, requests);
    let took = load.began.elapsed();
    let seen = load.end().await;
    println!(
        "{} requests in {took:.0?}, {} failed; {old} restarts on the old schema, {new} on the new one; \
         p99 {:?}, longest {:?}",
        seen.passed(),
        seen.failures().len(),
        seen.percentile(99, Duration::ZERO),
        seen.longest(),
    );
    assert_none_failed(&cluster, "requests", &seen);
    assert!(seen.passed() >= requests);
    assert_the_same_players(&cluster, &seen).await;
}
