//! The requirements on players: guests, their names, and their limits.

use std::collections::HashSet;

use platform_domain::audit::{Actor, AuditQuery};
use platform_domain::clock::Millis;
use platform_domain::player::{PlayerState, UNCONFIRMED_MILLIS};
use platform_domain::session::SessionHash;
use platform_domain::sign_in::PendingSignIn;
use platform_store::{GuestCap, NewGuest, StoreError};
use uuid::Uuid;

use super::sign_ins::pending;
use super::{Handles, NOW, Place, assert_conflict, by, guest};

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
    // Neither its id nor its session exists.
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
    // The second one's player was rolled back with its session.
    let again = NewGuest {
        session: SessionHash([7; 32]),
        ..same_session
    };
    assert_eq!(store.add_guest(again).await.unwrap().username, "robin");
}

pub async fn many_guests_at_once_get_names_of_their_own(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let names: Vec<String> = (0..200).map(|number| format!("otter-{number}")).collect();
    let tasks: Vec<_> = (0..200)
        .map(|_| {
            let (store, names) = (handles.next(), names.clone());
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
    let handles = Handles::open(place).await;
    let store = handles.next();
    store.add_guest(guest(&["taken"])).await.unwrap();
    let tasks: Vec<_> = (0..90)
        .map(|number| {
            let (store, name) = (handles.next(), format!("otter-{number}"));
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

pub async fn a_name_is_changed_unless_somebody_has_it(place: &dyn Place) {
    let store = place.open().await;
    let (first, second) = (guest(&["otter"]), guest(&["heron"]));
    store.add_guest(first.clone()).await.unwrap();
    store.add_guest(second.clone()).await.unwrap();
    assert_conflict(
        store
            .rename_player(first.id, "HERON", Actor::Own.into(), NOW)
            .await,
        ("players", "username"),
    );
    // A player may take their own name in another spelling.
    for name in ["OTTER", "robin", "robin"] {
        store
            .rename_player(first.id, name, Actor::Own.into(), NOW)
            .await
            .unwrap();
        let session = store.lookup_session(&first.session).await.unwrap().unwrap();
        assert_eq!(session.player.username, name);
    }
    let events = store.list_audit_events(AuditQuery::of(first.id, 10)).await;
    assert_eq!(events.unwrap().len(), 2, "a name that stays is no event");
    // The old name is free again.
    store
        .rename_player(second.id, "otter", Actor::Own.into(), NOW)
        .await
        .unwrap();
    let missing = store
        .rename_player(Uuid::nil(), "nobody-here", Actor::Own.into(), NOW)
        .await
        .unwrap_err();
    assert!(matches!(missing, StoreError::Missing { table: "players" }));
}

pub async fn an_address_holds_no_more_guests_than_it_may(place: &dyn Place) {
    let store = place.open().await;
    let add = async |name: &str, address: &str, now: Millis| {
        let new = NewGuest {
            address: address.into(),
            now,
            cap: Some(GuestCap {
                guests: 3,
                seen_since: now - 1_000,
                awaited_since: now - 1_000,
                awaited: 1,
            }),
            ..guest(&[name])
        };
        let added = store.add_guest(new.clone()).await;
        added.map(|_| new)
    };
    let mut held = Vec::new();
    for name in ["one", "two", "three"] {
        held.push(add(name, "here", NOW).await.unwrap());
    }
    let refused = async |name: &str| {
        let error = add(name, "here", NOW).await.unwrap_err();
        assert!(matches!(error, StoreError::GuestCap), "{error:?}");
    };
    refused("four").await;
    add("elsewhere", "there", NOW).await.unwrap();
    // Each of these makes room for another guest.
    store
        .end_session(&held[0].session, Actor::Own.into(), NOW)
        .await
        .unwrap();
    add("four", "here", NOW).await.unwrap();
    refused("five").await;
    store.complete_sign_in(by(&held[1], "ann")).await.unwrap();
    held.push(add("five", "here", NOW).await.unwrap());
    refused("six").await;
    store.complete_sign_in(by(&held[3], "ann")).await.unwrap();
    add("six", "here", NOW).await.unwrap();
    refused("seven").await;
    store
        .end_other_sessions(held[2].id, None, Actor::Operator.into(), NOW)
        .await
        .unwrap();
    let last = add("seven", "here", NOW).await.unwrap();
    refused("eight").await;
    // Later only the guest in use counts.
    let late = NOW + 1_001;
    store.see_guest(last.id, late).await.unwrap();
    for name in ["eight", "nine"] {
        add(name, "here", late).await.unwrap();
    }
    assert!(add("ten", "here", late).await.is_err());
}

pub async fn of_many_at_once_an_address_holds_no_more_than_it_may(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let tasks: Vec<_> = (0..60)
        .map(|number| {
            let store = handles.next();
            let new = NewGuest {
                cap: Some(GuestCap {
                    guests: 7,
                    seen_since: 0,
                    awaited_since: 0,
                    awaited: 1,
                }),
                address: format!("192.0.2.{}", number % 3),
                ..guest(&[&format!("otter-{number}")])
            };
            tokio::spawn(async move { store.add_guest(new).await })
        })
        .collect();
    let mut refused = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(_) => {}
            Err(StoreError::GuestCap) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(refused, 60 - 3 * 7);
    let store = handles.next();
    for number in 0..3 {
        let address = format!("192.0.2.{number}");
        let held = store.list_held_guests(&address, 0, 60).await.unwrap();
        assert_eq!(held.len(), 7);
    }
}

/// A guest whose cookie has not come back to `game` yet.
fn awaited(name: &str, game: &str, now: Millis) -> NewGuest {
    NewGuest {
        awaiting: Some(game.into()),
        cap: Some(cap(now)),
        now,
        ..guest(&[name])
    }
}

/// Three guests for an address, and rows of two with a cookie that has not come back.
const fn cap(now: Millis) -> GuestCap {
    GuestCap {
        guests: 3,
        seen_since: 0,
        awaited_since: now - AWAITED_PERIOD,
        awaited: 2,
    }
}

/// For how long a guest with a cookie that has not come back counts here.
const AWAITED_PERIOD: Millis = 10;

pub async fn guests_whose_cookie_has_not_come_back_are_few_and_held_by_nobody(place: &dyn Place) {
    let store = place.open().await;
    let mut made = Vec::new();
    for number in 0..10 {
        let at = NOW + number * AWAITED_PERIOD;
        let new = awaited(&format!("otter-{number}"), "game:loop", at);
        assert!(store.add_guest(new.clone()).await.unwrap().awaited);
        made.push(new);
    }
    let there = async |new: &NewGuest| store.lookup_session(&new.session).await.unwrap();
    for gone in &made[..8] {
        assert_eq!(there(gone).await, None);
        assert_eq!(store.find_player(gone.id).await.unwrap(), None);
        assert!(!store.confirm_guest(gone.id, None, NOW).await.unwrap());
    }
    assert!(there(&made[8]).await.unwrap().player.awaited);
    assert!(
        store
            .list_held_guests("192.0.2.1", 0, 9)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(store.list_holding_addresses(0, 9).await.unwrap().is_empty());
    // Another game and another address have limits of their own.
    let late = NOW + 10 * AWAITED_PERIOD;
    let other = awaited("heron", "game:other", late);
    let elsewhere = NewGuest {
        address: "192.0.2.2".into(),
        ..awaited("robin", "game:loop", late)
    };
    for new in [&other, &elsewhere] {
        store.add_guest(new.clone()).await.unwrap();
    }
    // A guest whose cookie comes back counts, and stays.
    for new in [&made[8], &made[9], &other] {
        for _ in 0..2 {
            let counts = store.confirm_guest(new.id, Some(cap(late)), late).await;
            assert!(counts.unwrap());
        }
        assert!(!there(new).await.unwrap().player.awaited);
        assert_eq!(there(new).await.unwrap().player.seen_at, late);
    }
    assert_eq!(
        store
            .list_held_guests("192.0.2.1", 0, 9)
            .await
            .unwrap()
            .len(),
        3
    );
    let full = store
        .add_guest(awaited("late", "game:loop", late + 1_000))
        .await;
    assert!(matches!(full, Err(StoreError::GuestCap)), "{full:?}");
    assert!(there(&elsewhere).await.is_some());
}

pub async fn new_guests_count_for_a_while_against_the_limit_of_their_game_alone(place: &dyn Place) {
    let store = place.open().await;
    let add = async |name: &str, game: &str, now: Millis| {
        let cap = GuestCap {
            awaited: 3,
            ..cap(now)
        };
        let room = store
            .has_room_for_new_guest("192.0.2.1", game, cap)
            .await
            .unwrap();
        let new = NewGuest {
            cap: Some(cap),
            ..awaited(name, game, now)
        };
        let added = store.add_guest(new.clone()).await;
        assert!(
            room || added.is_err(),
            "reading and adding agree: {added:?}"
        );
        added.map(|_| new).map_err(|error| (error, room))
    };
    let mut made = Vec::new();
    for name in ["one", "two", "three"] {
        made.push(add(name, "game:loop", NOW).await.unwrap());
    }
    let full = add("four", "game:loop", NOW + AWAITED_PERIOD).await;
    assert!(
        matches!(full, Err((StoreError::GuestCap, false))),
        "{full:?}"
    );
    let other = add("heron", "game:other", NOW).await.unwrap();
    // Those that are not new any more do not count.
    let late = NOW + AWAITED_PERIOD + 1;
    made.push(add("five", "game:loop", late).await.unwrap());
    made.push(add("six", "game:loop", late).await.unwrap());
    // Their cookies come back together: as many count as the address may hold.
    let mut counted = 0;
    for new in made.iter().chain([&other]) {
        let now = Some(cap(late));
        counted += usize::from(store.confirm_guest(new.id, now, late).await.unwrap());
    }
    assert_eq!(counted, 3);
    for (name, game) in [("seven", "game:loop"), ("eight", "game:other")] {
        let full = add(name, game, late).await;
        let is_full = matches!(full, Err((StoreError::GuestCap, true)));
        assert!(is_full, "the game is not why: {full:?}");
    }
    // The guest that found no room waits for it.
    let session = store.lookup_session(&other.session).await.unwrap().unwrap();
    assert!(session.player.awaited);
    let six = made.last().unwrap();
    store
        .end_session(&six.session, Actor::Own.into(), late)
        .await
        .unwrap();
    assert!(
        store
            .confirm_guest(other.id, Some(cap(late)), late)
            .await
            .unwrap()
    );
}

pub async fn guests_whose_cookie_did_not_come_back_are_swept(place: &dyn Place) {
    let store = place.open().await;
    let names = ["left", "seen", "asked", "suspended"];
    let [left, seen, asked, suspended] = names.map(|name| NewGuest {
        cap: None,
        ..awaited(name, "game:a", NOW)
    });
    for new in [&left, &seen, &asked, &suspended] {
        store.add_guest(new.clone()).await.unwrap();
    }
    assert!(store.confirm_guest(seen.id, None, NOW).await.unwrap());
    let began = PendingSignIn {
        guest: Some(asked.id),
        ..pending(1)
    };
    store.add_pending_sign_in(began).await.unwrap();
    store
        .suspend_player(suspended.id, None, Actor::Operator.into(), NOW)
        .await
        .unwrap();
    let end = NOW + UNCONFIRMED_MILLIS;
    assert_eq!(store.sweep_sessions(NOW, 10).await.unwrap(), 0);
    store.sweep_sessions(end, 10).await.unwrap();
    for (new, stays) in [
        (&left, false),
        (&seen, true),
        (&asked, true),
        (&suspended, true),
    ] {
        let found = store.lookup_session(&new.session).await.unwrap();
        assert_eq!(found.is_some(), stays, "{:?}", new.usernames);
    }
    // A sign-in that was begun keeps the guest, but does not make it count.
    let session = store.lookup_session(&asked.session).await.unwrap().unwrap();
    assert!(session.player.awaited);
    // Its cookie makes it again, under the same id and name.
    let again = NewGuest {
        awaiting: None,
        now: end,
        ..left
    };
    let player = store.add_guest(again).await.unwrap();
    assert_eq!((player.username.as_str(), player.awaited), ("left", false));
}
