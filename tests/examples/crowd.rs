//! Lets 1,000 players play in 50 games of the real server program, by the real
//! clock, and compares what the API and the home page show with who plays: all
//! of them, then after half have left without a word, and in the end the
//! ranking with one computed by `tests/ranking.py` from the raw heartbeats.
//! Takes seven minutes. Prints one JSON object, and fails where they differ.
//!
//! `cargo run --release -p platform-tests --example crowd [players] [games]`

#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement reads the clock, prints what it found, and fails loudly"
)]

use std::time::{Duration, Instant};

use platform_server::clock::{Clock as _, Millis, SystemClock};
use platform_tests::crowd::{self, Crowd, Pace};
use platform_tests::owner::Owner;
use platform_tests::platform::Site;
use platform_tests::server::Server;
use serde_json::json;
use tempfile::TempDir;

/// How long the whole crowd plays, in seconds.
const TOGETHER: u64 = 150;
/// Seconds after which nobody is counted who left without a word.
const GONE: u64 = 80;
/// Seconds in which what was played is in the ranking: a minute ends, and it is
/// looked every five seconds whether one has.
const KEPT: Duration = Duration::from_secs(75);

/// The real time, from a moment on.
#[derive(Debug)]
struct Real(tokio::time::Instant);

impl Pace for Real {
    async fn reach(&self, second: u64) {
        tokio::time::sleep_until(self.0 + Duration::from_secs(second)).await;
    }

    fn now(&self) -> Millis {
        SystemClock.now()
    }
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual: usize| {
        let given = arguments.next();
        given.map_or(usual, |text| text.parse().expect("a number"))
    };
    let (players, games) = (number(1_000), number(50));
    let data = TempDir::with_prefix("platform-tests-").expect("a temporary directory");
    let variables = [("PLATFORM_PROJECTS_PER_ACCOUNT", "1000")];
    let server = Server::start_set(data.path(), "", &variables).await;
    let (site, visitor) = (Site::from(&server), server.visitor());
    let owner = Owner::sign_in(&site, "the maker").await;
    let games = crowd::deploy(&owner, games).await;
    let file = data.path().join("beats");
    let mut crowd = Crowd::gather(&visitor, &games, players, &file).await;
    let pace = Real(tokio::time::Instant::now());

    crowd.play(0..31, &pace).await;
    let all = shown(&visitor, &crowd, &pace).await;
    assert_eq!(all, players, "everybody has come");
    crowd.play(31..TOGETHER, &pace).await;
    let together = shown(&visitor, &crowd, &pace).await;
    crowd.half_leaves();
    let left = Instant::now();
    crowd.play(TOGETHER..TOGETHER + GONE, &pace).await;
    let half = shown(&visitor, &crowd, &pace).await;
    let half_after = left.elapsed().as_secs_f64();

    let ended = Instant::now();
    let (ranked, kept) = loop {
        let computed = crowd::computed(&file, pace.now());
        let ranking = crowd::of_the_crowd(crowd::ranking(&visitor).await, &computed);
        let same = ranking
            .iter()
            .zip(&computed)
            .all(|(one, other)| (&one.slug, one.players_day) == (&other.slug, other.players_day));
        if same && ranking.len() == computed.len() {
            break (ranking, ended.elapsed());
        }
        assert!(ended.elapsed() < KEPT, "{ranking:?} is not {computed:?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    println!(
        "{:#}",
        json!({
            "players": players, "games": games.len(), "beats": crowd.sent,
            "playing": { "at_first": all, "together": together, "after_half_left": half },
            "seconds_after_half_left": half_after,
            "ranked_games": ranked.len(),
            "players_in_the_ranking": ranked.iter().map(|game| game.players_day).sum::<usize>(),
            "seconds_until_the_ranking_is_the_computed_one": kept.as_secs_f64(),
        })
    );
    server.stop().await;
}

/// How many play, once the API and the page show that. A page may go out of
/// time between two looks, so that who plays is looked up around them.
async fn shown(visitor: &platform_tests::visitor::Visitor, crowd: &Crowd, pace: &Real) -> usize {
    loop {
        let before = crowd.playing(pace.now());
        let ranking = crowd::ranking(visitor).await.into_iter();
        let page = crowd::page(visitor).await;
        if crowd.playing(pace.now()) != before {
            continue;
        }
        let playing = ranking.filter(|game| game.players_now > 0);
        let api = playing.map(|game| (game.slug, game.players_now)).collect();
        assert_eq!(before, api, "the API shows who plays");
        assert_eq!(before, page, "the page shows who plays");
        return before.values().sum();
    }
}
