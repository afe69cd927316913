//! What any store has to do: one suite, run against every backend.
//!
//! A backend gives a [`Place`], and [`suite!`] makes a test of each function
//! here.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "everything here is a test"
)]
#![expect(missing_docs, reason = "a test's name is its sentence")]

pub mod accounts;
pub mod administration;
pub mod counting;
pub mod devices;
pub mod left_guests;
pub mod log_room;
pub mod logs;
pub mod merges;
pub mod projects;
pub mod room;
pub mod takedown;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use platform_domain::audit::{Actor, AuditKind, AuditQuery};
use platform_domain::clock::Millis;
use platform_domain::entropy::{Entropy, SystemEntropy};
use platform_domain::key::{Revocation, StoredKey};
use platform_domain::player::PlayerState;
use platform_domain::project::{Deployment, FileEntry, Made, Project};
use platform_domain::session::SessionHash;
use platform_protocol::names::Environment;
use platform_store::{NewGuest, Store, StoreError};
use uuid::Uuid;

/// Where a backend keeps one store: empty at first, gone when it is dropped.
#[async_trait]
pub trait Place: Sync {
    /// Opens the store, the first time or again.
    async fn open(&self) -> Arc<dyn Store>;

    /// Opens the copy of a store that `copy_into` wrote into this folder.
    async fn open_copy(&self, folder: &Path) -> Arc<dyn Store>;
}

/// Makes a test of every function of the suite, on the place that `$place`
/// evaluates to.
#[macro_export]
macro_rules! suite {
    ($place:expr; $($name:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let place = $place;
                $crate::$name(&place).await;
            }
        )*
    };
    ($place:expr) => {
        $crate::suite!($place;
            the_first_name_that_nobody_has_is_taken
            names_are_unique_without_regard_to_case
            a_guest_without_a_free_name_leaves_nothing_behind
            a_guest_of_a_known_id_or_session_is_a_typed_conflict
            many_guests_at_once_get_names_of_their_own
            one_failing_write_takes_no_other_with_it
            a_session_is_looked_up_with_its_player
            an_ended_session_is_found_as_ended_and_stays_so
            a_session_is_renewed_forward_only
            keys_come_back_as_they_were_in_the_order_of_adding
            a_key_after_a_stale_one_is_not_added
            of_many_keys_at_once_one_is_added
            removed_keys_are_forgotten
            a_revoked_key_goes_in_the_moment_in_which_its_successor_comes
            resealed_keys_keep_all_but_how_they_lie
            the_life_of_a_keys_tokens_only_ever_grows
            projects_are_found_and_listed_by_slug
            the_last_deployment_of_an_environment_is_the_current_one
            a_deployment_of_an_unknown_project_changes_nothing
            what_was_answered_is_there_after_a_drop_without_close
            closing_writes_out_what_is_queued_and_refuses_what_follows
        );
        mod accounts {
            use super::*;
            $crate::account_suite!($place);
        }
        mod administration {
            use super::*;
            $crate::administration_suite!($place);
        }
        mod counting {
            use super::*;
            $crate::counting_suite!($place);
        }
        mod devices {
            use super::*;
            $crate::device_suite!($place);
        }
        mod left_guests {
            use super::*;
            $crate::left_guest_suite!($place);
        }
        mod log_room {
            use super::*;
            $crate::log_room_suite!($place);
        }
        mod logs {
            use super::*;
            $crate::log_suite!($place);
        }
        mod projects {
            use super::*;
            $crate::project_suite!($place);
            $crate::takedown_suite!($place);
            $crate::room_suite!($place);
        }
    };
}

const NOW: Millis = 1_800_000_000_000;

fn entropy() -> &'static dyn Entropy {
    &SystemEntropy
}

fn guest(names: &[&str]) -> NewGuest {
    NewGuest {
        id: entropy().uuid_v7(NOW),
        usernames: names.iter().map(|name| (*name).to_owned()).collect(),
        session: SessionHash(entropy().bytes()),
        address: "192.0.2.1".into(),
        cap: None,
        awaiting: None,
        now: NOW,
    }
}

fn key(letter: &str) -> StoredKey {
    StoredKey {
        kid: letter.repeat(43),
        private: vec![1, 2, 3],
        sealed: letter == "b",
        created_at: NOW,
        signs_from: NOW + 1,
        token_millis: 900_000,
    }
}

