//! Many players play many games: the platform shows the same counts as an independent program that
//! knows only the heartbeats.

use std::collections::BTreeMap;
use std::sync::Arc;

use platform_server::clock::ManualClock;
use platform_server::config::{Config, Period};
use platform_server::entropy::SystemEntropy;
use platform_tests::crowd::{self, Crowd, ManualPace, Pace as _, Ranked};
use platform_tests::owner::Owner;
use platform_tests::platform::{Site, rate};
use platform_tests::poll;
use platform_tests::visitor::Visitor;
use tempfile::TempDir;

const GAMES: usize = 50;
const PLAYERS: usize = 1_000;
/// 2026-11-21, 20 minutes before an hour ends, in milliseconds.
const NOW: i64 = 1_795_290_000_000;

/// Asserts that the API and the page show exactly the current players.
async fn shown(visitor: &Visitor, playing: &BTreeMap<String, usize>) {
    let ranking = crowd::ranking(visitor).await.into_iter();
    let api: BTreeMap<String, usize> = ranking
        .filter(|game| game.players_now > 0)
        .map(|game| (game.slug, game.players_now))
        .collect();
    assert_eq!(&api, playing);
    assert_eq!(&crowd::page(visitor).await, playing);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_crowd_plays_is_counted_as_its_raw_beats_say() {
    let data = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let config = Config {
        listen: ([127, 0, 0, 1], 0).into(),
        data: data.path().to_owned(),
        guests_per_address: 0,
        guest_rate: rate(1_000_000, Period::Second, 1_000_000),
        projects_per_account: 100,
        ..Config::default()
    };
    let running = platform_server::app::start(config, clock.clone(), Arc::new(SystemEntropy));
    let running = running.await.unwrap();
    let site = Site {
        origin: running.origin.clone(),
        address: running.address,
    };
    let owner = Owner::sign_in(&site, "the maker").await;
    let games = crowd::deploy(&owner, GAMES).await;
    let visitor = Visitor::new(site.address, site.address.port());
    let file = data.path().join("beats");
    let mut crowd = Crowd::gather(&visitor, &games, PLAYERS, &file).await;
    let pace = ManualPace { clock, start: NOW };

    crowd.play(0..30, &pace).await;
    let all = crowd.playing(pace.now());
    assert_eq!(all.values().sum::<usize>(), PLAYERS);
    shown(&visitor, &all).await;
    crowd.play(30..150, &pace).await;
    shown(&visitor, &crowd.playing(pace.now())).await;

    crowd.half_leaves();
    let mut before = crowd.playing(pace.now());
    for seconds in [150..190, 190..210, 210..230] {
        crowd.play(seconds, &pace).await;
        let now = crowd.playing(pace.now());
        shown(&visitor, &now).await;
        assert!(now.values().sum::<usize>() <= before.values().sum());
        before = now;
    }
    // 80 seconds after half of them left, they are not counted any more.
    let steady = before.values().sum::<usize>();
    assert!(steady * 2 < PLAYERS && steady * 3 > PLAYERS, "{steady}");

    // The playing time is stored when its minute is over.
    pace.reach(300).await;
    let computed = crowd::computed(&file, pace.now());
    assert_eq!(computed.len(), GAMES, "every game has a player");
    let ranked: Vec<Ranked> = poll::until("the ranking is as computed", async || {
        let ranking = crowd::of_the_crowd(crowd::ranking(&visitor).await, &computed);
        (ranking == computed).then_some(ranking)
    })
    .await;
    let counted: usize = ranked.iter().map(|game| game.players_day).sum();
    assert!(counted > PLAYERS / 2, "{counted}");
    assert!(counted < PLAYERS, "who does not play does not count");
    running.stop().await.unwrap();
}
