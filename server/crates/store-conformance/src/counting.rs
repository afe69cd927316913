//! The requirements on counts of players over time.

use platform_domain::audit::Actor;
use platform_domain::clock::Millis;
use platform_domain::counting::{
    DAY, Distinct, DistinctSketch, HOUR, MINUTE, NewCounts, NewPlayTime, PlayerCount,
    RankedProject, Span,
};
use platform_domain::player::PlayerState;
use platform_protocol::names::Environment;
use platform_store::{NewGuest, Store, StoreError};
use uuid::Uuid;

use super::{Handles, Place, by, guest, project};

/// The start of a day.
const NOW: Millis = 1_795_219_200_000;

fn minute(at: Millis, peak: u32, player_millis: i64) -> PlayerCount {
    PlayerCount {
        start: NOW + at,
        peak,
        player_millis,
    }
}

fn counts(slug: &str, minutes: Vec<PlayerCount>) -> NewCounts {
    NewCounts {
        slug: slug.into(),
        environment: Environment::Prod,
        minutes,
        distinct: Vec::new(),
    }
}

fn play(slug: &str, player: u128, hour: Millis, millis: i64) -> NewPlayTime {
    NewPlayTime {
        slug: slug.into(),
        environment: Environment::Prod,
        player: Uuid::from_u128(player),
        hour: NOW + hour,
        millis,
    }
}

/// Adds the players 1 to `count`, as guests.
async fn players(store: &dyn Store, count: u128) -> Vec<NewGuest> {
    let mut made = Vec::new();
    for number in 1..=count {
        let new = NewGuest {
            id: Uuid::from_u128(number),
            ..guest(&[&format!("player-{number}")])
        };
        store.add_guest(new.clone()).await.unwrap();
        made.push(new);
    }
    made
}

async fn list(store: &dyn Store, span: Span) -> Vec<PlayerCount> {
    let found = store.list_player_counts("game", Environment::Prod, span, NOW, NOW + DAY);
    found.await.unwrap()
}

pub async fn minutes_add_up_in_themselves_and_in_their_hour(place: &dyn Place) {
    let store = place.open().await;
    store.add_project(project("game", None)).await.unwrap();
    let add = |minutes| store.add_player_counts(vec![counts("game", minutes)]);
    add(vec![minute(0, 2, 60_000), minute(MINUTE, 5, 70_000)])
        .await
        .unwrap();
    add(vec![minute(MINUTE, 3, 1_000), minute(HOUR, 1, 5)])
        .await
        .unwrap();
    assert_eq!(
        list(&*store, Span::Minute).await,
        [
            minute(0, 2, 60_000),
            minute(MINUTE, 5, 71_000),
            minute(HOUR, 1, 5)
        ]
    );
    assert_eq!(
        list(&*store, Span::Hour).await,
        [minute(0, 5, 131_000), minute(HOUR, 1, 5)]
    );
    let others = store.list_player_counts("game", Environment::Dev, Span::Minute, NOW, NOW + DAY);
    assert!(others.await.unwrap().is_empty());
    let part = store.list_player_counts(
        "game",
        Environment::Prod,
        Span::Minute,
        NOW + MINUTE,
        NOW + HOUR,
    );
    assert_eq!(part.await.unwrap(), [minute(MINUTE, 5, 71_000)]);
}

/// The number of different players of a period, as the store has it.
async fn distinct(store: &dyn Store, period: &str) -> u64 {
    let found = store.list_distinct_players("game", Environment::Prod, 10);
    let found = found.await.unwrap();
    let of = found.into_iter().find(|count| count.period == period);
    of.map_or(0, |count| count.players)
}

fn sketch(period: &str, players: std::ops::Range<u128>) -> NewCounts {
    let mut sketch = Distinct::default();
    players.for_each(|number| sketch.add(Uuid::from_u128(number << 64)));
    let mut new = counts("game", Vec::new());
    new.distinct = vec![DistinctSketch {
        period: period.into(),
        players: sketch,
    }];
    new
}

