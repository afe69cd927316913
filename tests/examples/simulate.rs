//! Simulates many players on the real server program, or on several nodes of it, and compares what
//! the platform counts with what the players know. Prints rates, times from the moment at which
//! each request was due, memory and processor time. Fails if a count is wrong, or if in ten
//! minutes or more a server gathers memory, files or a write-ahead log.
//!
//! `cargo xtask simulate` builds what it needs and runs it.

#![expect(clippy::print_stdout, reason = "a measurement prints what it found")]

use std::process::ExitCode;
use std::time::Duration;

use platform_tests::simulation::{self, Place, Plan};

/// The arguments: the last one says in how many of the seconds players arrive.
const USAGE: &str = "simulate <players> <seconds> <nodes> <seconds>";
/// How many games there are.
const GAMES: usize = 20;
/// How long requests of each kind are sent alone.
const ALONE: Duration = Duration::from_secs(6);

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let [players, seconds, nodes, arriving] = arguments[..] else {
        println!("usage: {USAGE}");
        return ExitCode::FAILURE;
    };
    let plan = Plan {
        players: usize::try_from(players).unwrap_or(usize::MAX),
        games: GAMES,
        nodes: usize::try_from(nodes).unwrap_or(1),
        time: Duration::from_secs(seconds),
        arriving: Duration::from_secs(arriving),
        beat: 30,
        alone: ALONE,
        seed: 1,
    };
    let place = Place::start(&plan).await;
    println!(
        "{players} players for {seconds} s on {nodes} nodes, at {}",
        place.site().origin
    );
    let report = simulation::run(&plan, &place).await;
    println!("{}", report.text);
    println!("{} requests failed.", report.failed);
    for sentence in &report.gathered {
        println!("The servers gathered something: {sentence}.");
    }
    if !report.mismatches.is_empty() {
        println!("The platform counted something wrong.");
    } else if report.gathered.is_empty() {
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}
