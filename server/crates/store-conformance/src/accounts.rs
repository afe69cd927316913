//! What any store has to do with accounts: signing in, sessions, suspension,
//! the cap on guests, the log of security events.

use platform_domain::audit::{Actor, AuditEvent, AuditKind, AuditQuery};
use platform_domain::clock::Millis;
use platform_domain::identity::Identity;
use platform_domain::player::{PlayerState, SuspendedPlayer, UNCONFIRMED_MILLIS};
use platform_domain::session::{KEPT_MILLIS, SESSION_MILLIS, SessionHash};
use platform_domain::sign_in::{
    PendingSignIn, SIGN_IN_MILLIS, SignIn, SignInOutcome, StateHash, TakenSignIn,
};
use platform_store::{GuestCap, NewGuest, Store, StoreError};
use uuid::Uuid;

use super::{NOW, Place, assert_conflict, entropy, guest};

/// Makes a test of every function here, as [`suite!`](super::suite) does.
#[doc(hidden)]
#[macro_export]
macro_rules! account_suite {
    ($place:expr; $($module:ident::$name:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let place = $place;
                $crate::$module::$name(&place).await;
            }
        )*
    };
    ($place:expr) => {
        $crate::account_suite!($place;
            accounts::a_new_identity_makes_its_guest_an_account
            accounts::one_session_of_a_player_ends_alone
            accounts::whose_sessions_ended_is_listed_with_the_last_end_of_each
            accounts::a_known_identity_takes_the_guest_into_its_account
            accounts::without_a_guest_an_account_is_made_or_found
            accounts::a_guest_that_signed_out_meanwhile_stays_away
            accounts::the_guest_that_the_browser_holds_counts_where_none_began
            accounts::a_suspended_account_lets_nobody_in_and_changes_nothing
            accounts::a_new_identity_at_a_suspended_players_browser_is_an_account_of_its_own
            accounts::a_sign_in_is_taken_once_and_by_its_own_browser
            accounts::a_sign_in_is_taken_within_ten_minutes
            accounts::other_sessions_end_and_the_kept_one_stays
            accounts::a_name_is_changed_unless_somebody_has_it
            accounts::a_suspension_is_found_with_its_reason_until_it_is_lifted
            accounts::an_address_holds_no_more_guests_than_it_may
            accounts::guests_whose_cookie_has_not_come_back_are_few_and_held_by_nobody
            accounts::guests_whose_cookie_did_not_come_back_are_swept
            accounts::what_means_nothing_any_more_is_swept
            accounts::events_are_listed_newest_first_by_player
            merges::any_history_of_one_place_agrees_with_the_rules
            merges::sign_ins_at_once_leave_every_identity_one_account
        );
    };
}

/// A sign-in of `subject`, by a browser that has no guest.
pub(crate) fn sign_in(subject: &str) -> SignIn {
    SignIn {
        identity: Identity::new("id", "https://id.example", subject),
        guest: None,
        held: None,
        session: SessionHash(entropy().bytes()),
        new_player: entropy().uuid_v7(NOW),
        usernames: vec![format!("made-{}", entropy().uuid_v4().as_fields().0)],
        source: None,
        authenticated_at: NOW,
        now: NOW + 1,
    }
}

/// A sign-in of `subject`, by the browser of this guest.
pub(crate) fn by(new: &NewGuest, subject: &str) -> SignIn {
    SignIn {
        guest: Some(new.id),
        held: Some(new.session),
        ..sign_in(subject)
    }
}

pub async fn state(store: &dyn Store, player: Uuid) -> PlayerState {
    store.find_player(player).await.unwrap().unwrap().state
}

/// Whether the session exists and has not ended.
pub async fn lives(store: &dyn Store, session: &SessionHash) -> bool {
    let found = store.lookup_session(session).await.unwrap();
    found.is_some_and(|session| !session.has_ended(NOW + 2))
}

