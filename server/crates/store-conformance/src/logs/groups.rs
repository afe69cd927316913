//! The requirements on groups of errors.

use std::sync::Arc;

use platform_domain::audit::Actor;
use platform_domain::clock::Millis;
use platform_domain::counting::HOUR;
use platform_domain::error_group::{
    ErrorGroupFilter, ErrorGroupId, ErrorGroupPage, ErrorGroupQuery, ErrorState, GROUPS,
    GROUPS_KNOWN, GroupedErrors, HOURS_KNOWN, Occurrence, Occurrences, Sample,
};
use platform_domain::log::LogId;
use platform_domain::project::Project;
use platform_domain::takedown::Change;
use platform_protocol::log::LogLevel;
use platform_protocol::names::Environment;
use platform_store::Store;
use uuid::Uuid;

use super::{entry, request};
use crate::{Handles, NOW, Place};

pub(super) fn id(number: u16) -> ErrorGroupId {
    let mut id = [3; 16];
    id[..2].copy_from_slice(&number.to_be_bytes());
    ErrorGroupId(id)
}

/// One error of the group `number`.
pub(super) fn one(number: u16, at: Millis, player: Option<u128>) -> Occurrences {
    let first = Occurrence {
        record: LogId::first_of(at),
        count: 2,
        player: player.map(Uuid::from_u128),
        deployment: Some((Uuid::from_u128(5), Some(at))),
        engine: None,
        sample: Sample {
            kind: "TypeError".into(),
            message: format!("Größe {number}"),
            place: "src/a.ts:1:2".into(),
            ..Sample::default()
        },
    };
    Occurrences::new(id(number), first)
}

pub(super) fn batch(after: i64, upto: i64, groups: Vec<Occurrences>) -> GroupedErrors {
    GroupedErrors {
        slug: "demo".into(),
        environment: Environment::Prod,
        after: LogId(after),
        upto: LogId(upto),
        groups,
        alert_at: None,
    }
}

fn query() -> ErrorGroupQuery {
    ErrorGroupQuery {
        slug: "demo".into(),
        environment: Environment::Prod,
        state: None,
        text: None,
        before: None,
        limit: 100,
        hours_from: 0,
    }
}

async fn list(store: &Arc<dyn Store>, query: ErrorGroupQuery) -> ErrorGroupPage {
    store.list_error_groups(query).await.unwrap()
}

fn ids(page: &ErrorGroupPage) -> Vec<ErrorGroupId> {
    page.groups.iter().map(|group| group.group.id).collect()
}

/// Adds a record with an error, so that the environment is known.
pub(super) async fn log_error(store: &Arc<dyn Store>, slug: &str, at: Millis) {
    let new = request(slug, at, vec![entry("broken", LogLevel::Error)]);
    store.add_log_records(new).await.unwrap();
}

pub(super) async fn add(store: &Arc<dyn Store>, batch: GroupedErrors) {
    assert!(store.add_to_error_groups(batch).await.unwrap());
}

pub async fn environments_with_new_errors_are_known_until_they_are_grouped(place: &dyn Place) {
    let store = place.open().await;
    let ungrouped = async || {
        let found = store.list_ungrouped(9).await.unwrap();
        let names = found.into_iter().map(|one| (one.slug, one.after));
        names.collect::<Vec<_>>()
    };
    let quiet = request("demo", NOW, vec![entry("odd", LogLevel::Warn)]);
    store.add_log_records(quiet).await.unwrap();
    assert_eq!(ungrouped().await, []);
    log_error(&store, "demo", NOW).await;
    log_error(&store, "other", NOW).await;
    let both = ungrouped().await;
    assert_eq!(both.len(), 2);
    assert!(both.iter().all(|(_, after)| *after == LogId(0)));
    // The first record only.
    add(&store, batch(0, LogId::first_of(NOW).0, vec![])).await;
    let next = ("demo".to_owned(), LogId::first_of(NOW));
    assert_eq!(ungrouped().await.last(), Some(&next));
    let end = LogId::last_of(NOW + 5).0;
    add(&store, batch(next.1.0, end, vec![])).await;
    assert_eq!(ungrouped().await.len(), 1);
    log_error(&store, "demo", NOW + 7).await;
    assert_eq!(ungrouped().await.len(), 2);
    assert_eq!(store.list_ungrouped(1).await.unwrap().len(), 1);
    // Nobody groups what was grouped already.
    let late = batch(0, end, vec![one(1, NOW, None)]);
    assert!(!store.add_to_error_groups(late).await.unwrap());
    let unknown = GroupedErrors {
        slug: "unknown".into(),
        ..batch(0, 1, vec![])
    };
    assert!(!store.add_to_error_groups(unknown).await.unwrap());
    assert_eq!(list(&store, query()).await.groups.len(), 0);
}

