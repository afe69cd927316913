//! The requirements on sessions.

use platform_domain::audit::{Actor, AuditKind, AuditQuery};
use platform_domain::session::{KEPT_MILLIS, SESSION_MILLIS, SessionHash};
use platform_domain::sign_in::{SIGN_IN_MILLIS, SignIn};

use super::audit::events;
use super::sign_ins::pending;
use super::{NOW, Place, by, guest, lives, sign_in};

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
    // A player cannot end another player's session.
    assert!(!end(theirs.id, &second.session).await);
    assert!(!end(mine.id, &theirs.session).await);
    assert!(lives(&*store, &theirs.session).await);
    assert!(end(mine.id, &second.session).await);
    assert!(!end(mine.id, &second.session).await, "it has ended");
    assert_eq!(listed().await, [(first.session, None)]);
    let events = store.list_audit_events(AuditQuery::of(mine.id, 1)).await;
    assert_eq!(events.unwrap()[0].kind, AuditKind::SessionsEnded);
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
    // The guest's own session ends with the sign-in; two others follow.
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
    // An ended session leads to "expired", and not to a new guest, for as long as its cookie may
    // exist.
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
