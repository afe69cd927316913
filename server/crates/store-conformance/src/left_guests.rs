//! The requirements on guests that were signed out.

use platform_domain::audit::{Actor, AuditKind, AuditQuery, By, Source};
use platform_domain::clock::Millis;
use platform_domain::identity::Identity;
use platform_domain::left_guest::{LEFT_MILLIS, LeftHash, MOST_LEFT, Restore, Restored, SignedOut};
use platform_domain::player::PlayerState;
use platform_domain::session::{SessionHash, SessionStatus};
use platform_domain::sign_in::SignIn;
use platform_store::{NewGuest, Store};
use uuid::Uuid;

use super::{NOW, Place, entropy, guest};

const BROWSER: LeftHash = LeftHash([1; 32]);

async fn add(store: &dyn Store, name: &str) -> NewGuest {
    let new = guest(&[name]);
    store.add_guest(new.clone()).await.unwrap();
    new
}

fn restore(player: Uuid, held: Option<SessionHash>) -> Restore {
    Restore {
        browser: BROWSER,
        guest: player,
        held,
        session: SessionHash(entropy().bytes()),
        address: "192.0.2.9".into(),
        by: Actor::Own.into(),
        now: NOW + 10,
    }
}

/// The names of the guests that [`BROWSER`] can restore.
async fn left(store: &dyn Store, now: Millis) -> Vec<String> {
    let left = store.list_left_guests(&BROWSER, now, 10).await.unwrap();
    left.into_iter().map(|left| left.player.username).collect()
}

fn by(new: &NewGuest, subject: &str) -> SignIn {
    SignIn {
        identity: Identity::new("id", "https://id.example", subject),
        guest: Some(new.id),
        held: None,
        session: SessionHash(entropy().bytes()),
        new_player: entropy().uuid_v7(NOW),
        usernames: vec![format!("account-{subject}")],
        wished_username: None,
        authenticated_at: NOW + 5,
        source: None,
        now: NOW + 5,
    }
}