async fn events(store: &dyn Store, player: Option<Uuid>) -> Vec<AuditEvent> {
    let query = AuditQuery {
        player,
        ..AuditQuery::newest(100)
    };
    store.list_audit_events(query).await.unwrap()
}

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
    // What was planted in the browser before opens nothing.
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
    // Again, as from a second tab: the guest is the account's already.
    let again = store.complete_sign_in(by(&second, "ann")).await.unwrap();
    assert!(matches!(again, SignInOutcome::Returned(player) if player.id == first.id));
    // And nobody else's: another identity does not get it.
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
    // The identity of somebody else takes no account along.
    let switch = SignIn {
        held: Some(again.session),
        ..sign_in("bob")
    };
    let outcome = store.complete_sign_in(switch).await.unwrap();
    assert!(matches!(outcome, SignInOutcome::Created(bob) if bob.id != made.id));
    assert!(!lives(&*store, &again.session).await);
    // Where no name is free, nothing is made.
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
    // What the browser plays as by now does not.
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
    // One that began without its cookie counts as well.
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
    // Nor does one that is suspended go into an account that there is.
    let outcome = store.complete_sign_in(by(&new, "ann")).await.unwrap();
    assert!(matches!(outcome, SignInOutcome::Returned(player) if player.id == account.id));
    let left = PlayerState::Suspended {
        reason: None,
        linked: false,
    };
    assert_eq!(state(&*store, new.id).await, left);
    assert!(store.list_identities(new.id).await.unwrap().is_empty());
}

pub async fn one_session_of_a_player_ends_alone(place: &dyn Place) {
    let store = place.open().await;
    let (mine, theirs) = (guest(&["otter"]), guest(&["heron"]));
    store.add_guest(mine.clone()).await.unwrap();
    store.add_guest(theirs.clone()).await.unwrap();
    let first = by(&mine, "ann");
    store.complete_sign_in(first.clone()).await.unwrap();
    let second = SignIn {
        guest: None,
        ..by(&mine, "ann")
    };
    store.complete_sign_in(second.clone()).await.unwrap();
    store
        .note_browser(&second.session, "Firefox on Linux")
        .await
        .unwrap();
    let listed = async || {
        let sessions = store.list_sessions(mine.id, NOW + 1).await.unwrap();
        let browsers = sessions.into_iter().map(|one| (one.hash, one.browser));
        let mut browsers: Vec<_> = browsers.collect();
        browsers.sort_by_key(|(hash, _)| *hash != first.session);
        browsers
    };
    let named = Some("Firefox on Linux".to_owned());
    assert_eq!(
        listed().await,
        [(first.session, None), (second.session, named.clone())]
    );
    let session = store.lookup_session(&second.session).await.unwrap();
    assert_eq!(session.unwrap().browser, named);

    let end = async |player, hash| {
        let ended = store.end_session_of(player, hash, Actor::Own.into(), NOW + 1);
        ended.await.unwrap()
    };
    // Nobody ends somebody else's.
    assert!(!end(theirs.id, &second.session).await);
    assert!(!end(mine.id, &theirs.session).await);
    assert!(lives(&*store, &theirs.session).await);
    assert!(end(mine.id, &second.session).await);
    assert!(!end(mine.id, &second.session).await, "it has ended");
    assert_eq!(listed().await, [(first.session, None)]);
    let events = store.list_audit_events(AuditQuery::of(mine.id, 1)).await;
    assert_eq!(events.unwrap()[0].kind, AuditKind::SessionsEnded);
}

