//! The requirements on devices: their codes, their refresh tokens, and the end of their sign-ins.

use platform_domain::audit::{Actor, AuditKind, AuditQuery};
use platform_domain::clock::{CLOCKS_DIFFER, Millis};
use platform_domain::device::{
    CLIENT_ID, CODE_KEPT_MILLIS, DEVICE_LIFE_MILLIS, DEVICE_MILLIS, Decided, FreshDevice,
    LOST_ANSWER_MILLIS, NewDeviceAuthorization, Redeemed, Refreshed, TokenHash, UserCode,
};
use platform_domain::session::SessionHash;
use platform_store::Store;
use uuid::Uuid;

use super::{Handles, NOW, Place, assert_conflict, entropy, guest, sign_in};

fn hash() -> TokenHash {
    TokenHash(entropy().bytes())
}

fn fresh(now: Millis) -> FreshDevice {
    FreshDevice {
        device: entropy().uuid_v4(),
        refresh_token: hash(),
        source: None,
        now,
    }
}

fn new(codes: &[&UserCode], now: Millis) -> NewDeviceAuthorization {
    NewDeviceAuthorization {
        device_code: hash(),
        user_codes: codes.iter().copied().cloned().collect(),
        client: CLIENT_ID.into(),
        network: "192.0.2.1".into(),
        now,
    }
}

/// Begins a sign-in.
async fn begin(store: &dyn Store, now: Millis) -> (TokenHash, UserCode) {
    let code = UserCode::generate(entropy());
    let new = new(&[&code], now);
    let device_code = new.device_code;
    assert_eq!(store.add_device_authorization(new).await.unwrap(), code);
    (device_code, code)
}

async fn account(store: &dyn Store) -> Uuid {
    let subject = entropy().uuid_v4().to_string();
    let outcome = store.complete_sign_in(sign_in(&subject)).await.unwrap();
    outcome.player().unwrap().id
}

/// A signed-in device, with its refresh token.
async fn device(store: &dyn Store, player: Uuid, now: Millis) -> (Uuid, TokenHash) {
    let (device_code, code) = begin(store, now).await;
    let decided = store.decide_device_authorization(&code, player, true, Actor::Own.into(), now);
    assert_eq!(decided.await.unwrap(), Decided::Done);
    let fresh = fresh(now);
    match store
        .redeem_device_code(&device_code, fresh.clone())
        .await
        .unwrap()
    {
        Redeemed::Given(given) => assert_eq!(given.id, player),
        other => panic!("{other:?}"),
    }
    (fresh.device, fresh.refresh_token)
}

/// Returns the next token, if there is one.
async fn refresh(
    store: &dyn Store,
    token: &TokenHash,
    now: Millis,
) -> Result<TokenHash, Refreshed> {
    let fresh = fresh(now);
    match store.refresh_device(token, fresh.clone()).await.unwrap() {
        Refreshed::Given { .. } => Ok(fresh.refresh_token),
        refused => Err(refused),
    }
}

async fn count(store: &dyn Store, player: Uuid, now: Millis) -> usize {
    store.list_devices(player, now).await.unwrap().len()
}

/// The player's events, oldest first, without that of the account's creation.
async fn events(store: &dyn Store, player: Uuid) -> Vec<AuditKind> {
    let query = AuditQuery::of(player, 100);
    let events = store.list_audit_events(query).await.unwrap();
    let kinds = events.iter().rev().map(|event| event.kind);
    kinds.filter(|kind| *kind != AuditKind::Created).collect()
}