fn project(slug: &str, owner: Option<Uuid>) -> Project {
    Project {
        slug: slug.into(),
        owner,
        created_at: NOW,
    }
}

fn deployment(slug: &str, environment: Environment, paths: &[&str]) -> Deployment {
    let file = |path: &str| FileEntry {
        sha256: "0f".repeat(32),
        size: path.len() as u64,
    };
    let files: BTreeMap<_, _> = paths
        .iter()
        .map(|path| ((*path).into(), file(path)))
        .collect();
    let id = entropy().uuid_v7(NOW);
    Deployment {
        id,
        slug: slug.into(),
        environment,
        files,
        created_at: NOW,
        made: Made::default(),
    }
}

#[track_caller]
fn assert_conflict<T: std::fmt::Debug>(result: Result<T, StoreError>, at: (&str, &str)) {
    match result {
        Err(StoreError::Conflict { table, column }) => assert_eq!((table, column), at),
        other => panic!("a conflict on {at:?} was expected, not {other:?}"),
    }
}

pub async fn the_first_name_that_nobody_has_is_taken(place: &dyn Place) {
    let store = place.open().await;
    let first = store.add_guest(guest(&["otter", "heron"])).await.unwrap();
    assert_eq!(
        (first.username.as_str(), &first.state),
        ("otter", &PlayerState::Guest)
    );
    let second = store
        .add_guest(guest(&["otter", "heron", "robin"]))
        .await
        .unwrap();
    assert_eq!(second.username, "heron");
}

pub async fn names_are_unique_without_regard_to_case(place: &dyn Place) {
    let store = place.open().await;
    store.add_guest(guest(&["Swift-Été-1"])).await.unwrap();
    let second = store
        .add_guest(guest(&["sWIFT-éTÉ-1", "heron"]))
        .await
        .unwrap();
    assert_eq!(second.username, "heron");
}

pub async fn a_guest_without_a_free_name_leaves_nothing_behind(place: &dyn Place) {
    let store = place.open().await;
    store.add_guest(guest(&["otter"])).await.unwrap();
    let late = guest(&["otter", "OTTER"]);
    assert_conflict(store.add_guest(late.clone()).await, ("players", "username"));
    assert_conflict(store.add_guest(guest(&[])).await, ("players", "username"));
    assert_eq!(store.lookup_session(&late.session).await.unwrap(), None);
    // Neither its id nor its session is taken.
    store
        .add_guest(NewGuest {
            usernames: vec!["heron".into()],
            ..late
        })
        .await
        .unwrap();
}

pub async fn a_guest_of_a_known_id_or_session_is_a_typed_conflict(place: &dyn Place) {
    let store = place.open().await;
    let known = guest(&["otter"]);
    store.add_guest(known.clone()).await.unwrap();
    let same_id = NewGuest {
        id: known.id,
        ..guest(&["heron"])
    };
    assert_conflict(store.add_guest(same_id).await, ("players", "id"));
    let same_session = NewGuest {
        session: known.session,
        ..guest(&["robin"])
    };
    assert_conflict(
        store.add_guest(same_session.clone()).await,
        ("sessions", "hash"),
    );
    // The player of the second one was undone with its session.
    let again = NewGuest {
        session: SessionHash([7; 32]),
        ..same_session
    };
    assert_eq!(store.add_guest(again).await.unwrap().username, "robin");
}

pub async fn many_guests_at_once_get_names_of_their_own(place: &dyn Place) {
    let store = place.open().await;
    let names: Vec<String> = (0..200).map(|number| format!("otter-{number}")).collect();
    let tasks: Vec<_> = (0..200)
        .map(|_| {
            let (store, names) = (Arc::clone(&store), names.clone());
            tokio::spawn(async move {
                store
                    .add_guest(NewGuest {
                        usernames: names,
                        ..guest(&[])
                    })
                    .await
            })
        })
        .collect();
    let mut taken = HashSet::new();
    for task in tasks {
        assert!(taken.insert(task.await.unwrap().unwrap().username));
    }
    assert_eq!(taken.len(), 200);
}

