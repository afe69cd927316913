//! Guests who sign in at the same time through different nodes: always one account for an identity,
//! no half-merged guest, no two names that look alike.

use futures_util::StreamExt as _;
use futures_util::stream;
use platform_tests::hostile_provider::HostileProvider;
use platform_tests::nodes;
use platform_tests::racing::{self, DELAY, Finish, Players, Track};
use platform_tests::tables::Tables;
use serde_json::json;

use super::rounds;

/// How many, unless `TESTS_ROUNDS` has another number: 1,000 take some minutes.
const ROUNDS: usize = 100;
/// Rounds that run concurrently.
const BESIDE: usize = 6;

/// Runs one round. The kinds alternate, so that different ones run side by side.
async fn race(track: &Track, round: usize, random: fastrand::Rng) -> Finish {
    let subject = format!("racer-{round}");
    match round % 5 {
        0 => track.one_identity_in_two_browsers(&subject, random).await,
        1 => track.guests_of_a_known_identity(&subject, random).await,
        2 => track.one_guest_in_two_tabs(&subject, random).await,
        3 => track.one_guest_with_two_identities(&subject, random).await,
        _ => track.names_during_a_sign_in(&subject, random).await,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guests_who_sign_in_through_different_nodes_become_one_account() {
    let provider = HostileProvider::start().await;
    provider.behave(&json!({ "jitter": DELAY })).await;
    let cluster = nodes::start_with(Some(racing::settings_for(&provider)));
    let sites = nodes::sites(&cluster);
    let track = Track { sites };
    let rounds = rounds(ROUNDS);
    let mut random = racing::random();
    let randoms: Vec<_> = (0..rounds).map(|round| (round, random.fork())).collect();
    let races: Vec<Finish> = stream::iter(randoms)
        .map(|(round, random)| race(&track, round, random))
        .buffer_unordered(BESIDE)
        .collect()
        .await;
    assert_eq!(races.len(), rounds);

    let names = ["players", "identities", "pending_sign_ins"];
    let primary = &cluster.postgres.primary;
    let tables = Tables::of_postgres(primary, "platform", &names);
    // A guest with two identities has two.
    let expected = rounds + (0..rounds).filter(|round| round % 5 == 3).count();
    assert_eq!(tables.rows("identities").len(), expected);
    assert_eq!(tables.rows("pending_sign_ins").len(), 0);
    let players = Players::of(&tables);
    players.assert_whole();
    let mut merged = 0;
    for race in races {
        merged += race.assert_whole(&players).await;
    }
    println!(
        "{rounds} rounds, {} players, {merged} merged",
        players.count()
    );
    assert!(merged > 0);
}