pub async fn a_code_is_approved_once_and_redeemed_once(place: &dyn Place) {
    let store = place.open().await;
    let (player, other) = (account(&*store).await, account(&*store).await);
    let (device_code, code) = begin(&*store, NOW).await;
    let found = store.find_device_authorization(&code, NOW).await.unwrap();
    let found = found.unwrap();
    assert_eq!(
        (
            found.client.as_str(),
            found.network.as_str(),
            found.started_at
        ),
        (CLIENT_ID, "192.0.2.1", NOW)
    );
    let pending = store.redeem_device_code(&device_code, fresh(NOW)).await;
    assert_eq!(pending.unwrap(), Redeemed::Pending);
    let decide = |player, approve| {
        store.decide_device_authorization(&code, player, approve, Actor::Own.into(), NOW)
    };
    assert_eq!(decide(player, true).await.unwrap(), Decided::Done);
    for (player, approve) in [(player, true), (other, true), (player, false)] {
        assert_eq!(decide(player, approve).await.unwrap(), Decided::Unknown);
    }
    let found = store.find_device_authorization(&code, NOW).await.unwrap();
    assert_eq!(found, None);

    // Decisions survive a restart.
    drop(store);
    let store = place.open().await;
    let unknown = store.redeem_device_code(&hash(), fresh(NOW)).await.unwrap();
    assert_eq!(unknown, Redeemed::Unknown);
    let given = store.redeem_device_code(&device_code, fresh(NOW + 1)).await;
    assert!(matches!(given.unwrap(), Redeemed::Given(given) if given.id == player));
    let again = store.redeem_device_code(&device_code, fresh(NOW + 2)).await;
    assert_eq!(again.unwrap(), Redeemed::Unknown);
    let devices = store.list_devices(player, NOW + 2).await.unwrap();
    let [device] = &devices[..] else {
        panic!("{devices:?}");
    };
    assert_eq!((device.signed_in_at, device.used_at), (NOW + 1, NOW + 1));
    assert_eq!(count(&*store, other, NOW).await, 0);
    assert_eq!(events(&*store, player).await, [AuditKind::DeviceApproved]);
}

pub async fn of_many_questions_at_once_one_device_comes_to_be(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let store = handles.next();
    let player = account(&*store).await;
    let (device_code, code) = begin(&*store, NOW).await;
    let decided = store.decide_device_authorization(&code, player, true, Actor::Own.into(), NOW);
    decided.await.unwrap();
    let questions: Vec<_> = (0..32)
        .map(|_| {
            let store = handles.next();
            tokio::spawn(async move { store.redeem_device_code(&device_code, fresh(NOW)).await })
        })
        .collect();
    let mut given = 0;
    for question in questions {
        match question.await.unwrap().unwrap() {
            Redeemed::Given(_) => given += 1,
            other => assert_eq!(other, Redeemed::Unknown),
        }
    }
    assert_eq!((given, count(&*store, player, NOW).await), (1, 1));
}

pub async fn the_first_user_code_that_nobody_has_is_taken(place: &dyn Place) {
    let store = place.open().await;
    let (_, taken) = begin(&*store, NOW).await;
    let free = UserCode::generate(entropy());
    let added = store.add_device_authorization(new(&[&taken, &free], NOW));
    assert_eq!(added.await.unwrap(), free);
    let none = store.add_device_authorization(new(&[&taken], NOW)).await;
    assert_conflict(none, ("device_authorizations", "user_code"));
    let twice = NewDeviceAuthorization {
        user_codes: vec![UserCode::generate(entropy())],
        ..new(&[], NOW)
    };
    store.add_device_authorization(twice.clone()).await.unwrap();
    let twice = NewDeviceAuthorization {
        user_codes: vec![UserCode::generate(entropy())],
        ..twice
    };
    let conflict = store.add_device_authorization(twice).await;
    assert_conflict(conflict, ("device_authorizations", "device_code"));
}

pub async fn a_device_that_asks_too_often_is_slowed_down(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store).await;
    let (device_code, code) = begin(&*store, NOW).await;
    // The second of each request, and the expected result: the interval is 5 seconds, then 10, then
    // 15.
    for (second, expected) in [
        (0, Redeemed::Pending),
        (5, Redeemed::Pending),
        (7, Redeemed::SlowDown),
        (17, Redeemed::Pending),
        (22, Redeemed::SlowDown),
        (37, Redeemed::Pending),
        // The clock is set back.
        (20, Redeemed::Pending),
    ] {
        let asked = store.redeem_device_code(&device_code, fresh(NOW + second * 1_000));
        assert_eq!(asked.await.unwrap(), expected, "after {second} s");
    }
    let decided = store.decide_device_authorization(&code, player, true, Actor::Own.into(), NOW);
    decided.await.unwrap();
    let given = store.redeem_device_code(&device_code, fresh(NOW + 20_000));
    assert!(matches!(given.await.unwrap(), Redeemed::Given(_)));
}

pub async fn a_denied_code_stays_denied(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store).await;
    let (device_code, code) = begin(&*store, NOW).await;
    let denied = store.decide_device_authorization(&code, player, false, Actor::Own.into(), NOW);
    assert_eq!(denied.await.unwrap(), Decided::Done);
    let approved = store.decide_device_authorization(&code, player, true, Actor::Own.into(), NOW);
    assert_eq!(approved.await.unwrap(), Decided::Unknown);
    for _ in 0..2 {
        let asked = store.redeem_device_code(&device_code, fresh(NOW)).await;
        assert_eq!(asked.unwrap(), Redeemed::Denied);
    }
    assert_eq!(events(&*store, player).await, [AuditKind::DeviceDenied]);
}

