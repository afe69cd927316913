//! The requirements on signing in to accounts.

use platform_domain::audit::{Actor, AuditKind};
use platform_domain::player::PlayerState;
use platform_domain::sign_in::{
    PendingSignIn, SIGN_IN_MILLIS, SignIn, SignInOutcome, StateHash, TakenSignIn,
};

use super::audit::events;
use super::{NOW, Place, assert_conflict, by, guest, lives, sign_in, state};

pub async fn a_new_identity_makes_its_guest_an_account(place: &dyn Place) {
    let store = place.open().await;
    let new = guest(&["otter"]);
    store.add_guest(new.clone()).await.unwrap();
    let request = by(&new, "ann");
    let outcome = store.complete_sign_in(request.clone()).await.unwrap();
    let SignInOutcome::Linked(player) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((player.id, &player.state), (new.id, &PlayerState::Account));
    assert_eq!(player.username, "otter");
    // A session that was planted in the browser before gives no access.
    assert!(!lives(&*store, &new.session).await);
    let session = store.lookup_session(&request.session).await.unwrap();
    assert_eq!(session.unwrap().player, player);
    let identities = store.list_identities(player.id).await.unwrap();
    assert_eq!(identities.len(), 1);
    assert_eq!(
        (identities[0].provider.as_str(), identities[0].linked_at),
        ("id", NOW + 1)
    );
    let events = events(&*store, Some(new.id)).await;
    assert_eq!(events.len(), 1);
    assert_eq!(
        (events[0].kind, events[0].at, events[0].subject.as_deref()),
        (AuditKind::Linked, NOW + 1, Some("id"))
    );
}

/// A new account's name is the one that its identity asks for, unless another player has it or the
/// guest has chosen one.
pub async fn a_new_account_gets_the_name_that_it_asks_for(place: &dyn Place) {
    let store = place.open().await;
    let wishes = |name: &str, request: SignIn| SignIn {
        wished_username: Some(name.to_owned()),
        ..request
    };
    let linked = async |names: &[&str], name: &str, who: &str| {
        let new = guest(names);
        store.add_guest(new.clone()).await.unwrap();
        let request = wishes(name, by(&new, who));
        let session = request.session;
        let outcome = store.complete_sign_in(request).await.unwrap();
        let SignInOutcome::Linked(player) = outcome else {
            panic!("{outcome:?}");
        };
        let stored = store.lookup_session(&session).await.unwrap();
        assert_eq!(stored.unwrap().player, player);
        player.username
    };
    let generated = ["swift-otter-4821", "swift-otter-4822", "swift-otter-4823"];
    assert_eq!(linked(&generated[..1], "Ann", "ann").await, "Ann");
    // Another player has a name that looks the same.
    assert_eq!(linked(&generated[1..2], "ann", "ann-2").await, generated[1]);
    // The guest chose its name.
    assert_eq!(linked(&["heron"], "Bob", "bob").await, "heron");
    // The generated name is free again.
    let reused = store.add_guest(guest(&generated[..1])).await.unwrap();
    assert_eq!(reused.username, generated[0]);
    let created = store
        .complete_sign_in(wishes("Cat", sign_in("cat")))
        .await
        .unwrap();
    assert_eq!(created.player().unwrap().username, "Cat");
    let request = wishes("Cat", sign_in("cat-2"));
    let made = request.usernames[0].clone();
    let created = store.complete_sign_in(request).await.unwrap();
    assert_eq!(created.player().unwrap().username, made);
}

