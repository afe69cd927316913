//! The same identity from several browsers at the same time, against the real server program, with
//! a delay before every step: always one account, no half-merged guest, nothing lost.

use futures_util::StreamExt as _;
use futures_util::stream;
use platform_tests::hostile_provider::HostileProvider;
use platform_tests::platform::Site;
use platform_tests::racing::{self, DELAY, Finish, Players, Track};
use platform_tests::server::Server;
use platform_tests::tables::Tables;
use serde_json::json;
use tempfile::TempDir;

/// Rounds of two browsers with one new identity.
const ROUNDS: usize = 200;
/// Rounds of each other kind.
const FEW: usize = 40;
/// Rounds that run concurrently.
const BESIDE: usize = 8;

/// One server, and what was found out about its players.
struct Stadium {
    _provider: HostileProvider,
    server: Server,
    _data: TempDir,
    track: Track,
    random: fastrand::Rng,
}

impl Stadium {
    async fn open() -> Self {
        let provider = HostileProvider::start().await;
        provider.behave(&json!({ "jitter": DELAY })).await;
        let data = TempDir::with_prefix("platform-tests-").unwrap();
        let toml = racing::settings_for(&provider);
        let server = Server::start_set(data.path(), &toml, &[]).await;
        let sites = vec![Site::from(&server)];
        Self {
            _provider: provider,
            server,
            _data: data,
            track: Track { sites },
            random: racing::random(),
        }
    }

    fn tables(&self) -> Tables {
        self.server.tables()
    }

    /// Asserts what must be true after all races, and stops the server. Returns how many guests
    /// were merged in each race.
    async fn close(self, races: Vec<Finish>) -> Vec<usize> {
        let players = Players::of(&self.tables());
        players.assert_whole();
        let mut merged = Vec::new();
        for race in races {
            merged.push(race.assert_whole(&players).await);
        }
        self.server.stop().await;
        merged
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_identity_in_two_browsers_is_one_account_in_two_hundred_rounds() {
    let mut stadium = Stadium::open().await;
    let track = &stadium.track;
    let rounds: Vec<_> = (0..ROUNDS)
        .map(|round| (format!("racer-{round}"), stadium.random.fork()))
        .collect();
    let races: Vec<Finish> = stream::iter(rounds)
        .map(|(subject, random)| async move {
            track.one_identity_in_two_browsers(&subject, random).await
        })
        .buffer_unordered(BESIDE)
        .collect()
        .await;
    let tables = stadium.tables();
    assert_eq!(tables.rows("identities").len(), ROUNDS);
    assert_eq!(tables.rows("pending_sign_ins").len(), 0);
    let players = Players::of(&tables).count();
    assert_eq!(players, 2 * ROUNDS, "nobody was made beside the guests");
    assert_eq!(stadium.close(races).await, [1; ROUNDS]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_known_identity_takes_in_every_guest_that_comes_at_once() {
    let mut stadium = Stadium::open().await;
    let mut races = Vec::new();
    for round in 0..FEW {
        let (subject, random) = (format!("known-{round}"), stadium.random.fork());
        let race = stadium.track.guests_of_a_known_identity(&subject, random);
        races.push(race.await);
    }
    assert_eq!(stadium.close(races).await, [3; FEW]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_guest_in_two_tabs_is_one_account() {
    let mut stadium = Stadium::open().await;
    let mut races = Vec::new();
    for round in 0..FEW {
        let (subject, random) = (format!("tabs-{round}"), stadium.random.fork());
        let race = stadium.track.one_guest_in_two_tabs(&subject, random);
        races.push(race.await);
    }
    assert_eq!(stadium.tables().rows("players").len(), FEW);
    assert_eq!(stadium.close(races).await, [0; FEW]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_guest_with_two_identities_at_once_goes_to_one_of_them() {
    let mut stadium = Stadium::open().await;
    let mut races = Vec::new();
    for round in 0..FEW {
        let (subject, random) = (format!("both-{round}"), stadium.random.fork());
        let race = stadium
            .track
            .one_guest_with_two_identities(&subject, random);
        races.push(race.await);
    }
    assert_eq!(stadium.close(races).await, [0; FEW]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_look_alike_stay_unique_while_their_guests_sign_in() {
    let mut stadium = Stadium::open().await;
    let mut races = Vec::new();
    for round in 0..FEW {
        let (subject, random) = (format!("named-{round}"), stadium.random.fork());
        races.push(stadium.track.names_during_a_sign_in(&subject, random).await);
    }
    assert_eq!(stadium.close(races).await, [1; FEW]);
}