pub async fn both_codes_expire_after_ten_minutes(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store).await;
    let (last, over) = (NOW + 10 * 60_000 - 1, NOW + 10 * 60_000);
    let (device_code, code) = begin(&*store, NOW).await;
    for (now, there) in [(last, true), (over, false)] {
        let found = store.find_device_authorization(&code, now).await.unwrap();
        assert_eq!(found.is_some(), there, "{now}");
    }
    let late = store.decide_device_authorization(&code, player, true, Actor::Own.into(), over);
    assert_eq!(late.await.unwrap(), Decided::Unknown);
    let in_time = store.decide_device_authorization(&code, player, true, Actor::Own.into(), last);
    assert_eq!(in_time.await.unwrap(), Decided::Done);
    let asked = store.redeem_device_code(&device_code, fresh(over)).await;
    assert_eq!(asked.unwrap(), Redeemed::Expired);
    let asked = store.redeem_device_code(&device_code, fresh(last)).await;
    assert!(matches!(asked.unwrap(), Redeemed::Given(_)));
}

pub async fn guests_and_suspended_accounts_let_no_device_in(place: &dyn Place) {
    let store = place.open().await;
    let somebody = store.add_guest(guest(&["otter"])).await.unwrap();
    let player = account(&*store).await;
    let (device_code, code) = begin(&*store, NOW).await;
    let decide =
        |player| store.decide_device_authorization(&code, player, true, Actor::Own.into(), NOW);
    assert_eq!(decide(somebody.id).await.unwrap(), Decided::Guest);
    let reason = Some("Why.".to_owned());
    let suspend = || store.suspend_player(player, reason.as_deref(), Actor::Operator.into(), NOW);
    assert!(suspend().await.unwrap());
    let suspended = Decided::Suspended {
        reason: reason.clone(),
    };
    assert_eq!(decide(player).await.unwrap(), suspended);
    store
        .unsuspend_player(player, Actor::Operator.into(), NOW)
        .await
        .unwrap();
    assert_eq!(decide(player).await.unwrap(), Decided::Done);
    // Between the decision and the device's next request.
    assert!(suspend().await.unwrap());
    let asked = store.redeem_device_code(&device_code, fresh(NOW)).await;
    let suspended = Redeemed::Suspended {
        reason: reason.clone(),
    };
    assert_eq!(asked.unwrap(), suspended);
    assert_eq!(count(&*store, player, NOW).await, 0);
    store
        .unsuspend_player(player, Actor::Operator.into(), NOW)
        .await
        .unwrap();
    let asked = store.redeem_device_code(&device_code, fresh(NOW)).await;
    assert!(matches!(asked.unwrap(), Redeemed::Given(_)));
}

pub async fn a_refresh_token_works_once_and_ends_its_device_when_it_comes_again(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store).await;
    let (id, first) = device(&*store, player, NOW).await;
    let (other, _) = device(&*store, player, NOW).await;
    let second = refresh(&*store, &first, NOW + 1_000).await.unwrap();
    let third = refresh(&*store, &second, NOW + 2_000).await.unwrap();
    let devices = store.list_devices(player, NOW + 2_000).await.unwrap();
    let known: Vec<_> = devices.iter().map(|device| device.id).collect();
    assert_eq!(known, [id, other], "newest use first");
    assert_eq!(
        (devices[0].signed_in_at, devices[0].used_at),
        (NOW, NOW + 2_000)
    );
    // The successor of the first was used, so the response was not lost.
    let again = refresh(&*store, &first, NOW + 2_001).await;
    assert_eq!(again, Err(Refreshed::Reused));
    for token in [&first, &second, &third] {
        let ended = refresh(&*store, token, NOW + 2_002).await;
        assert_eq!(ended, Err(Refreshed::Unknown));
    }
    let left = store.list_devices(player, NOW + 2_002).await.unwrap();
    assert_eq!((left.len(), left[0].id), (1, other));
    assert_eq!(
        events(&*store, player).await,
        [
            AuditKind::DeviceApproved,
            AuditKind::DeviceApproved,
            AuditKind::DeviceTokenReused
        ]
    );
}