pub async fn sketches_of_several_nodes_are_united(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let store = handles.next();
    store.add_project(project("game", None)).await.unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|node| {
            let store = handles.next();
            tokio::spawn(async move {
                for last in 1..=4 {
                    let new = sketch("2026-11-21", 10 * node..10 * node + 3 * last);
                    store.add_player_counts(vec![new]).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    // The last two of every node are the first two of the next one.
    assert_eq!(distinct(&*store, "2026-11-21").await, 82);
    // Of a period that is over, only the number is kept, and it never falls.
    let swept = store.sweep_counts(0, 0, Vec::new(), 10);
    assert!(swept.await.unwrap() > 0);
    for (late, expected) in [(0..3, 82), (0..90, 90)] {
        let new = sketch("2026-11-21", late);
        store.add_player_counts(vec![new]).await.unwrap();
        assert_eq!(distinct(&*store, "2026-11-21").await, expected);
    }
    let sketches = store.list_sketches(vec!["2026-11-21".into()]);
    assert!(sketches.await.unwrap().is_empty());
}

pub async fn the_ranking_that_is_set_is_listed_by_every_node(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let store = handles.next();
    assert_eq!(store.list_ranking().await.unwrap(), []);
    let ranking = |players: u64| -> Vec<RankedProject> {
        let projects = (1..=20).map(|number| RankedProject {
            slug: format!("game-{number}"),
            players,
        });
        projects.collect()
    };
    let tasks: Vec<_> = (1..=8)
        .map(|players| {
            let (store, ranked) = (handles.next(), ranking(players));
            tokio::spawn(async move { store.set_ranking(ranked).await.unwrap() })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let listed = handles.next().list_ranking().await.unwrap();
    assert_eq!(listed, ranking(listed[0].players));
    store.set_ranking(Vec::new()).await.unwrap();
    assert_eq!(store.list_ranking().await.unwrap(), []);
}

pub async fn a_sketch_grows_and_is_found_by_its_period(place: &dyn Place) {
    let store = place.open().await;
    store.add_project(project("game", None)).await.unwrap();
    let mut players = Distinct::default();
    for (number, period) in [(1, "2026-11-20"), (2, "2026-11-21"), (3, "2026-11-21")] {
        players.add(Uuid::from_u128(number));
        let mut new = counts("game", Vec::new());
        new.distinct = vec![DistinctSketch {
            period: period.into(),
            players: players.clone(),
        }];
        store.add_player_counts(vec![new]).await.unwrap();
    }
    let numbers = store.list_distinct_players("game", Environment::Prod, 10);
    let numbers: Vec<_> = numbers
        .await
        .unwrap()
        .into_iter()
        .map(|count| (count.period, count.players))
        .collect();
    assert_eq!(
        numbers,
        [("2026-11-21".to_owned(), 3), ("2026-11-20".to_owned(), 1)]
    );
    let found = store.list_sketches(vec!["2026-11-21".into(), "2026-11".into()]);
    let found = found.await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].slug.as_str(), found[0].environment),
        ("game", Environment::Prod)
    );
    assert_eq!(found[0].sketch.players.count(), 3);
}

pub async fn those_who_played_long_enough_rank_their_games(place: &dyn Place) {
    let store = place.open().await;
    for slug in ["most", "tie", "game", "short"] {
        store.add_project(project(slug, None)).await.unwrap();
    }
    let mut dev = play("game", 9, 0, 90_000);
    dev.environment = Environment::Dev;
    let times = vec![
        play("most", 1, 0, 30_000),
        play("most", 1, HOUR, 30_000),
        play("most", 2, HOUR, 60_000),
        play("tie", 1, 0, 60_000),
        play("game", 1, HOUR, 999_999),
        play("game", 2, HOUR, 59_999),
        play("game", 3, -HOUR, 60_000),
        play("short", 4, 0, 59_000),
        dev,
    ];
    let guests = players(&*store, 4).await;
    store.add_play_times(times).await.unwrap();
    let ranked = store.rank_projects(NOW + 1, MINUTE).await.unwrap();
    let ranked: Vec<_> = ranked
        .iter()
        .map(|project| (project.slug.as_str(), project.players))
        .collect();
    assert_eq!(ranked, [("most", 2), ("game", 1), ("tie", 1)]);
    // Another time in the same hour is added to it.
    let more = vec![play("short", 4, 0, 1_000)];
    store.add_play_times(more).await.unwrap();
    let is_ranked = async |slug: &str| {
        let ranked = store.rank_projects(NOW, MINUTE).await.unwrap();
        ranked.iter().any(|project| project.slug == slug)
    };
    assert!(is_ranked("short").await);
    // A player who has signed out makes room for another guest at the address.
    store
        .end_session(&guests[3].session, Actor::Own.into(), NOW)
        .await
        .unwrap();
    assert!(!is_ranked("short").await);
}

pub async fn who_signs_in_while_playing_counts_once(place: &dyn Place) {
    let store = place.open().await;
    store.add_project(project("game", None)).await.unwrap();
    let guests = players(&*store, 2).await;
    for guest in &guests {
        let sign_in = by(guest, "somebody");
        store.complete_sign_in(sign_in).await.unwrap();
    }
    let account = store.find_player(guests[1].id).await.unwrap().unwrap();
    let merged = PlayerState::Merged { into: guests[0].id };
    assert_eq!(account.state, merged);
    let times = vec![play("game", 1, 0, 40_000), play("game", 2, 0, 40_000)];
    store.add_play_times(times).await.unwrap();
    let ranked = store.rank_projects(NOW, MINUTE).await.unwrap();
    assert_eq!(ranked[0].players, 1);
    assert!(store.rank_projects(NOW, 80_001).await.unwrap().is_empty());
}

pub async fn what_is_old_goes_in_batches_and_numbers_stay(place: &dyn Place) {
    let store = place.open().await;
    store.add_project(project("game", None)).await.unwrap();
    let mut new = counts(
        "game",
        (0..10).map(|at| minute(at * MINUTE, 1, 1)).collect(),
    );
    new.distinct = vec![DistinctSketch {
        period: "2026-11-20".into(),
        players: Distinct::default(),
    }];
    store.add_player_counts(vec![new]).await.unwrap();
    players(&*store, 1).await;
    let times = (0..4).map(|hour| play("game", 1, hour * HOUR, 60_000));
    store.add_play_times(times.collect()).await.unwrap();
    let running = || vec!["2026-11-21".to_owned(), "2026-11".to_owned()];
    let sweep = |limit| {
        let (minutes, play) = (NOW + 5 * MINUTE, NOW + 2 * HOUR);
        store.sweep_counts(minutes, play, running(), limit)
    };
    assert_eq!(sweep(3).await.unwrap(), 3);
    assert_eq!(sweep(3).await.unwrap(), 2);
    assert_eq!(sweep(3).await.unwrap(), 0);
    let left = list(&*store, Span::Minute).await;
    assert_eq!(left.first(), Some(&minute(5 * MINUTE, 1, 1)));
    assert_eq!(list(&*store, Span::Hour).await, [minute(0, 1, 10)]);
    assert_eq!(
        store.rank_projects(NOW, 120_000).await.unwrap()[0].players,
        1
    );
    assert!(store.rank_projects(NOW, 121_000).await.unwrap().is_empty());
    assert!(
        store
            .list_sketches(vec!["2026-11-20".into()])
            .await
            .unwrap()
            .is_empty()
    );
    let numbers = store.list_distinct_players("game", Environment::Prod, 10);
    assert_eq!(numbers.await.unwrap().len(), 1);
}

pub async fn counts_of_an_unknown_project_change_nothing(place: &dyn Place) {
    let store = place.open().await;
    store.add_project(project("game", None)).await.unwrap();
    let both = vec![
        counts("game", vec![minute(0, 1, 1)]),
        counts("nothing", vec![minute(0, 1, 1)]),
    ];
    let missing = |result: Result<(), StoreError>| {
        assert!(matches!(
            result,
            Err(StoreError::Missing { table: "projects" })
        ));
    };
    missing(store.add_player_counts(both).await);
    assert!(list(&*store, Span::Minute).await.is_empty());
    let both = vec![play("game", 1, 0, 60_000), play("nothing", 1, 0, 60_000)];
    missing(store.add_play_times(both).await);
    assert!(store.rank_projects(NOW, MINUTE).await.unwrap().is_empty());
}