pub async fn errors_of_one_cause_add_up(place: &dyn Place) {
    let store = place.open().await;
    log_error(&store, "demo", NOW).await;
    let hour = NOW - NOW.rem_euclid(HOUR);
    add(
        &store,
        batch(0, 1, vec![one(1, hour, Some(7)), one(2, hour + 9, None)]),
    )
    .await;
    add(
        &store,
        batch(
            1,
            2,
            vec![one(1, hour + HOUR, Some(8)), one(3, hour + 1, None)],
        ),
    )
    .await;
    let page = list(&store, query()).await;
    assert_eq!((ids(&page), page.next), (vec![id(1), id(2), id(3)], None));
    let first = &page.groups[0];
    assert_eq!((first.group.count, first.group.players.count()), (4, 2));
    assert_eq!(
        (first.group.first_at, first.group.last_at),
        (hour, hour + HOUR)
    );
    assert_eq!(first.hours, [(hour, 2), (hour + HOUR, 2)]);
    assert_eq!(first.group.detail.records.len(), 2);
    let found = store
        .find_error_group("demo", Environment::Prod, id(1), hour + 1)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.group.detail, first.group.detail);
    assert_eq!(found.hours, [(hour + HOUR, 2)]);
    for (slug, environment, number) in [
        ("demo", Environment::Dev, 1),
        ("other", Environment::Prod, 1),
        ("demo", Environment::Prod, 9),
    ] {
        let found = store
            .find_error_group(slug, environment, id(number), 0)
            .await;
        assert!(found.unwrap().is_none());
    }
}

pub async fn groups_are_found_by_state_and_text_and_in_pages(place: &dyn Place) {
    let store = place.open().await;
    log_error(&store, "demo", NOW).await;
    // Two with the same time: the id decides.
    let times = [5, 5, 3, 2, 1];
    let groups = times
        .iter()
        .zip(0..)
        .map(|(at, number)| one(number, NOW + at, Some(1)));
    add(&store, batch(0, 1, groups.collect())).await;
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = list(
            &store,
            ErrorGroupQuery {
                before,
                limit: 2,
                ..query()
            },
        )
        .await;
        seen.extend(ids(&page));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(seen, [id(1), id(0), id(2), id(3), id(4)]);
    let text = async |text: &str| {
        let text = Some(text.to_owned());
        ids(&list(&store, ErrorGroupQuery { text, ..query() }).await)
    };
    assert_eq!(text("GRÖSSE 3").await, []);
    assert_eq!(text("GRÖßE 3").await, [id(3)]);
    assert_eq!(text("typeerror: größe 4 SRC/").await, [id(4)]);
    assert_eq!(text("%").await, []);
    let decision = (ErrorState::Ignored, None, NOW + 9);
    let decide = async |number| {
        store
            .decide_error_group("demo", Environment::Prod, id(number), decision)
            .await
            .unwrap()
    };
    assert!(decide(3).await);
    assert!(!decide(9).await);
    let state = async |state| ids(&list(&store, ErrorGroupQuery { state, ..query() }).await);
    assert_eq!(state(Some(ErrorState::Ignored)).await, [id(3)]);
    assert_eq!(state(Some(ErrorState::Open)).await.len(), 4);
    assert_eq!(state(Some(ErrorState::Resolved)).await, []);
}

pub async fn a_resolved_group_comes_back_with_a_later_deployment(place: &dyn Place) {
    let store = place.open().await;
    log_error(&store, "demo", NOW).await;
    add(&store, batch(0, 1, vec![one(1, NOW, None)])).await;
    let decision = (ErrorState::Resolved, Some(NOW + 5), NOW + 6);
    let decided = store.decide_error_group("demo", Environment::Prod, id(1), decision);
    assert!(decided.await.unwrap());
    let state = async || {
        let group = list(&store, query()).await.groups.remove(0).group;
        (group.state, group.detail.regressed_at)
    };
    // The deployments of these errors were made when they happened.
    add(&store, batch(1, 2, vec![one(1, NOW + 5, None)])).await;
    assert_eq!(state().await, (ErrorState::Resolved, None));
    add(&store, batch(2, 3, vec![one(1, NOW + 7, None)])).await;
    assert_eq!(state().await, (ErrorState::Open, Some(NOW + 7)));
}

