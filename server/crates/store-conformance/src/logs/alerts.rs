//! The requirements on alerts about groups of errors.

use std::sync::Arc;

use platform_domain::audit::Actor;
use platform_domain::clock::Millis;
use platform_domain::counting::HOUR;
use platform_domain::error_alert::{AlertReason, WaitingAlert};
use platform_domain::error_group::{ErrorState, GroupedErrors, Occurrences};
use platform_domain::project::Project;
use platform_domain::takedown::Change;
use platform_protocol::names::Environment;
use platform_store::Store;

use super::groups::{add, batch, id, log_error, one};
use crate::{NOW, Place};

/// The beginning of an hour.
const HOUR_OF_NOW: Millis = NOW - NOW % HOUR;

/// Errors of a project that wants alerts.
fn wanted(after: i64, groups: Vec<Occurrences>, now: Millis) -> GroupedErrors {
    GroupedErrors {
        alert_at: Some(now),
        ..batch(after, after + 1, groups)
    }
}

async fn due(store: &Arc<dyn Store>, now: Millis) -> Vec<WaitingAlert> {
    store.list_due_alerts(now, 100, 100).await.unwrap()
}

fn reasons(alerts: &[WaitingAlert]) -> Vec<(AlertReason, u64)> {
    let each = alerts.iter().map(|one| &one.alert);
    each.map(|alert| (alert.reason, alert.detail.count))
        .collect()
}

pub async fn new_regressed_and_growing_groups_leave_alerts(place: &dyn Place) {
    let store = place.open().await;
    log_error(&store, "demo", NOW).await;
    let start = HOUR_OF_NOW - 2 * HOUR;
    add(&store, batch(0, 1, vec![one(1, start, None)])).await;
    assert_eq!(due(&store, NOW).await, [], "nobody wants to know");
    let both = vec![one(1, start + 1, None), one(2, start + 1, None)];
    add(&store, wanted(1, both, start + 2)).await;
    let alerts = due(&store, NOW).await;
    assert_eq!(reasons(&alerts), [(AlertReason::New, 2)]);
    let WaitingAlert { alert, .. } = &alerts[0];
    assert_eq!(
        (alert.group, alert.detail.kind.as_str()),
        (id(2), "TypeError")
    );
    assert_eq!(alert.detail.message, "Größe 2");
    assert_eq!(
        (alert.detail.place.as_str(), alert.detail.in_hour),
        ("src/a.ts:1:2", 2)
    );
    assert_eq!((alerts[0].slug.as_str(), alerts[0].tries), ("demo", 0));
    assert_eq!(alerts[0].environment, Environment::Prod);
    assert_eq!(alerts[0].made_at, start + 2);
    store.remove_alert(alerts[0].id).await.unwrap();
    // It comes back.
    let resolved = (ErrorState::Resolved, Some(start), start + 3);
    let decided = store.decide_error_group("demo", Environment::Prod, id(2), resolved);
    assert!(decided.await.unwrap());
    add(&store, wanted(2, vec![one(2, start + 4, None)], start + 4)).await;
    let alerts = due(&store, NOW).await;
    assert_eq!(reasons(&alerts), [(AlertReason::Regressed, 4)]);
    store.remove_alert(alerts[0].id).await.unwrap();
    // It grows: the counts of earlier batches count, and it is told once.
    let mut after = 3;
    for many in [40, 4, 1] {
        let mut errors = one(1, HOUR_OF_NOW, None);
        errors.hours.insert(HOUR_OF_NOW, many);
        add(&store, wanted(after, vec![errors], HOUR_OF_NOW + 5)).await;
        assert_eq!(due(&store, NOW + HOUR).await, []);
        after += 1;
    }
    for _ in 0..2 {
        let mut errors = one(1, HOUR_OF_NOW, None);
        errors.hours.insert(HOUR_OF_NOW, 5);
        add(&store, wanted(after, vec![errors], HOUR_OF_NOW + 5)).await;
        after += 1;
    }
    let alerts = due(&store, NOW + HOUR).await;
    assert_eq!(alerts.len(), 1);
    assert_eq!(alerts[0].alert.reason, AlertReason::Growing);
    assert_eq!(alerts[0].alert.detail.in_hour, 50);
}