pub async fn one_failing_write_takes_no_other_with_it(place: &dyn Place) {
    let store = place.open().await;
    store.add_guest(guest(&["taken"])).await.unwrap();
    let tasks: Vec<_> = (0..90)
        .map(|number| {
            let (store, name) = (Arc::clone(&store), format!("otter-{number}"));
            tokio::spawn(async move {
                let fails = number % 3 == 0;
                let new = guest(&[if fails { "taken" } else { &name }]);
                let result = store.add_guest(new.clone()).await;
                (fails, new.session, result)
            })
        })
        .collect();
    for task in tasks {
        let (fails, session, result) = task.await.unwrap();
        let found = store.lookup_session(&session).await.unwrap();
        if fails {
            assert_conflict(result, ("players", "username"));
            assert_eq!(found, None);
        } else {
            assert_eq!(found.unwrap().player, result.unwrap());
        }
    }
}

pub async fn a_session_is_looked_up_with_its_player(place: &dyn Place) {
    let store = place.open().await;
    let new = guest(&["otter"]);
    let player = store.add_guest(new.clone()).await.unwrap();
    assert_eq!((player.id, player.created_at), (new.id, NOW));
    let session = store.lookup_session(&new.session).await.unwrap().unwrap();
    assert_eq!((session.hash, session.player), (new.session, player));
    assert_eq!(
        (session.created_at, session.renewed_at, session.ended_at),
        (NOW, NOW, None)
    );
    assert_eq!(
        store.lookup_session(&SessionHash([0; 32])).await.unwrap(),
        None
    );
}

pub async fn an_ended_session_is_found_as_ended_and_stays_so(place: &dyn Place) {
    let store = place.open().await;
    let new = guest(&["otter"]);
    store.add_guest(new.clone()).await.unwrap();
    store
        .end_session(&new.session, Actor::Own.into(), NOW + 5)
        .await
        .unwrap();
    store
        .end_session(&new.session, Actor::Own.into(), NOW + 9)
        .await
        .unwrap();
    store.renew_session(&new.session, NOW + 10).await.unwrap();
    store
        .end_session(&SessionHash([0; 32]), Actor::Own.into(), NOW)
        .await
        .unwrap();
    let session = store.lookup_session(&new.session).await.unwrap().unwrap();
    assert_eq!((session.ended_at, session.renewed_at), (Some(NOW + 5), NOW));
    assert!(session.has_ended(NOW + 5));
}

pub async fn a_session_is_renewed_forward_only(place: &dyn Place) {
    let store = place.open().await;
    let new = guest(&["otter"]);
    store.add_guest(new.clone()).await.unwrap();
    for (now, expected) in [(NOW + 7, NOW + 7), (NOW + 3, NOW + 7), (NOW - 9, NOW + 7)] {
        store.renew_session(&new.session, now).await.unwrap();
        let session = store.lookup_session(&new.session).await.unwrap().unwrap();
        assert_eq!(session.renewed_at, expected);
    }
    store
        .renew_session(&SessionHash([0; 32]), NOW)
        .await
        .unwrap();
}

pub async fn keys_come_back_as_they_were_in_the_order_of_adding(place: &dyn Place) {
    let store = place.open().await;
    assert_eq!(store.list_keys().await.unwrap(), []);
    // The order is that of adding, whatever the times say.
    let older = StoredKey {
        created_at: -5,
        signs_from: -4,
        ..key("a")
    };
    assert!(
        store
            .add_key(key("b"), None, Actor::Own.into())
            .await
            .unwrap()
    );
    assert!(
        store
            .add_key(older.clone(), Some(&key("b").kid), Actor::Own.into())
            .await
            .unwrap()
    );
    assert_eq!(store.list_keys().await.unwrap(), [key("b"), older.clone()]);
    assert_conflict(
        store
            .add_key(key("b"), Some(&older.kid), Actor::Own.into())
            .await,
        ("signing_keys", "kid"),
    );
}

pub async fn a_key_after_a_stale_one_is_not_added(place: &dyn Place) {
    let store = place.open().await;
    assert!(
        !store
            .add_key(key("a"), Some(&key("b").kid), Actor::Own.into())
            .await
            .unwrap()
    );
    assert!(
        store
            .add_key(key("a"), None, Actor::Own.into())
            .await
            .unwrap()
    );
    assert!(
        !store
            .add_key(key("b"), None, Actor::Own.into())
            .await
            .unwrap()
    );
    assert!(
        store
            .add_key(key("b"), Some(&key("a").kid), Actor::Own.into())
            .await
            .unwrap()
    );
    assert!(
        !store
            .add_key(key("c"), Some(&key("a").kid), Actor::Own.into())
            .await
            .unwrap()
    );
    assert_eq!(store.list_keys().await.unwrap(), [key("a"), key("b")]);
}