pub async fn an_environment_has_only_so_many_groups(place: &dyn Place) {
    let store = place.open().await;
    log_error(&store, "demo", NOW).await;
    let most = u16::try_from(GROUPS).unwrap();
    for (after, start) in (0..).zip((0..most + 200).step_by(100)) {
        // The one that is added last pushes out the one whose last error was first.
        let groups = (start..start + 100).map(|number| {
            let at = NOW + Millis::from(number);
            one(number, at, Some(1_000 + u128::from(number)))
        });
        add(&store, batch(after, after + 1, groups.collect())).await;
    }
    let (mut count, mut before) = (0, None);
    loop {
        let page = list(&store, ErrorGroupQuery { before, ..query() }).await;
        count += page.groups.len();
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(count, GROUPS + 1);
    let others = store.find_error_group("demo", Environment::Prod, ErrorGroupId::OTHERS, 0);
    assert_eq!(others.await.unwrap().unwrap().group.count, 400);
    let find = |number| store.find_error_group("demo", Environment::Prod, id(number), 0);
    assert!(find(199).await.unwrap().is_none());
    assert!(find(200).await.unwrap().is_some());
}

pub async fn groups_are_removed_one_by_one_and_by_a_search(place: &dyn Place) {
    let store = place.open().await;
    log_error(&store, "demo", NOW).await;
    let groups = (1..5).map(|number| one(number, NOW, None));
    add(&store, batch(0, 1, groups.collect())).await;
    let decision = (ErrorState::Ignored, None, NOW);
    let decided = store.decide_error_group("demo", Environment::Prod, id(4), decision);
    assert!(decided.await.unwrap());
    let nothing = ErrorGroupFilter {
        slug: "demo".into(),
        environment: Environment::Prod,
        id: Some(id(9)),
        state: None,
        text: None,
    };
    let remove = async |filter| store.remove_error_groups(filter).await.unwrap();
    let filter = |id, state, text: Option<&str>| ErrorGroupFilter {
        id,
        state,
        text: text.map(str::to_owned),
        ..nothing.clone()
    };
    assert_eq!(remove(nothing.clone()).await, 0);
    let elsewhere = ErrorGroupFilter {
        environment: Environment::Dev,
        ..filter(Some(id(1)), None, None)
    };
    assert_eq!(remove(elsewhere).await, 0);
    assert_eq!(remove(filter(Some(id(1)), None, None)).await, 1);
    assert_eq!(remove(filter(None, None, Some("GRÖSSE 2"))).await, 0);
    assert_eq!(remove(filter(None, None, Some("GRÖßE 2"))).await, 1);
    // The counts by hour went with it.
    add(&store, batch(1, 2, vec![one(1, NOW, None)])).await;
    let again = store.find_error_group("demo", Environment::Prod, id(1), 0);
    let again = again.await.unwrap().unwrap();
    assert_eq!((again.group.count, again.hours[0].1), (2, 2));
    assert_eq!(remove(filter(None, Some(ErrorState::Open), None)).await, 2);
    assert_eq!(ids(&list(&store, query()).await), [id(4)]);
    assert_eq!(remove(filter(None, None, None)).await, 1);
}

pub async fn old_groups_and_counts_are_swept(place: &dyn Place) {
    let store = place.open().await;
    log_error(&store, "demo", NOW).await;
    let times = [GROUPS_KNOWN + 1, GROUPS_KNOWN, HOURS_KNOWN - 1];
    let groups = times
        .iter()
        .zip(0..)
        .map(|(ago, number)| one(number, NOW - ago, None));
    add(&store, batch(0, 1, groups.collect())).await;
    assert_eq!(store.sweep_error_groups(NOW, 1).await.unwrap(), 2);
    assert_eq!(store.sweep_error_groups(NOW, 9).await.unwrap(), 1);
    assert_eq!(store.sweep_error_groups(NOW, 9).await.unwrap(), 0);
    let page = list(&store, query()).await;
    assert_eq!(ids(&page), [id(2), id(1)]);
    assert_eq!(
        (page.groups[0].hours.len(), page.groups[1].hours.len()),
        (1, 0)
    );
}

pub async fn the_groups_of_a_removed_project_go_with_it(place: &dyn Place) {
    let store = place.open().await;
    let project = Project {
        slug: "demo".into(),
        owner: None,
        created_at: NOW,
    };
    store.add_project(project).await.unwrap();
    log_error(&store, "demo", NOW).await;
    add(&store, batch(0, 1, vec![one(1, NOW, None)])).await;
    let deleted = store.change_standing("demo", Change::Delete, Actor::Operator.into(), NOW);
    deleted.await.unwrap();
    while store.remove_deleted(NOW, NOW).await.unwrap().is_some() {}
    while store.sweep_removed_logs(9).await.unwrap() > 0 {}
    log_error(&store, "demo", NOW).await;
    assert_eq!(list(&store, query()).await.groups.len(), 0);
}

pub async fn of_two_who_group_the_same_errors_one_is_counted(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let store = handles.next();
    log_error(&store, "demo", NOW).await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let store = handles.next();
            let new = batch(0, LogId::last_of(NOW).0, vec![one(1, NOW, Some(1))]);
            tokio::spawn(async move { store.add_to_error_groups(new).await.unwrap() })
        })
        .collect();
    let mut added = 0;
    for task in tasks {
        added += usize::from(task.await.unwrap());
    }
    assert_eq!(added, 1);
    assert_eq!(list(&store, query()).await.groups[0].group.count, 2);
}
