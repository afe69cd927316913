//! An acknowledged write is durable: a visitor's player survives the end of the server.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    reason = "a test reports by failing"
)]

use std::sync::Arc;

use platform_tests::load::Load;
use platform_tests::server::Server;
use platform_tests::visitor::{Minted, NotMinted, Visitor};
use platform_tests::{poll, settings, trace};
use tempfile::TempDir;
use tokio::task::JoinSet;

/// How often the server is killed.
const ROUNDS: usize = 50;
/// The number of concurrent visitors.
const VISITORS: usize = 16;

/// Visits as a new or an earlier guest, until the server is gone.
async fn visit(visitor: Visitor, load: Arc<Load>, mut random: fastrand::Rng) -> Vec<Minted> {
    let mut guests: Vec<Minted> = Vec::new();
    loop {
        let known = if random.bool() {
            random.choice(&guests).cloned()
        } else {
            None
        };
        let cookie = known.as_ref().map(|known| known.cookie.as_str());
        match visitor.mint("demo", cookie).await {
            Ok(minted) => {
                if let Some(known) = known {
                    assert_eq!(
                        minted.claims.sub, known.claims.sub,
                        "a guest became another"
                    );
                } else {
                    guests.push(minted);
                }
                load.count();
            }
            Err(NotMinted::Lost(_)) => return guests,
            Err(NotMinted::Refused { status, body }) => panic!("refused with {status}: {body}"),
        }
    }
}

/// One life of the server: load until some responses have arrived and a moment more, then SIGKILL.
/// Returns every guest that got a response.
async fn live_and_die(data: &TempDir, random: &mut fastrand::Rng) -> Vec<Minted> {
    let mut server = Server::start(data.path()).await;
    let load = Arc::new(Load::default());
    let mut visits = JoinSet::new();
    for _ in 0..VISITORS {
        visits.spawn(visit(server.visitor(), Arc::clone(&load), random.fork()));
    }
    load.kill_under_way(&mut server, random).await;
    poll::within("visitors to notice", visits.join_all())
        .await
        .into_iter()
        .flatten()
        .collect()
}

/// Asserts that each of `guests` is still the same player.
async fn demand_the_same(visitor: &Visitor, guests: &[Minted], round: usize) {
    for guest in guests {
        let again = visitor.mint("demo", Some(&guest.cookie)).await;
        let again = again.unwrap_or_else(|error| panic!("round {round}: no token: {error:?}"));
        assert_eq!(
            again.claims.sub, guest.claims.sub,
            "round {round}: a guest was lost"
        );
        assert_eq!(
            again.claims.username, guest.claims.username,
            "round {round}"
        );
    }
}

fn seed() -> u64 {
    let given = settings::variable("TESTS_SEED").and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("repeat with TESTS_SEED={seed}");
    seed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_guest_that_was_told_so_survives_fifty_kills_at_random_moments() {
    let mut random = fastrand::Rng::with_seed(seed());
    let data = TempDir::with_prefix("platform-tests-").unwrap();
    let mut everyone = Vec::new();
    let mut last: Vec<Minted> = Vec::new();
    for round in 0..ROUNDS {
        let told = live_and_die(&data, &mut random).await;
        assert!(
            !told.is_empty(),
            "round {round}: the load reached the server"
        );
        everyone.append(&mut last);
        last = told;
        let server = Server::start(data.path()).await;
        demand_the_same(&server.visitor(), &last, round).await;
    }
    everyone.append(&mut last);
    println!("{} guests over {ROUNDS} kills", everyone.len());
    let server = Server::start(data.path()).await;
    demand_the_same(&server.visitor(), &everyone, ROUNDS).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_is_forced_to_the_disk_before_its_answer_is_written() {
    let directory = TempDir::with_prefix("platform-tests-").unwrap();
    let trace = directory.path().join("trace");
    let server = Server::start_traced(&directory.path().join("data"), &trace).await;
    let mut guests = Vec::new();
    // First sequentially, then many at once, which share a commit.
    for _ in 0..5 {
        guests.push(server.visitor().mint("demo", None).await.unwrap());
    }
    let visitor = server.visitor();
    let crowd = (0..40).map(|_| {
        let visitor = visitor.clone();
        async move { visitor.mint("demo", None).await.unwrap() }
    });
    guests.extend(poll::within("a crowd of guests", futures_util::future::join_all(crowd)).await);
    server.stop().await;
    let calls = trace::calls(&std::fs::read_to_string(&trace).unwrap());
    for guest in &guests {
        let id = uuid::Uuid::parse_str(&guest.claims.sub).unwrap();
        let order = trace::durable_before_told(&calls, id.as_bytes(), guest.cookie.as_bytes());
        assert_eq!(order, Ok(()), "guest {id}");
    }
}