pub async fn of_many_keys_at_once_one_is_added(place: &dyn Place) {
    let store = place.open().await;
    let tasks: Vec<_> = ["a", "b", "c", "d", "e", "f", "g", "h"]
        .into_iter()
        .map(|letter| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                store
                    .add_key(key(letter), None, Actor::Own.into())
                    .await
                    .unwrap()
            })
        })
        .collect();
    let mut added = 0;
    for task in tasks {
        added += usize::from(task.await.unwrap());
    }
    assert_eq!((added, store.list_keys().await.unwrap().len()), (1, 1));
}

pub async fn removed_keys_are_forgotten(place: &dyn Place) {
    let store = place.open().await;
    store
        .add_key(key("a"), None, Actor::Own.into())
        .await
        .unwrap();
    store
        .add_key(key("b"), Some(&key("a").kid), Actor::Own.into())
        .await
        .unwrap();
    store
        .remove_keys(&[key("a").kid, key("z").kid])
        .await
        .unwrap();
    store.remove_keys(&[]).await.unwrap();
    assert_eq!(store.list_keys().await.unwrap(), [key("b")]);
}

pub async fn a_revoked_key_goes_in_the_moment_in_which_its_successor_comes(place: &dyn Place) {
    let store = place.open().await;
    store
        .add_key(key("a"), None, Actor::Own.into())
        .await
        .unwrap();
    let revoke = async |kid: &str, successor, after: &str| {
        let (kid, after) = (key(kid).kid, key(after).kid);
        let revoked = store.revoke_key(&kid, successor, Some(&after), NOW, Actor::Operator.into());
        revoked.await.unwrap()
    };
    assert_eq!(revoke("a", None, "z").await, Revocation::Changed);
    assert_eq!(revoke("z", Some(key("b")), "a").await, Revocation::Missing);
    assert_eq!(store.list_keys().await.unwrap(), [key("a")]);
    assert_eq!(revoke("a", Some(key("b")), "a").await, Revocation::Done);
    assert_eq!(store.list_keys().await.unwrap(), [key("b")]);
    let events = store
        .list_audit_events(AuditQuery::newest(2))
        .await
        .unwrap();
    let told: Vec<_> = events
        .into_iter()
        .map(|event| (event.kind, event.subject.unwrap(), event.actor))
        .collect();
    let by = Actor::Operator;
    assert_eq!(
        told,
        [
            (AuditKind::KeyAdded, key("b").kid, by),
            (AuditKind::KeyRevoked, key("a").kid, by),
        ]
    );
    // A second revocation that was based on the same keys does nothing.
    assert_eq!(revoke("a", Some(key("c")), "a").await, Revocation::Changed);
    assert_eq!(store.list_keys().await.unwrap(), [key("b")]);
}

pub async fn resealed_keys_keep_all_but_how_they_lie(place: &dyn Place) {
    let store = place.open().await;
    store
        .add_key(key("a"), None, Actor::Own.into())
        .await
        .unwrap();
    store
        .add_key(key("c"), Some(&key("a").kid), Actor::Own.into())
        .await
        .unwrap();
    let sealed = vec![(key("a").kid, vec![9, 9]), (key("z").kid, vec![8])];
    store.reseal_keys(sealed).await.unwrap();
    let resealed = StoredKey {
        private: vec![9, 9],
        sealed: true,
        ..key("a")
    };
    assert_eq!(store.list_keys().await.unwrap(), [resealed, key("c")]);
}

pub async fn the_life_of_a_keys_tokens_only_ever_grows(place: &dyn Place) {
    let store = place.open().await;
    store
        .add_key(key("a"), None, Actor::Own.into())
        .await
        .unwrap();
    for (set, expected) in [(1, 900_000), (900_001, 900_001), (5, 900_001)] {
        store.raise_token_life(set).await.unwrap();
        let kept = store.list_keys().await.unwrap();
        assert_eq!(kept[0].token_millis, expected);
    }
}