pub async fn a_lost_answer_can_be_asked_for_again(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store).await;
    for (passed, works) in [
        (0, true),
        (LOST_ANSWER_MILLIS - 1, true),
        (LOST_ANSWER_MILLIS, false),
        // Another node, whose clock is behind.
        (-CLOCKS_DIFFER, true),
        (-CLOCKS_DIFFER - 1, false),
    ] {
        let (_, first) = device(&*store, player, NOW).await;
        refresh(&*store, &first, NOW).await.unwrap();
        let again = refresh(&*store, &first, NOW + passed).await;
        assert_eq!(again.is_ok(), works, "after {passed} ms");
        if let Ok(next) = again {
            assert!(refresh(&*store, &next, NOW + passed).await.is_ok());
        }
    }
    // Further requests do not extend the time.
    let (_, first) = device(&*store, player, NOW).await;
    for passed in [0, LOST_ANSWER_MILLIS / 2, LOST_ANSWER_MILLIS - 1] {
        assert!(refresh(&*store, &first, NOW + passed).await.is_ok());
    }
    let late = refresh(&*store, &first, NOW + LOST_ANSWER_MILLIS).await;
    assert_eq!(late, Err(Refreshed::Reused));
}

pub async fn a_token_that_was_replaced_ends_its_device(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store).await;
    let (_, first) = device(&*store, player, NOW).await;
    let stolen = refresh(&*store, &first, NOW).await.unwrap();
    let kept = refresh(&*store, &first, NOW).await.unwrap();
    let thief = refresh(&*store, &stolen, NOW).await;
    assert_eq!(thief, Err(Refreshed::Reused));
    let ended = refresh(&*store, &kept, NOW).await;
    assert_eq!(ended, Err(Refreshed::Unknown));
}

pub async fn of_many_refreshes_at_once_all_but_the_last_are_replaced(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let store = handles.next();
    let player = account(&*store).await;
    let (id, first) = device(&*store, player, NOW).await;
    let questions: Vec<_> = (0..16)
        .map(|_| {
            let store = handles.next();
            tokio::spawn(async move { refresh(&*store, &first, NOW).await })
        })
        .collect();
    for question in questions {
        question.await.unwrap().unwrap();
    }
    let devices = store.list_devices(player, NOW).await.unwrap();
    assert_eq!((devices.len(), devices[0].id), (1, id));
}

pub async fn a_suspended_account_gets_no_token_and_keeps_its_device(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store).await;
    let (_, first) = device(&*store, player, NOW).await;
    store
        .suspend_player(player, None, Actor::Operator.into(), NOW)
        .await
        .unwrap();
    for _ in 0..2 {
        let refused = refresh(&*store, &first, NOW).await;
        assert_eq!(refused, Err(Refreshed::Suspended { reason: None }));
    }
    store
        .unsuspend_player(player, Actor::Operator.into(), NOW)
        .await
        .unwrap();
    assert!(refresh(&*store, &first, NOW).await.is_ok());
}

pub async fn any_token_of_a_device_revokes_it(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store).await;
    for uses_old in [false, true] {
        let (_, first) = device(&*store, player, NOW).await;
        let second = refresh(&*store, &first, NOW).await.unwrap();
        let token = if uses_old { first } else { second };
        assert!(
            store
                .revoke_refresh_token(&token, Actor::Own.into(), NOW)
                .await
                .unwrap()
        );
        assert!(
            !store
                .revoke_refresh_token(&token, Actor::Own.into(), NOW)
                .await
                .unwrap()
        );
        let ended = refresh(&*store, &second, NOW).await;
        assert_eq!(ended, Err(Refreshed::Unknown));
    }
    assert!(
        !store
            .revoke_refresh_token(&hash(), Actor::Own.into(), NOW)
            .await
            .unwrap()
    );
    assert_eq!(count(&*store, player, NOW).await, 0);
    assert_eq!(
        events(&*store, player).await,
        [
            AuditKind::DeviceApproved,
            AuditKind::DeviceRevoked,
            AuditKind::DeviceApproved,
            AuditKind::DeviceRevoked
        ]
    );
}

pub async fn a_device_is_ended_by_its_player_alone(place: &dyn Place) {
    let store = place.open().await;
    let (player, other) = (account(&*store).await, account(&*store).await);
    let (id, token) = device(&*store, player, NOW).await;
    assert!(
        !store
            .end_device(other, id, Actor::Own.into(), NOW)
            .await
            .unwrap()
    );
    let next = refresh(&*store, &token, NOW).await.unwrap();
    assert!(
        store
            .end_device(player, id, Actor::Own.into(), NOW)
            .await
            .unwrap()
    );
    assert!(
        !store
            .end_device(player, id, Actor::Own.into(), NOW)
            .await
            .unwrap()
    );
    let ended = refresh(&*store, &next, NOW).await;
    assert_eq!(ended, Err(Refreshed::Unknown));
    assert_eq!(events(&*store, other).await, []);
}

