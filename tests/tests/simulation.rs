//! A short form of `cargo xtask simulate`: some hundred players for 20 seconds.

use std::time::Duration;

use platform_tests::simulation::{self, Place, Plan};

/// Players of the short form, with a heartbeat every two seconds.
fn some_players(nodes: usize) -> Plan {
    Plan {
        players: 300,
        games: 5,
        nodes,
        time: Duration::from_secs(20),
        arriving: Duration::from_secs(7),
        beat: 2,
        alone: Duration::from_secs(1),
        seed: 1,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_simulated_crowd_is_served_and_counted() {
    let plan = some_players(1);
    let place = Place::start(&plan).await;
    let report = simulation::run(&plan, &place).await;
    println!("{}", report.text);
    assert_eq!(report.failed, 0);
    assert_eq!(report.mismatches, Vec::<String>::new());
}