pub async fn a_guest_that_signed_out_is_come_back_to_in_its_browser_alone(place: &dyn Place) {
    let store = place.open().await;
    let new = add(&*store, "otter").await;
    let out = store
        .sign_out(&new.session, &BROWSER, Actor::Own.into(), NOW + 1)
        .await
        .unwrap();
    assert_eq!(out, SignedOut::Guest);
    let again = store
        .sign_out(&new.session, &BROWSER, Actor::Own.into(), NOW + 2)
        .await
        .unwrap();
    assert_eq!(again, SignedOut::Nothing, "it had ended");
    let old = store.lookup_session(&new.session).await.unwrap().unwrap();
    assert_eq!(old.status(NOW + 3), SessionStatus::Stranger);
    assert!(
        store
            .list_held_guests("192.0.2.1", 0, 9)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(left(&*store, NOW + 3).await, ["otter"], "the name is kept");

    let elsewhere = Restore {
        browser: LeftHash([2; 32]),
        ..restore(new.id, None)
    };
    let refused = store.restore_guest(elsewhere).await.unwrap();
    assert_eq!(refused, Restored::NotThere);
    let request = restore(new.id, None);
    let back = store.restore_guest(request.clone()).await.unwrap();
    let Restored::Back(player) = back else {
        panic!("{back:?}");
    };
    assert_eq!((player.id, player.username.as_str()), (new.id, "otter"));
    let session = store
        .lookup_session(&request.session)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(session.status(NOW + 11), SessionStatus::Good);
    let held = store.list_held_guests("192.0.2.9", 0, 9).await.unwrap();
    assert_eq!(held.len(), 1, "the address that it came back from holds it");
    // Only once.
    let twice = store.restore_guest(restore(new.id, None)).await.unwrap();
    assert_eq!(twice, Restored::NotThere);
    assert!(left(&*store, NOW + 11).await.is_empty());
}

pub async fn the_guest_that_a_browser_has_meanwhile_can_be_come_back_to_as_well(place: &dyn Place) {
    let store = place.open().await;
    let (first, second) = (add(&*store, "otter").await, add(&*store, "heron").await);
    store
        .sign_out(&first.session, &BROWSER, Actor::Own.into(), NOW + 9)
        .await
        .unwrap();
    let request = restore(first.id, Some(second.session));
    let back = store.restore_guest(request.clone()).await.unwrap();
    assert!(matches!(back, Restored::Back(_)), "{back:?}");
    assert_eq!(left(&*store, NOW + 11).await, ["heron"]);
    let session = store
        .lookup_session(&second.session)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(session.ended_at, Some(NOW + 10));
    // Back again, and so on.
    let request = Restore {
        now: NOW + 20,
        ..restore(second.id, Some(request.session))
    };
    let back = store.restore_guest(request).await.unwrap();
    assert!(matches!(back, Restored::Back(player) if player.id == second.id));
    assert_eq!(left(&*store, NOW + 21).await, ["otter"]);
}

pub async fn going_on_as_a_guest_is_written_down_with_who_was_left_for_it(place: &dyn Place) {
    let store = place.open().await;
    let (first, second) = (add(&*store, "otter").await, add(&*store, "heron").await);
    store
        .sign_out(&first.session, &BROWSER, Actor::Own.into(), NOW)
        .await
        .unwrap();
    let restored = async |player| {
        let query = AuditQuery {
            kind: Some(AuditKind::GuestRestored),
            ..AuditQuery::of(player, 10)
        };
        store.list_audit_events(query).await.unwrap()
    };
    // A refused request causes no event.
    let refused = store.restore_guest(restore(second.id, None)).await;
    assert_eq!(refused.unwrap(), Restored::NotThere);
    assert!(restored(second.id).await.is_empty());

    let source = Source {
        network: "192.0.2.9".into(),
        request: "request-1".into(),
    };
    let request = Restore {
        by: By::request(Actor::Own, source),
        ..restore(first.id, Some(second.session))
    };
    let back = store.restore_guest(request).await.unwrap();
    assert!(matches!(back, Restored::Back(_)), "{back:?}");
    let events = restored(first.id).await;
    let [event] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(
        (event.player, event.other),
        (Some(first.id), Some(second.id))
    );
    assert_eq!((event.actor, event.at), (Actor::Own, NOW + 10));
    assert_eq!(event.network.as_deref(), Some("192.0.2.9"));
    assert_eq!(event.request.as_deref(), Some("request-1"));

    // Without a guest that the browser had meanwhile.
    store
        .sign_out(&first.session, &BROWSER, Actor::Own.into(), NOW + 11)
        .await
        .unwrap();
    let back = store.restore_guest(restore(second.id, None)).await.unwrap();
    assert!(matches!(back, Restored::Back(_)), "{back:?}");
    let events = restored(second.id).await;
    let of_second = events.iter().find(|event| event.player == Some(second.id));
    assert_eq!(of_second.unwrap().other, None);
}

pub async fn coming_back_is_no_way_round_a_suspension(place: &dyn Place) {
    let store = place.open().await;
    let (first, second) = (add(&*store, "otter").await, add(&*store, "heron").await);
    store
        .sign_out(&first.session, &BROWSER, Actor::Own.into(), NOW)
        .await
        .unwrap();
    let suspend = async |player| {
        let by = Actor::Operator.into();
        assert!(
            store
                .suspend_player(player, Some("Why."), by, NOW)
                .await
                .unwrap()
        );
    };
    let told = Restored::Suspended {
        reason: Some("Why.".into()),
    };
    // The present player.
    suspend(second.id).await;
    let refused = store
        .restore_guest(restore(first.id, Some(second.session)))
        .await;
    assert_eq!(refused.unwrap(), told);
    // A suspended guest that was signed out can be restored once the suspension is lifted.
    let out = store
        .sign_out(&second.session, &BROWSER, Actor::Own.into(), NOW + 1)
        .await
        .unwrap();
    assert_eq!(out, SignedOut::Guest);
    let refused = store.restore_guest(restore(second.id, None)).await;
    assert_eq!(refused.unwrap(), told);
    assert_eq!(left(&*store, NOW + 2).await, ["otter"]);
    store
        .unsuspend_player(second.id, Actor::Operator.into(), NOW + 3)
        .await
        .unwrap();
    let back = store.restore_guest(restore(second.id, None)).await.unwrap();
    assert!(matches!(back, Restored::Back(player) if player.username == "heron"));
}

pub async fn who_is_signed_in_stays_and_who_became_an_account_does_not_come_back(
    place: &dyn Place,
) {
    let store = place.open().await;
    let (first, second) = (add(&*store, "otter").await, add(&*store, "heron").await);
    store
        .sign_out(&first.session, &BROWSER, Actor::Own.into(), NOW)
        .await
        .unwrap();
    let account = by(&second, "ann");
    store.complete_sign_in(account.clone()).await.unwrap();
    let refused = store
        .restore_guest(restore(first.id, Some(account.session)))
        .await;
    assert_eq!(refused.unwrap(), Restored::SignedIn);
    let out = store
        .sign_out(&account.session, &BROWSER, Actor::Own.into(), NOW + 6)
        .await
        .unwrap();
    assert_eq!(out, SignedOut::Account);
    assert_eq!(
        left(&*store, NOW + 7).await,
        ["otter"],
        "an account has its own way back"
    );
    let ended = store
        .lookup_session(&account.session)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(ended.status(NOW + 7), SessionStatus::Expired);

    // A merged guest cannot be restored.
    let request = restore(first.id, Some(account.session));
    let back = store.restore_guest(request.clone()).await.unwrap();
    assert!(matches!(back, Restored::Back(_)), "{back:?}");
    let merged = SignIn {
        session: SessionHash(entropy().bytes()),
        ..by(&first, "ann")
    };
    store.complete_sign_in(merged).await.unwrap();
    let player = store.find_player(first.id).await.unwrap().unwrap();
    assert!(matches!(player.state, PlayerState::Merged { .. }));
    let out = store
        .sign_out(&request.session, &BROWSER, Actor::Own.into(), NOW + 8)
        .await
        .unwrap();
    assert_eq!(out, SignedOut::Nothing);
    let refused = store.restore_guest(restore(first.id, None)).await.unwrap();
    assert_eq!(refused, Restored::NotThere);
}

pub async fn after_its_time_a_guest_that_signed_out_is_let_go(place: &dyn Place) {
    let store = place.open().await;
    let new = add(&*store, "otter").await;
    store
        .sign_out(&new.session, &BROWSER, Actor::Own.into(), NOW)
        .await
        .unwrap();
    let end = NOW + LEFT_MILLIS;
    store.sweep_sessions(end - 1, 10).await.unwrap();
    assert_eq!(left(&*store, end - 1).await, ["otter"]);
    assert!(left(&*store, end).await.is_empty());
    let late = Restore {
        now: end,
        ..restore(new.id, None)
    };
    assert_eq!(store.restore_guest(late).await.unwrap(), Restored::NotThere);
    store.sweep_sessions(end, 10).await.unwrap();
    let player = store.find_player(new.id).await.unwrap().unwrap();
    assert!(player.username.starts_with("gone-"), "{player:?}");
    assert_eq!(add(&*store, "otter").await.usernames, ["otter"]);
}

pub async fn a_guest_whose_sessions_the_operator_ended_does_not_come_back(place: &dyn Place) {
    let store = place.open().await;
    let new = add(&*store, "otter").await;
    store
        .sign_out(&new.session, &BROWSER, Actor::Own.into(), NOW)
        .await
        .unwrap();
    store
        .end_other_sessions(new.id, None, Actor::Operator.into(), NOW + 1)
        .await
        .unwrap();
    assert!(left(&*store, NOW + 2).await.is_empty());
    let refused = store.restore_guest(restore(new.id, None)).await.unwrap();
    assert_eq!(refused, Restored::NotThere);
}

pub async fn many_short_guests_do_not_push_out_a_long_one(place: &dyn Place) {
    let store = place.open().await;
    let long = add(&*store, "otter").await;
    store
        .sign_out(&long.session, &BROWSER, Actor::Own.into(), NOW + 60_000)
        .await
        .unwrap();
    for number in 0..MOST_LEFT + 5 {
        let new = add(&*store, &format!("heron-{number}")).await;
        store
            .sign_out(&new.session, &BROWSER, Actor::Own.into(), NOW + 1)
            .await
            .unwrap();
    }
    assert_eq!(left(&*store, NOW + 60_001).await[0], "otter");
    let all = store.list_left_guests(&BROWSER, NOW + 60_001, 1_000).await;
    assert_eq!(all.unwrap().len(), MOST_LEFT);
}