pub async fn projects_are_found_and_listed_by_slug(place: &dyn Place) {
    let store = place.open().await;
    let owner = store.add_guest(guest(&["otter"])).await.unwrap().id;
    store.add_project(project("zebra", None)).await.unwrap();
    store
        .add_project(project("demo", Some(owner)))
        .await
        .unwrap();
    assert_conflict(
        store.add_project(project("demo", None)).await,
        ("projects", "slug"),
    );
    let nobody = store.add_project(project("other", Some(Uuid::nil()))).await;
    assert!(matches!(
        nobody,
        Err(StoreError::Missing { table: "players" })
    ));
    let all = store.list_projects().await.unwrap();
    assert_eq!(all, [project("demo", Some(owner)), project("zebra", None)]);
    assert_eq!(
        store.find_project("demo").await.unwrap(),
        Some(project("demo", Some(owner)))
    );
    assert_eq!(store.find_project("other").await.unwrap(), None);
}

pub async fn the_last_deployment_of_an_environment_is_the_current_one(place: &dyn Place) {
    use Environment::{Dev, Prod};
    let store = place.open().await;
    store.add_project(project("demo", None)).await.unwrap();
    assert_eq!(
        store.find_current_deployment("demo", Prod).await.unwrap(),
        None
    );
    let first = deployment("demo", Prod, &["index.html", "a/b.js"]);
    let second = deployment("demo", Prod, &["index.html", "c.js"]);
    let other = deployment("demo", Dev, &["index.html"]);
    for added in [&first, &second, &other] {
        store
            .add_deployment(added.clone(), Actor::Own.into())
            .await
            .unwrap();
    }
    let current = |environment| store.find_current_deployment("demo", environment);
    assert_eq!(current(Prod).await.unwrap(), Some(second));
    assert_eq!(current(Dev).await.unwrap(), Some(other));
    assert_conflict(
        store.add_deployment(first, Actor::Own.into()).await,
        ("deployments", "id"),
    );
}

pub async fn a_deployment_of_an_unknown_project_changes_nothing(place: &dyn Place) {
    let store = place.open().await;
    let added = deployment("demo", Environment::Dev, &["index.html"]);
    let missing = store.add_deployment(added.clone(), Actor::Own.into()).await;
    assert!(
        matches!(missing, Err(StoreError::Missing { table: "projects" })),
        "{missing:?}"
    );
    store.add_project(project("demo", None)).await.unwrap();
    let found = store
        .find_current_deployment("demo", Environment::Dev)
        .await
        .unwrap();
    assert_eq!(found, None);
    store
        .add_deployment(added, Actor::Own.into())
        .await
        .unwrap();
}

pub async fn what_was_answered_is_there_after_a_drop_without_close(place: &dyn Place) {
    let new = guest(&["otter"]);
    let store = place.open().await;
    let player = store.add_guest(new.clone()).await.unwrap();
    store
        .add_key(key("a"), None, Actor::Own.into())
        .await
        .unwrap();
    drop(store);
    let store = place.open().await;
    assert_eq!(
        store
            .lookup_session(&new.session)
            .await
            .unwrap()
            .unwrap()
            .player,
        player
    );
    assert_eq!(store.list_keys().await.unwrap(), [key("a")]);
}

pub async fn closing_writes_out_what_is_queued_and_refuses_what_follows(place: &dyn Place) {
    let store = place.open().await;
    let writes = (0..50).map(|number| {
        let (store, name) = (Arc::clone(&store), format!("otter-{number}"));
        async move {
            let new = guest(&[&name]);
            store
                .add_guest(new.clone())
                .await
                .map(|player| (new.session, player))
        }
    });
    // Every write is queued before the close is: the futures are polled in turn.
    let (written, closed) =
        futures_util::join!(futures_util::future::join_all(writes), store.close());
    closed.unwrap();
    store.close().await.unwrap();
    let refused = store.add_guest(guest(&["late"])).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    let reopened = place.open().await;
    for result in written {
        let (session, player) = result.unwrap();
        assert_eq!(
            reopened
                .lookup_session(&session)
                .await
                .unwrap()
                .unwrap()
                .player,
            player
        );
    }
}
