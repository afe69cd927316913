//! A network that loses packets between a node and the database.

use std::time::Duration;

use platform_cluster::Cluster;
use platform_tests::nodes::{self, Load};
use platform_tests::poll;
use platform_tests::visitor::Visitor;
use tokio::time::Instant;

use super::{LONGEST, RATE, assert_the_same_players};

/// Until then a node that has no database says that it is not ready.
const NOTICED: Duration = Duration::from_secs(5);
/// Until then another node has its leases.
const MOVED: Duration = Duration::from_secs(20);
/// A periodic job that one node does.
const JOB: &str = "sweep-sessions";

/// Returns the place of the node that has the lease of [`JOB`].
fn holder(cluster: &Cluster) -> Option<usize> {
    let statement = format!(
        "SELECT n.address FROM leases l JOIN nodes n ON n.id = l.holder WHERE l.name = '{JOB}'"
    );
    let address = cluster.postgres.primary.sql("platform", &statement);
    let address = address.unwrap();
    let port: u16 = address.rsplit(':').next()?.parse().ok()?;
    let mut nodes = cluster.nodes.iter();
    nodes.position(|node| node.address.port() == port)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_packets_to_the_database_are_lost_is_left_out_and_its_jobs_move() {
    let cluster = nodes::start_relayed();
    let visitor = nodes::visitor(&cluster);
    let load = Load::of_guests(&visitor, RATE);
    let cut = poll::until("a node does the job", async || holder(&cluster)).await;
    load.seen.until_more_passed(100).await;

    let node = &cluster.nodes[cut];
    node.relays
        .iter()
        .for_each(platform_cluster::Relay::fall_silent);
    let silent = Instant::now();
    // Requests that come to this node all the same get an answer.
    let port = cluster.balancer.address.port();
    let direct = Load::of_guests(&Visitor::who_reconnects(node.address, port), 5);
    poll::until("the node says that it is not ready", async || {
        (node.readiness() != Some(200)).then_some(())
    })
    .await;
    let noticed = silent.elapsed();
    poll::until("another node does the job", async || {
        holder(&cluster).filter(|holder| *holder != cut)
    })
    .await;
    let moved = silent.elapsed();
    println!("not ready after {noticed:?}, the lease moved after {moved:?}");
    assert!(noticed <= NOTICED, "{noticed:?}");
    assert!(moved <= MOVED, "{moved:?}");
    load.seen.until_more_passed(100).await;

    let direct = direct.end().await;
    assert!(
        !direct.failures().is_empty(),
        "it gave tokens without a database"
    );
    node.relays.iter().for_each(platform_cluster::Relay::pass);
    poll::until("the node is ready again", async || {
        (node.readiness() == Some(200)).then_some(())
    })
    .await;
    load.seen.until_more_passed(100).await;
    // Whoever does the job now keeps it.
    assert_ne!(holder(&cluster), Some(cut));
    let seen = load.end().await;
    for seen in [&seen, &direct] {
        println!("{} passed, longest {:?}", seen.passed(), seen.longest());
        assert!(seen.longest() < LONGEST, "{:?}", seen.longest());
        for failure in seen.failures() {
            assert!(failure.what.starts_with("503"), "{failure:?}");
        }
    }
    // Its share until the balancer noticed.
    let allowed = usize::try_from(RATE).unwrap() * 6 / 3;
    let failures = seen.failures().len();
    assert!(failures <= allowed, "{failures}");
    assert_the_same_players(&cluster, &seen).await;
}