pub async fn a_known_identity_takes_the_guest_into_its_account(place: &dyn Place) {
    let store = place.open().await;
    let (first, second) = (guest(&["otter"]), guest(&["heron"]));
    store.add_guest(first.clone()).await.unwrap();
    store.complete_sign_in(by(&first, "ann")).await.unwrap();
    store.add_guest(second.clone()).await.unwrap();
    let request = by(&second, "ann");
    match store.complete_sign_in(request.clone()).await.unwrap() {
        SignInOutcome::Merged { player, guest } => {
            assert_eq!((player.id, guest), (first.id, second.id));
            assert_eq!(player.username, "otter");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        state(&*store, second.id).await,
        PlayerState::Merged { into: first.id }
    );
    assert!(!lives(&*store, &second.session).await);
    assert!(lives(&*store, &request.session).await);
    // Again, as from a second tab: the guest already belongs to the account.
    let again = store.complete_sign_in(by(&second, "ann")).await.unwrap();
    assert!(matches!(again, SignInOutcome::Returned(player) if player.id == first.id));
    // Another identity does not get it.
    let other = store.complete_sign_in(by(&second, "bob")).await.unwrap();
    assert!(matches!(other, SignInOutcome::Created(player) if player.id != second.id));
    assert_eq!(
        state(&*store, second.id).await,
        PlayerState::Merged { into: first.id }
    );
    let kinds: Vec<_> = events(&*store, Some(second.id)).await;
    assert_eq!(kinds.len(), 1);
    assert_eq!(
        (kinds[0].kind, kinds[0].player, kinds[0].other),
        (AuditKind::Merged, Some(second.id), Some(first.id))
    );
}

pub async fn without_a_guest_an_account_is_made_or_found(place: &dyn Place) {
    let store = place.open().await;
    let request = sign_in("ann");
    let outcome = store.complete_sign_in(request.clone()).await.unwrap();
    let SignInOutcome::Created(made) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(
        (made.id, &made.username),
        (request.new_player, &request.usernames[0])
    );
    assert_eq!(state(&*store, made.id).await, PlayerState::Account);
    let again = SignIn {
        held: Some(request.session),
        ..sign_in("ann")
    };
    let outcome = store.complete_sign_in(again.clone()).await.unwrap();
    assert_eq!(outcome, SignInOutcome::Returned(made.clone()));
    // The session changes with every sign-in.
    assert!(!lives(&*store, &request.session).await);
    assert!(lives(&*store, &again.session).await);
    // Another person's identity leads to another account.
    let switch = SignIn {
        held: Some(again.session),
        ..sign_in("bob")
    };
    let outcome = store.complete_sign_in(switch).await.unwrap();
    assert!(matches!(outcome, SignInOutcome::Created(bob) if bob.id != made.id));
    assert!(!lives(&*store, &again.session).await);
    // Without a free name nothing is added.
    let nameless = SignIn {
        usernames: vec![made.username],
        ..sign_in("cat")
    };
    assert_conflict(
        store.complete_sign_in(nameless.clone()).await,
        ("players", "username"),
    );
    assert!(!lives(&*store, &nameless.session).await);
    let outcome = store.complete_sign_in(sign_in("cat")).await.unwrap();
    assert!(matches!(outcome, SignInOutcome::Created(_)));
}

pub async fn a_guest_that_signed_out_meanwhile_stays_away(place: &dyn Place) {
    let store = place.open().await;
    let new = guest(&["otter"]);
    store.add_guest(new.clone()).await.unwrap();
    store
        .end_session(&new.session, Actor::Own.into(), NOW)
        .await
        .unwrap();
    let outcome = store.complete_sign_in(by(&new, "ann")).await.unwrap();
    assert!(matches!(outcome, SignInOutcome::Created(player) if player.id != new.id));
    assert_eq!(state(&*store, new.id).await, PlayerState::Guest);
    // The browser's later guest is not merged.
    let next = guest(&["heron"]);
    store.add_guest(next.clone()).await.unwrap();
    let request = SignIn {
        guest: Some(new.id),
        ..by(&next, "ann")
    };
    let outcome = store.complete_sign_in(request).await.unwrap();
    assert!(matches!(outcome, SignInOutcome::Merged { guest, .. } if guest == next.id));
}

pub async fn the_guest_that_the_browser_holds_counts_where_none_began(place: &dyn Place) {
    let store = place.open().await;
    let new = guest(&["otter"]);
    store.add_guest(new.clone()).await.unwrap();
    let request = SignIn {
        guest: None,
        ..by(&new, "ann")
    };
    let outcome = store.complete_sign_in(request).await.unwrap();
    assert!(matches!(outcome, SignInOutcome::Linked(player) if player.id == new.id));
    // A guest that began it without its cookie counts as well.
    let other = guest(&["heron"]);
    store.add_guest(other.clone()).await.unwrap();
    let request = SignIn {
        held: None,
        ..by(&other, "bob")
    };
    let outcome = store.complete_sign_in(request).await.unwrap();
    assert!(matches!(outcome, SignInOutcome::Linked(player) if player.id == other.id));
}

pub async fn a_suspended_account_lets_nobody_in_and_changes_nothing(place: &dyn Place) {
    let store = place.open().await;
    let (first, second) = (guest(&["otter"]), guest(&["heron"]));
    store.add_guest(first.clone()).await.unwrap();
    store.complete_sign_in(by(&first, "ann")).await.unwrap();
    store
        .suspend_player(first.id, Some("Why."), Actor::Operator.into(), NOW + 1)
        .await
        .unwrap();
    store.add_guest(second.clone()).await.unwrap();
    let request = by(&second, "ann");
    let outcome = store.complete_sign_in(request.clone()).await.unwrap();
    let told = SignInOutcome::Suspended {
        reason: Some("Why.".into()),
    };
    assert_eq!(outcome, told);
    assert_eq!(state(&*store, second.id).await, PlayerState::Guest);
    assert!(lives(&*store, &second.session).await);
    assert!(!lives(&*store, &request.session).await);
}

pub async fn a_new_identity_at_a_suspended_players_browser_is_an_account_of_its_own(
    place: &dyn Place,
) {
    let store = place.open().await;
    let new = guest(&["otter"]);
    store.add_guest(new.clone()).await.unwrap();
    store
        .suspend_player(new.id, None, Actor::Operator.into(), NOW)
        .await
        .unwrap();
    let request = SignIn {
        held: Some(new.session),
        ..by(&new, "ann")
    };
    let outcome = store.complete_sign_in(request.clone()).await.unwrap();
    let SignInOutcome::Created(account) = outcome else {
        panic!("{outcome:?}");
    };
    assert_ne!(account.id, new.id);
    assert_eq!(account.state, PlayerState::Account);
    assert!(lives(&*store, &request.session).await);
    // A suspended guest is not merged into an existing account either.
    let outcome = store.complete_sign_in(by(&new, "ann")).await.unwrap();
    assert!(matches!(outcome, SignInOutcome::Returned(player) if player.id == account.id));
    let left = PlayerState::Suspended {
        reason: None,
        linked: false,
    };
    assert_eq!(state(&*store, new.id).await, left);
    assert!(store.list_identities(new.id).await.unwrap().is_empty());
}

pub(crate) fn pending(letter: u8) -> PendingSignIn {
    PendingSignIn {
        again: letter % 2 == 1,
        state: StateHash([letter; 32]),
        browser: [7; 32],
        provider: "id".into(),
        nonce: "nonce".into(),
        pkce_verifier: "verifier".into(),
        guest: None,
        redirect: "http://demo.platform.localhost:8787/?a=1#b".into(),
        started_at: NOW,
    }
}

pub async fn a_sign_in_is_taken_once_and_by_its_own_browser(place: &dyn Place) {
    let store = place.open().await;
    let new = guest(&["otter"]);
    store.add_guest(new.clone()).await.unwrap();
    let kept = PendingSignIn {
        guest: Some(new.id),
        ..pending(1)
    };
    store.add_pending_sign_in(kept.clone()).await.unwrap();
    assert_conflict(
        store.add_pending_sign_in(kept.clone()).await,
        ("pending_sign_ins", "state"),
    );
    let take = async |browser| {
        let taken = store.take_pending_sign_in(&kept.state, browser, NOW + 1);
        taken.await.unwrap()
    };
    assert_eq!(take(&[8; 32]).await, TakenSignIn::OtherBrowser);
    let tasks = futures_util::future::join_all((0..8).map(|_| take(&[7; 32]))).await;
    let taken: Vec<_> = tasks
        .into_iter()
        .filter(|taken| *taken != TakenSignIn::Unknown)
        .collect();
    assert_eq!(taken, [TakenSignIn::Taken(kept.clone())]);
    assert_eq!(take(&[7; 32]).await, TakenSignIn::Unknown);
}

pub async fn a_sign_in_is_taken_within_ten_minutes(place: &dyn Place) {
    let store = place.open().await;
    for (letter, now, there) in [
        (1, NOW + SIGN_IN_MILLIS - 1, true),
        (2, NOW + SIGN_IN_MILLIS, false),
    ] {
        store.add_pending_sign_in(pending(letter)).await.unwrap();
        let taken = store
            .take_pending_sign_in(&StateHash([letter; 32]), &[7; 32], now)
            .await
            .unwrap();
        assert_eq!(matches!(taken, TakenSignIn::Taken(_)), there);
    }
}