pub async fn ending_all_sessions_ends_all_devices(place: &dyn Place) {
    let store = place.open().await;
    let (player, other) = (account(&*store).await, account(&*store).await);
    let (_, token) = device(&*store, player, NOW).await;
    let (_, others) = device(&*store, other, NOW).await;
    let (approved, code) = begin(&*store, NOW).await;
    let decided = store.decide_device_authorization(&code, player, true, Actor::Own.into(), NOW);
    assert_eq!(decided.await.unwrap(), Decided::Done);
    // The account's own session, and the device.
    let ended = store
        .end_other_sessions(player, None, Actor::Operator.into(), NOW + 2)
        .await;
    assert_eq!(ended.unwrap(), 2);
    let gone = refresh(&*store, &token, NOW).await;
    assert_eq!(gone, Err(Refreshed::Unknown));
    let late = store.redeem_device_code(&approved, fresh(NOW)).await;
    assert_eq!(late.unwrap(), Redeemed::Unknown);
    assert!(refresh(&*store, &others, NOW).await.is_ok());

    let (_, token) = device(&*store, player, NOW).await;
    let kept = SessionHash(entropy().bytes());
    let ended = store
        .end_other_sessions(player, Some(&kept), Actor::Operator.into(), NOW)
        .await;
    assert_eq!(ended.unwrap(), 1);
    assert!(refresh(&*store, &token, NOW).await.is_err());
}

pub async fn a_device_ends_ninety_days_after_its_last_use(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store).await;
    let (_, first) = device(&*store, player, NOW).await;
    let last = NOW + DEVICE_MILLIS - 1;
    let second = refresh(&*store, &first, last).await.unwrap();
    let over = last + DEVICE_MILLIS;
    assert_eq!(count(&*store, player, over - 1).await, 1);
    assert_eq!(count(&*store, player, over).await, 0);
    let late = refresh(&*store, &second, over).await;
    assert_eq!(late, Err(Refreshed::Unknown));
}

pub async fn a_device_ends_a_year_after_its_sign_in(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store).await;
    let (_, mut token) = device(&*store, player, NOW).await;
    let id = store.list_devices(player, NOW).await.unwrap()[0].id;
    let end = NOW + DEVICE_LIFE_MILLIS;
    let mut now = NOW;
    while now < end - 1 {
        now = (now + DEVICE_MILLIS - 1).min(end - 1);
        token = refresh(&*store, &token, now).await.unwrap();
    }
    let sweep = async |now| store.sweep_sessions(now, 100).await.unwrap();
    sweep(end - 1).await;
    assert_eq!(count(&*store, player, end - 1).await, 1);
    assert_eq!(count(&*store, player, end).await, 0);
    let late = refresh(&*store, &token, end).await;
    assert_eq!(late, Err(Refreshed::Unknown));
    let ended = store.end_device(player, id, Actor::Own.into(), end);
    assert!(!ended.await.unwrap(), "nothing is left to end");
    sweep(end).await;
    // Not even a clock that goes back finds it.
    let gone = refresh(&*store, &token, end - 1).await;
    assert_eq!(gone, Err(Refreshed::Unknown));
}

pub async fn what_means_nothing_any_more_is_swept(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store).await;
    let (device_code, _) = begin(&*store, NOW).await;
    let asked = async |now| {
        store
            .redeem_device_code(&device_code, fresh(now))
            .await
            .unwrap()
    };
    let sweep = async |now| store.sweep_sessions(now, 100).await.unwrap();
    let kept = NOW + CODE_KEPT_MILLIS;
    assert_eq!(sweep(kept - 1).await, 0);
    assert_eq!(asked(kept - 1).await, Redeemed::Expired);
    assert_eq!(sweep(kept).await, 1);
    assert_eq!(asked(kept).await, Redeemed::Unknown);

    let (_, first) = device(&*store, player, NOW).await;
    let used = NOW + DEVICE_MILLIS / 2;
    let second = refresh(&*store, &first, used).await.unwrap();
    // The first token is too old to count as reused.
    assert_eq!(sweep(NOW + DEVICE_MILLIS).await, 1);
    let again = refresh(&*store, &first, used).await;
    assert_eq!(again, Err(Refreshed::Unknown));
    assert_eq!(count(&*store, player, used).await, 1);
    assert_eq!(sweep(used + DEVICE_MILLIS).await, 1);
    assert_eq!(sweep(used + DEVICE_MILLIS).await, 0);
    let gone = refresh(&*store, &second, used).await;
    assert_eq!(gone, Err(Refreshed::Unknown));
}
