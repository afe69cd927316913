//! The requirements on projects' test players.

use std::collections::HashSet;

use platform_domain::audit::{Actor, GIVEN_MILLIS};
use platform_protocol::names::Environment::{Dev, Prod};
use uuid::Uuid;

use super::deployments::{add, assert_missing, deployment, with_project};
use super::environments::events;
use super::{Handles, NOW, Place, entropy, guest, project};

pub async fn test_players_are_the_same_every_time(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    store.add_project(project("other", None)).await.unwrap();
    for slug in ["demo", "other"] {
        add(&*store, &deployment(slug, Dev, NOW, &[("index.html", 'a')])).await;
    }
    let mut known = HashSet::new();
    for slug in ["demo", "other"] {
        for guest in [false, true] {
            for number in 1..=10 {
                let fresh = entropy().uuid_v7(NOW);
                let first =
                    store.ensure_test_player(slug, guest, number, fresh, Actor::Own.into(), NOW);
                assert_eq!(first.await.unwrap(), fresh);
                let other = entropy().uuid_v7(NOW);
                let again =
                    store.ensure_test_player(slug, guest, number, other, Actor::Own.into(), NOW);
                assert_eq!(again.await.unwrap(), fresh);
                assert!(known.insert(fresh));
            }
        }
    }
    // A number without a test player adds none.
    let eleventh = store.ensure_test_player("demo", false, 11, Uuid::max(), Actor::Own.into(), NOW);
    assert!(eleventh.await.is_err());
}

pub async fn of_many_who_ask_for_a_test_player_at_once_all_get_the_same(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    let handles = Handles::open(place).await;
    add(
        &*store,
        &deployment("demo", Prod, NOW, &[("index.html", 'a')]),
    )
    .await;
    let asking: Vec<_> = (0..20)
        .map(|_| {
            let store = handles.next();
            let fresh = entropy().uuid_v7(NOW);
            tokio::spawn(async move {
                store
                    .ensure_test_player("demo", true, 7, fresh, Actor::Own.into(), NOW)
                    .await
            })
        })
        .collect();
    let mut ids = HashSet::new();
    for asking in asking {
        ids.insert(asking.await.unwrap().unwrap());
    }
    assert_eq!(ids.len(), 1);
}

pub async fn test_players_want_a_project_and_a_deployment(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    let ask = async |slug| {
        store
            .ensure_test_player(slug, false, 1, Uuid::max(), Actor::Own.into(), NOW)
            .await
    };
    assert_missing(ask("other").await, "projects");
    assert_missing(ask("demo").await, "deployments");
    add(
        &*store,
        &deployment("demo", Prod, NOW, &[("index.html", 'a')]),
    )
    .await;
    assert_eq!(ask("demo").await.unwrap(), Uuid::max());
}

pub async fn a_test_token_that_is_given_again_is_told_once_an_hour(place: &dyn Place) {
    let store = place.open().await;
    let owner = store.add_guest(guest(&["otter"])).await.unwrap().id;
    let admin = store.add_guest(guest(&["heron"])).await.unwrap().id;
    for slug in ["demo", "other"] {
        store.add_project(project(slug, Some(owner))).await.unwrap();
        let shown = deployment(slug, Dev, NOW, &[("index.html", 'a')]);
        add(&*store, &shown).await;
    }
    let given = async |slug: &str, is_guest, number, actor: Actor, now| {
        let before = events(&*store, owner).await.len();
        let fresh = entropy().uuid_v4();
        let ensured = store.ensure_test_player(slug, is_guest, number, fresh, actor.into(), now);
        ensured.await.unwrap();
        events(&*store, owner).await.len() - before
    };
    let own = Actor::Own;
    for (slug, is_guest, number, actor) in [
        ("demo", false, 1, own),
        ("demo", false, 2, own),
        ("demo", true, 1, own),
        ("demo", false, 1, Actor::Admin(admin)),
        ("other", false, 1, own),
    ] {
        for told in [1, 0, 0] {
            assert_eq!(given(slug, is_guest, number, actor, NOW).await, told);
        }
    }
    assert_eq!(
        given("demo", false, 1, own, NOW + GIVEN_MILLIS - 1).await,
        0
    );
    assert_eq!(given("demo", false, 1, own, NOW + GIVEN_MILLIS).await, 1);
    // A clock that was set back suppresses no event.
    assert_eq!(given("demo", false, 1, own, NOW - 1).await, 1);
}
