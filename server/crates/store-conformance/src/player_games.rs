//! The requirements on players' games.

use platform_domain::audit::{Actor, By};
use platform_domain::counting::{HOUR, NewPlayTime};
use platform_domain::player_game::SetFavourite;
use platform_domain::takedown::Change;
use platform_protocol::names::Environment::{self, Dev, Prod};
use platform_store::{Store, StoreError};
use uuid::Uuid;

use super::{NOW, Place, by, guest, project, sign_in};

/// The start of an hour.
const START: i64 = NOW - NOW % HOUR;

async fn favourite(
    store: &dyn Store,
    player: Uuid,
    slug: &str,
    is: bool,
    now: i64,
) -> SetFavourite {
    store.set_favourite(player, slug, is, 2, now).await.unwrap()
}

async fn play(store: &dyn Store, player: Uuid, slug: &str, environment: Environment, hour: i64) {
    let time = NewPlayTime {
        slug: slug.into(),
        environment,
        player,
        hour,
        millis: 5,
    };
    store.add_play_times(vec![time]).await.unwrap();
}

/// Returns slug, time of becoming a favourite and time of play of each game.
async fn games(
    store: &dyn Store,
    player: Uuid,
    played: usize,
) -> Vec<(String, Option<i64>, Option<i64>)> {
    let games = store.list_player_games(player, played).await.unwrap();
    let parts = games.into_iter();
    parts
        .map(|game| (game.slug, game.favourite_at, game.played_at))
        .collect()
}

async fn player(store: &dyn Store, name: &str) -> Uuid {
    store.add_guest(guest(&[name])).await.unwrap().id
}

async fn with_projects(store: &dyn Store) {
    for slug in ["a", "b", "c"] {
        store.add_project(project(slug, None)).await.unwrap();
    }
}

pub async fn favourites_are_few_and_listed_with_what_was_played_last(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    with_projects(store).await;
    let (one, other) = (player(store, "one").await, player(store, "other").await);
    assert_eq!(
        favourite(store, one, "c", true, NOW).await,
        SetFavourite::Done
    );
    assert_eq!(
        favourite(store, one, "b", true, NOW + 1).await,
        SetFavourite::Done
    );
    assert_eq!(
        favourite(store, one, "a", true, NOW + 2).await,
        SetFavourite::TooMany
    );
    assert_eq!(
        favourite(store, one, "c", true, NOW + 3).await,
        SetFavourite::Done
    );
    let both = [
        ("b".to_owned(), Some(NOW + 1), None),
        ("c".to_owned(), Some(NOW), None),
    ];
    assert_eq!(games(store, one, 9).await, both);
    play(store, one, "a", Prod, START).await;
    play(store, one, "c", Prod, START + HOUR).await;
    // An hour that comes late changes nothing, and dev is nobody's game.
    play(store, one, "c", Prod, START).await;
    play(store, one, "b", Dev, START).await;
    let all = [
        ("c".to_owned(), Some(NOW), Some(START + HOUR)),
        ("a".to_owned(), None, Some(START)),
        ("b".to_owned(), Some(NOW + 1), None),
    ];
    assert_eq!(games(store, one, 9).await, all);
    // Favourites are listed however little of what was played is.
    assert_eq!(games(store, one, 1).await, [all[0].clone(), all[2].clone()]);
    assert_eq!(games(store, other, 9).await, []);
    assert_eq!(
        favourite(store, one, "c", false, NOW).await,
        SetFavourite::Done
    );
    assert_eq!(
        favourite(store, one, "a", true, NOW + 4).await,
        SetFavourite::Done
    );
    assert_eq!(
        favourite(store, other, "a", false, NOW).await,
        SetFavourite::Done
    );
    assert_eq!(games(store, other, 9).await, []);
    let unknown = store.set_favourite(one, "none", true, 2, NOW).await;
    assert!(matches!(
        unknown,
        Err(StoreError::Missing { table: "projects" })
    ));
}

pub async fn what_was_played_is_forgotten_and_a_favourite_stays(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    with_projects(store).await;
    let one = player(store, "one").await;
    favourite(store, one, "a", true, NOW).await;
    for (slug, hour) in [("a", START), ("b", START), ("c", START + HOUR)] {
        play(store, one, slug, Prod, hour).await;
    }
    assert_eq!(store.sweep_played(START + 1, 1).await.unwrap(), 1);
    assert_eq!(store.sweep_played(START + 1, 9).await.unwrap(), 1);
    assert_eq!(store.sweep_played(START + 1, 9).await.unwrap(), 0);
    let left = [
        ("c".to_owned(), None, Some(START + HOUR)),
        ("a".to_owned(), Some(NOW), None),
    ];
    assert_eq!(games(store, one, 9).await, left);
    // A token alone is no game that was played.
    let other = player(store, "other").await;
    store.note_token(other, "a").await.unwrap();
    assert_eq!(games(store, other, 9).await, []);
    play(store, other, "a", Prod, START).await;
    store.note_token(other, "a").await.unwrap();
    let played = [("a".to_owned(), None, Some(START))];
    assert_eq!(games(store, other, 9).await, played);
}

pub async fn a_guests_games_go_to_the_account_that_it_is_merged_into(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    with_projects(store).await;
    let account = store.complete_sign_in(sign_in("ada")).await.unwrap();
    let account = account.player().unwrap().id;
    let browser = guest(&["one"]);
    let one = browser.id;
    store.add_guest(browser.clone()).await.unwrap();
    favourite(store, account, "a", true, NOW).await;
    favourite(store, one, "a", true, NOW + 1).await;
    favourite(store, one, "b", true, NOW + 2).await;
    play(store, account, "a", Prod, START).await;
    play(store, one, "a", Prod, START + HOUR).await;
    play(store, one, "c", Prod, START).await;
    store.complete_sign_in(by(&browser, "ada")).await.unwrap();
    let all = [
        ("a".to_owned(), Some(NOW), Some(START + HOUR)),
        ("c".to_owned(), None, Some(START)),
        ("b".to_owned(), Some(NOW + 2), None),
    ];
    assert_eq!(games(store, account, 9).await, all);
    assert_eq!(games(store, one, 9).await, []);
}

pub async fn games_of_players_go_with_their_project(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let one = player(store, "one").await;
    store.add_project(project("a", Some(one))).await.unwrap();
    favourite(store, one, "a", true, NOW).await;
    play(store, one, "a", Prod, START).await;
    let deleted = store.change_standing("a", Change::Delete, By::from(Actor::Own), NOW);
    deleted.await.unwrap();
    store.remove_deleted(NOW, NOW).await.unwrap();
    assert_eq!(games(store, one, 9).await, []);
}
