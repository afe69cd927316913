//! The requirements on projects that are taken down.

use platform_domain::audit::{Actor, AuditQuery};
use platform_domain::takedown::{Authority, Change, Changed, Deleted, Disabled, GRACE};
use platform_protocol::names::Environment;
use platform_store::{Removed, StoreError};

use super::{NOW, Place, deployment, guest, project};

pub async fn what_is_taken_down_is_kept_and_told(place: &dyn Place) {
    let store = place.open().await;
    let owner = store.add_guest(guest(&["otter"])).await.unwrap().id;
    store
        .add_project(project("game", Some(owner)))
        .await
        .unwrap();
    store.add_project(project("other", None)).await.unwrap();
    assert!(store.list_standings().await.unwrap().is_empty());
    assert_eq!(store.find_standing("none").await.unwrap(), None);

    let disable = Change::Disable {
        reason: Some("Why.".into()),
    };
    for (change, by, at, expected) in [
        (Change::Enable, Actor::Own, 1, Changed::Already),
        (disable, Actor::Operator, 2, Changed::Done),
        (Change::Enable, Actor::Own, 3, Changed::ByPlatform),
        (Change::Delete, Actor::Own, 4, Changed::Done),
    ] {
        let changed = store.change_standing("game", change.clone(), by.into(), NOW + at);
        assert_eq!(changed.await.unwrap(), expected, "{change:?}");
    }
    drop(store);
    let store = place.open().await;
    let standing = store.find_standing("game").await.unwrap().unwrap();
    let disabled = Disabled {
        at: NOW + 2,
        by: Authority::Platform,
        reason: Some("Why.".into()),
    };
    let deleted = Deleted {
        at: NOW + 4,
        by: Authority::Owner,
    };
    assert_eq!(standing.disabled, Some(disabled));
    assert_eq!(standing.deleted, Some(deleted));
    assert_eq!(standing.forgets_from(), Some(NOW + 4));
    let all = store.list_standings().await.unwrap();
    assert_eq!(all, [("game".to_owned(), standing)]);
    // Until it is removed it belongs to its owner.
    assert_eq!(store.list_projects_of(owner).await.unwrap().len(), 1);

    let events = store.list_audit_events(AuditQuery::of(owner, 10)).await;
    let events: Vec<_> = events
        .unwrap()
        .into_iter()
        .map(|event| (event.kind.as_str(), event.subject, event.actor))
        .collect();
    let game = || Some("game".to_owned());
    assert_eq!(
        events,
        [
            ("project-deleted", game(), Actor::Own),
            ("project-disabled", game(), Actor::Operator),
        ]
    );
    let none = store.change_standing("none", Change::Delete, Actor::Operator.into(), NOW);
    assert_eq!(none.await.unwrap(), Changed::NoProject);
}

pub async fn a_project_of_a_suspended_owner_is_down(place: &dyn Place) {
    let store = place.open().await;
    let owner = store.add_guest(guest(&["otter"])).await.unwrap().id;
    store
        .add_project(project("game", Some(owner)))
        .await
        .unwrap();
    let suspended = store.suspend_player(owner, None, Actor::Operator.into(), NOW + 5);
    assert!(suspended.await.unwrap());
    let all = store.list_standings().await.unwrap();
    assert!(all[0].1.is_down());
    assert_eq!(all[0].1.forgets_from(), Some(NOW + 5));
    let lifted = store.unsuspend_player(owner, Actor::Operator.into(), NOW + 6);
    assert!(lifted.await.unwrap());
    assert!(store.list_standings().await.unwrap().is_empty());
}

pub async fn a_deleted_project_is_removed_after_its_grace_and_its_slug_stays_taken(
    place: &dyn Place,
) {
    let store = place.open().await;
    let owner = store.add_guest(guest(&["otter"])).await.unwrap().id;
    store
        .add_project(project("game", Some(owner)))
        .await
        .unwrap();
    for _ in 0..2 {
        let deployment = deployment("game", Environment::Prod, &["index.html"]);
        store
            .add_deployment(deployment, Actor::Own.into())
            .await
            .unwrap();
    }
    let file = "0f".repeat(32);
    let deleted = store.change_standing("game", Change::Delete, Actor::Own.into(), NOW);
    assert_eq!(deleted.await.unwrap(), Changed::Done);
    let end = NOW + GRACE;
    assert_eq!(
        store
            .remove_deleted(end - 1 - GRACE, end - 1)
            .await
            .unwrap(),
        None
    );

    let mut steps = Vec::new();
    while let Some(step) = store.remove_deleted(end - GRACE, end).await.unwrap() {
        steps.push(step);
    }
    let part = || Removed::Part("game".into());
    assert_eq!(steps, [part(), part(), Removed::Whole("game".into())]);
    assert_eq!(store.find_project("game").await.unwrap(), None);
    assert!(store.list_projects().await.unwrap().is_empty());
    assert!(store.list_projects_of(owner).await.unwrap().is_empty());
    assert_eq!(store.find_standing("game").await.unwrap(), None);
    let unreferenced = store.list_unreferenced_files(vec![file.clone()]).await;
    assert_eq!(unreferenced.unwrap(), [file]);
    // Its address still tells browsers to delete the game's data.
    let all = store.list_standings().await.unwrap();
    assert_eq!(all[0].1.removed_at, Some(end));
    let hosted = store.list_hosted(Some("game")).await.unwrap();
    assert_eq!(hosted[0].standing.removed_at, Some(end));
    let restored = store.change_standing("game", Change::Restore, Actor::Operator.into(), end);
    assert_eq!(restored.await.unwrap(), Changed::NoProject);
    // Its slug stays taken, and it no longer counts for its owner.
    let again = store
        .add_project_within(project("game", Some(owner)), 1, Actor::Own.into())
        .await;
    assert!(
        matches!(again, Err(StoreError::Conflict { .. })),
        "{again:?}"
    );
    let other = project("other", Some(owner));
    store
        .add_project_within(other, 1, Actor::Own.into())
        .await
        .unwrap();
}
