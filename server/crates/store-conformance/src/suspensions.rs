//! The requirements on suspended players.

use platform_domain::audit::{Actor, AuditKind, AuditQuery};
use platform_domain::player::{PlayerState, SuspendedPlayer};
use uuid::Uuid;

use super::{NOW, Place, guest, state};

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
    // The reason stays in the log.
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
