//! The requirements on the log of security events.

use platform_domain::audit::{Actor, AuditEvent, AuditKind, AuditQuery};
use platform_store::Store;
use uuid::Uuid;

use super::{Handles, NOW, Place, by, guest, key};

pub(crate) async fn events(store: &dyn Store, player: Option<Uuid>) -> Vec<AuditEvent> {
    let query = AuditQuery {
        player,
        ..AuditQuery::newest(100)
    };
    store.list_audit_events(query).await.unwrap()
}

pub async fn events_are_listed_newest_first_by_player(place: &dyn Place) {
    let store = place.open().await;
    store
        .add_key(key("a"), None, Actor::Own.into())
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

pub async fn who_goes_on_behind_events_while_others_write_misses_none(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (store, name) = (handles.next(), format!("otter-{writer}"));
            tokio::spawn(async move {
                let player = store.add_guest(guest(&[&name])).await.unwrap().id;
                for number in 0..15 {
                    let name = format!("otter-{writer}-{number}");
                    let by = Actor::Own.into();
                    store.rename_player(player, &name, by, NOW).await.unwrap();
                }
            })
        })
        .collect();
    let (mut seen, mut last) = (Vec::new(), 0);
    while seen.len() < 120 {
        let done = writers.iter().all(tokio::task::JoinHandle::is_finished);
        let query = AuditQuery {
            after: Some(last),
            ..AuditQuery::newest(7)
        };
        let page = handles.next().list_audit_events(query).await.unwrap();
        match page.last() {
            Some(event) => last = event.id,
            None if done => break,
            None => {}
        }
        seen.extend(page.into_iter().map(|event| event.id));
    }
    let all = AuditQuery::newest(1_000);
    let all = handles.next().list_audit_events(all).await.unwrap();
    let mut all: Vec<_> = all.iter().map(|event| event.id).collect();
    all.reverse();
    assert_eq!((all.len(), seen), (120, all));
}