fn pending(letter: u8) -> PendingSignIn {
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

pub async fn other_sessions_end_and_the_kept_one_stays(place: &dyn Place) {
    let store = place.open().await;
    let sign_ins = [sign_in("ann"), sign_in("ann"), sign_in("ann")];
    for request in &sign_ins {
        store.complete_sign_in(request.clone()).await.unwrap();
    }
    let player = sign_ins[0].new_player;
    let listed = store.list_sessions(player, NOW + 2).await.unwrap();
    assert_eq!(listed.len(), 3);
    assert!(
        store
            .list_sessions(player, NOW + 1 + SESSION_MILLIS)
            .await
            .unwrap()
            .is_empty()
    );
    let kept = &sign_ins[1].session;
    let end = async |kept| {
        store
            .end_other_sessions(player, kept, Actor::Operator.into(), NOW + 2)
            .await
            .unwrap()
    };
    assert_eq!(end(Some(kept)).await, 2);
    let listed = store.list_sessions(player, NOW + 2).await.unwrap();
    assert_eq!(
        listed
            .iter()
            .map(|session| session.hash)
            .collect::<Vec<_>>(),
        [*kept]
    );
    assert_eq!(end(Some(kept)).await, 0);
    assert_eq!(end(None).await, 1);
    assert!(!lives(&*store, kept).await);
    let ended = events(&*store, Some(player)).await;
    let ended = ended
        .iter()
        .filter(|event| event.kind == AuditKind::SessionsEnded);
    assert_eq!(ended.count(), 2, "what ended nothing is no event");
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
    // One's own name in another spelling is one's own.
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
    // What was given up is free.
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

pub async fn whose_sessions_ended_is_listed_with_the_last_end_of_each(place: &dyn Place) {
    let store = place.open().await;
    let (one, other) = (guest(&["otter"]), guest(&["heron"]));
    for new in [&one, &other] {
        store.add_guest(new.clone()).await.unwrap();
    }
    let listed = async |since| {
        let mut ended = store.list_ended_sessions(since).await.unwrap();
        ended.sort_unstable();
        ended
    };
    assert!(listed(0).await.is_empty());
    // The guest's own session ends with the sign-in, and is followed by two.
    let first = by(&one, "ann");
    store.complete_sign_in(first.clone()).await.unwrap();
    assert_eq!(listed(0).await, [(one.id, NOW + 1)]);
    let second = SignIn {
        now: NOW + 2,
        ..sign_in("ann")
    };
    store.complete_sign_in(second.clone()).await.unwrap();
    let ended = store
        .end_other_sessions(one.id, Some(&second.session), Actor::Own.into(), NOW + 5)
        .await;
    assert_eq!(ended.unwrap(), 1);
    assert_eq!(listed(0).await, [(one.id, NOW + 5)]);
    assert_eq!(listed(NOW + 5).await, [(one.id, NOW + 5)]);
    assert!(listed(NOW + 6).await.is_empty());
    store
        .end_other_sessions(other.id, None, Actor::Own.into(), NOW + 6)
        .await
        .unwrap();
    assert_eq!(listed(NOW + 6).await, [(other.id, NOW + 6)]);
    assert_eq!(listed(0).await.len(), 2);
}

pub async fn a_suspension_is_found_with_its_reason_until_it_is_lifted(place: &dyn Place) {
    let store = place.open().await;
    let new = guest(&["otter"]);
    store.add_guest(new.clone()).await.unwrap();
    assert!(
        !store
            .unsuspend_player(new.id, Actor::Operator.into(), NOW)
            .await
            .unwrap()
    );
    assert!(
        !store
            .suspend_player(Uuid::nil(), None, Actor::Operator.into(), NOW)
            .await
            .unwrap()
    );
    for reason in [None, Some("Why."), Some("Why else.")] {
        assert!(
            store
                .suspend_player(new.id, reason, Actor::Operator.into(), NOW + 5)
                .await
                .unwrap()
        );
        let expected = PlayerState::Suspended {
            reason: reason.map(str::to_owned),
            linked: false,
        };
        assert_eq!(state(&*store, new.id).await, expected);
    }
    let listed = async |since| store.list_suspended_players(since).await.unwrap();
    let expected = SuspendedPlayer {
        id: new.id,
        reason: Some("Why else.".into()),
    };
    assert_eq!(listed(NOW + 5).await, [expected]);
    assert!(listed(NOW + 6).await.is_empty());
    assert!(
        store
            .unsuspend_player(new.id, Actor::Operator.into(), NOW + 7)
            .await
            .unwrap()
    );
    assert_eq!(state(&*store, new.id).await, PlayerState::Guest);
    assert!(listed(0).await.is_empty());
    // Why it was stays known.
    let events = store.list_audit_events(AuditQuery::of(new.id, 10)).await;
    let events = events.unwrap().into_iter();
    let told: Vec<_> = events.map(|event| (event.kind, event.subject)).collect();
    let suspended = |reason: Option<&str>| (AuditKind::Suspended, reason.map(str::to_owned));
    let expected = [
        (AuditKind::Unsuspended, None),
        suspended(Some("Why else.")),
        suspended(Some("Why.")),
        suspended(None),
    ];
    assert_eq!(told, expected);
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
    // Each of these makes room for one.
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
    // After a while only the one in use counts.
    let late = NOW + 1_001;
    store.see_guest(last.id, late).await.unwrap();
    for name in ["eight", "nine"] {
        add(name, "here", late).await.unwrap();
    }
    assert!(add("ten", "here", late).await.is_err());
}

/// A guest whose cookie has yet to come back to `game`.
fn awaited(name: &str, game: &str, now: Millis) -> NewGuest {
    NewGuest {
        awaiting: Some(game.into()),
        cap: Some(GuestCap {
            guests: 3,
            seen_since: 0,
            awaited: 2,
        }),
        now,
        ..guest(&[name])
    }
}

pub async fn guests_whose_cookie_has_not_come_back_are_few_and_held_by_nobody(place: &dyn Place) {
    let store = place.open().await;
    let mut made = Vec::new();
    for number in 0..10 {
        let new = awaited(&format!("otter-{number}"), "game:loop", NOW + number);
        assert!(store.add_guest(new.clone()).await.unwrap().awaited);
        made.push(new);
    }
    let there = async |new: &NewGuest| store.lookup_session(&new.session).await.unwrap();
    for gone in &made[..8] {
        assert_eq!(there(gone).await, None);
        assert_eq!(store.find_player(gone.id).await.unwrap(), None);
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
    // Another game and another address have places of their own.
    let other = awaited("heron", "game:other", NOW + 20);
    let elsewhere = NewGuest {
        address: "192.0.2.2".into(),
        ..awaited("robin", "game:loop", NOW + 20)
    };
    for new in [&other, &elsewhere] {
        store.add_guest(new.clone()).await.unwrap();
    }
    // Whose cookie comes back counts, and stays.
    for new in [&made[8], &made[9], &other] {
        store.see_guest(new.id, NOW + 30).await.unwrap();
        assert!(!there(new).await.unwrap().player.awaited);
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
        .add_guest(awaited("late", "game:loop", NOW + 40))
        .await;
    assert!(matches!(full, Err(StoreError::GuestCap)), "{full:?}");
    assert!(there(&elsewhere).await.is_some());
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
    store.see_guest(seen.id, NOW).await.unwrap();
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
    // Its cookie makes it again, under the same id and name.
    let again = NewGuest {
        awaiting: None,
        now: end,
        ..left
    };
    let player = store.add_guest(again).await.unwrap();
    assert_eq!((player.username.as_str(), player.awaited), ("left", false));
}

pub async fn what_means_nothing_any_more_is_swept(place: &dyn Place) {
    let store = place.open().await;
    let requests = [sign_in("ann"), sign_in("ann"), sign_in("ann")];
    for request in &requests {
        store.complete_sign_in(request.clone()).await.unwrap();
    }
    store
        .end_session(&requests[0].session, Actor::Own.into(), NOW + 2)
        .await
        .unwrap();
    store.add_pending_sign_in(pending(1)).await.unwrap();
    let sweep = async |now, limit| store.sweep_sessions(now, limit).await.unwrap();
    assert_eq!(sweep(NOW + 1, 100).await, 0);
    assert_eq!(sweep(NOW + SIGN_IN_MILLIS, 100).await, 1);
    // An ended session says "expired", and not "a new guest", for as long as
    // its cookie may live.
    assert_eq!(sweep(NOW + KEPT_MILLIS, 100).await, 0);
    let found = store.lookup_session(&requests[0].session).await.unwrap();
    assert!(found.is_some());
    store
        .renew_session(&requests[1].session, NOW + 100)
        .await
        .unwrap();
    let end = NOW + 1 + KEPT_MILLIS;
    assert_eq!(sweep(end, 1).await, 1);
    assert_eq!(sweep(end, 1).await, 1);
    assert_eq!(sweep(end, 1).await, 0);
    assert!(
        store
            .lookup_session(&requests[1].session)
            .await
            .unwrap()
            .is_some()
    );
}

pub async fn events_are_listed_newest_first_by_player(place: &dyn Place) {
    let store = place.open().await;
    store
        .add_key(super::key("a"), None, Actor::Own.into())
        .await
        .unwrap();
    let (first, second) = (guest(&["otter"]), guest(&["heron"]));
    for new in [&first, &second] {
        store.add_guest(new.clone()).await.unwrap();
        store.complete_sign_in(by(new, "ann")).await.unwrap();
    }
    store
        .rename_player(first.id, "robin", Actor::Own.into(), NOW + 9)
        .await
        .unwrap();
    let kinds = |events: &[AuditEvent]| events.iter().map(|event| event.kind).collect::<Vec<_>>();
    let all = events(&*store, None).await;
    assert_eq!(
        kinds(&all),
        [
            AuditKind::Renamed,
            AuditKind::Merged,
            AuditKind::Linked,
            AuditKind::KeyAdded
        ]
    );
    assert_eq!(all[3].subject.as_deref(), Some("a".repeat(43).as_str()));
    assert_eq!(
        kinds(&events(&*store, Some(first.id)).await),
        [AuditKind::Renamed, AuditKind::Merged, AuditKind::Linked]
    );
    assert_eq!(
        kinds(&events(&*store, Some(second.id)).await),
        [AuditKind::Merged]
    );
    let page = AuditQuery {
        before: Some(all[1].id),
        ..AuditQuery::newest(1)
    };
    assert_eq!(store.list_audit_events(page).await.unwrap(), all[2..3]);
}