pub async fn an_environment_has_only_so_many_alerts_an_hour(place: &dyn Place) {
    let store = place.open().await;
    log_error(&store, "demo", NOW).await;
    let many = (1..=15).map(|number| one(number, NOW, None));
    add(&store, wanted(0, many.collect(), NOW)).await;
    let many = (16..=30).map(|number| one(number, NOW, None));
    add(&store, wanted(1, many.collect(), NOW)).await;
    // Only strangers met them.
    assert_eq!(due(&store, NOW).await.len(), 5);
    let later = NOW + HOUR;
    let two = vec![one(31, later, None), one(32, later, None)];
    add(&store, wanted(2, two, later)).await;
    let alerts = due(&store, later).await;
    let left_out = alerts.iter().map(|one| one.alert.detail.left_out);
    assert_eq!(alerts.len(), 7);
    assert_eq!(
        left_out
            .filter(|left_out| *left_out > 0)
            .collect::<Vec<_>>(),
        [25]
    );
}

pub async fn alerts_wait_until_they_are_due(place: &dyn Place) {
    let store = place.open().await;
    log_error(&store, "demo", NOW).await;
    log_error(&store, "other", NOW).await;
    let three = (1..=3).map(|number| one(number, NOW, None));
    add(&store, wanted(0, three.collect(), NOW)).await;
    let other = GroupedErrors {
        slug: "other".into(),
        ..wanted(0, vec![one(1, NOW, None)], NOW + 1)
    };
    add(&store, other).await;
    assert_eq!(due(&store, NOW - 1).await, []);
    let all = due(&store, NOW + 1).await;
    assert_eq!(all.len(), 4);
    // Projects with many do not take the places of others.
    let few = store.list_due_alerts(NOW + 1, 2, 100).await.unwrap();
    let slugs: Vec<&str> = few.iter().map(|one| one.slug.as_str()).collect();
    assert_eq!(slugs, ["demo", "demo", "other"]);
    assert_eq!(store.list_due_alerts(NOW + 1, 2, 1).await.unwrap().len(), 1);
    store.postpone_alert(all[0].id, 3, NOW + 9).await.unwrap();
    let ids: Vec<i64> = due(&store, NOW + 8)
        .await
        .iter()
        .map(|one| one.id)
        .collect();
    assert_eq!(ids, [all[1].id, all[2].id, all[3].id]);
    let last = due(&store, NOW + 9).await.pop().unwrap();
    assert_eq!((last.id, last.tries), (all[0].id, 3));
    store.remove_alerts("demo").await.unwrap();
    let left = due(&store, NOW + 9).await;
    assert_eq!(left, [all[3].clone()]);
    // No other alert gets the id of one that was removed.
    store.remove_alert(all[3].id).await.unwrap();
    add(&store, wanted(1, vec![one(9, NOW, None)], NOW)).await;
    let new = due(&store, NOW).await.remove(0);
    assert!(all.iter().all(|known| known.id != new.id));
    store.postpone_alert(all[3].id, 1, NOW).await.unwrap();
    assert_eq!(due(&store, NOW).await.len(), 1, "what was removed stays so");
}

pub async fn the_alerts_of_a_removed_project_go_with_it(place: &dyn Place) {
    let store = place.open().await;
    let project = Project {
        slug: "demo".into(),
        owner: None,
        created_at: NOW,
    };
    store.add_project(project).await.unwrap();
    log_error(&store, "demo", NOW).await;
    add(&store, wanted(0, vec![one(1, NOW, None)], NOW)).await;
    let deleted = store.change_standing("demo", Change::Delete, Actor::Operator.into(), NOW);
    deleted.await.unwrap();
    while store.remove_deleted(NOW, NOW).await.unwrap().is_some() {}
    while store.sweep_removed_logs(9).await.unwrap() > 0 {}
    assert_eq!(due(&store, NOW).await, []);
}
