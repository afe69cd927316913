//! The requirements on frontend log records.

mod alerts;
mod errors;
mod groups;
mod search;

use std::collections::HashSet;
use std::sync::Arc;

use platform_domain::clock::Millis;
use platform_domain::log::{LogEntry, LogId, LogQuery, LogTail, NewLogRecords, StoredLogRecord};
use platform_domain::page::PageId;
use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use platform_store::{Store, StoreError};
use uuid::Uuid;

use super::{Handles, NOW, Place};

pub use self::alerts::{
    alerts_wait_until_they_are_due, an_environment_has_only_so_many_alerts_an_hour,
    new_regressed_and_growing_groups_leave_alerts, the_alerts_of_a_removed_project_go_with_it,
};
pub use self::errors::{
    errors_are_counted_by_deployment_and_hour,
    numbers_of_errors_outlive_their_records_and_end_some_day,
};
pub use self::groups::{
    a_resolved_group_comes_back_with_a_later_deployment, an_environment_has_only_so_many_groups,
    environments_with_new_errors_are_known_until_they_are_grouped, errors_of_one_cause_add_up,
    groups_are_found_by_state_and_text_and_in_pages, groups_are_removed_one_by_one_and_by_a_search,
    of_two_who_group_the_same_errors_one_is_counted, old_groups_and_counts_are_swept,
    the_groups_of_a_removed_project_go_with_it,
};
pub use self::search::{
    a_page_ends_after_so_many_bytes_and_goes_on_from_there,
    a_search_finds_what_is_asked_for_and_nothing_else,
    a_search_looks_at_so_many_and_goes_on_from_there,
};

fn entry(message: &str, level: LogLevel) -> LogEntry {
    LogEntry {
        time: NOW - 7,
        level,
        source: LogSource::Console,
        message: message.into(),
        stack: None,
        url: None,
        line: None,
        column: None,
        metadata: None,
        count: 1,
    }
}

fn request(slug: &str, received_at: Millis, entries: Vec<LogEntry>) -> NewLogRecords {
    NewLogRecords {
        slug: slug.into(),
        environment: Environment::Prod,
        deployment: None,
        player: None,
        page: PageId([9; 16]),
        received_at,
        entries,
    }
}

fn infos(slug: &str, received_at: Millis, messages: &[&str]) -> NewLogRecords {
    let entries = messages
        .iter()
        .map(|message| entry(message, LogLevel::Info));
    request(slug, received_at, entries.collect())
}

fn all(slug: &str) -> LogQuery {
    LogQuery {
        slug: slug.into(),
        environment: Environment::Prod,
        level: LogLevel::Debug,
        before: None,
        limit: 10_000,
        bytes: usize::MAX,
    }
}

async fn list(store: &Arc<dyn Store>, query: LogQuery) -> Vec<StoredLogRecord> {
    store.list_log_records(query).await.unwrap().records
}

async fn last(store: &Arc<dyn Store>, slug: &str) -> LogId {
    let last = store.last_log_id(slug, Environment::Prod, NOW).await;
    last.unwrap()
}

fn messages(records: &[StoredLogRecord]) -> Vec<&str> {
    let texts = records.iter().map(|record| record.entry.message.as_str());
    texts.collect()
}

pub async fn a_record_comes_back_as_it_was(place: &dyn Place) {
    let store = place.open().await;
    let full = NewLogRecords {
        deployment: Some(Uuid::from_u128(5)),
        player: Some(Uuid::from_u128(6)),
        entries: LogSource::ALL
            .into_iter()
            .map(|source| LogEntry {
                time: NOW - 1,
                level: LogLevel::Error,
                source,
                // Every character but U+0000, which PostgreSQL cannot keep: it is replaced before.
                message: "m\u{1}ä🦦".into(),
                stack: Some("s".into()),
                url: Some(String::new()),
                line: Some(u32::MAX),
                column: Some(0),
                metadata: Some(r#"{"a":[null]}"#.into()),
                count: u32::MAX,
            })
            .collect(),
        ..request("demo", NOW, Vec::new())
    };
    store.add_log_records(full.clone()).await.unwrap();
    let found = list(&store, all("demo")).await;
    let entries: Vec<_> = found.iter().rev().map(|record| &record.entry).collect();
    assert_eq!(entries, full.entries.iter().collect::<Vec<_>>());
    for record in found {
        assert_eq!(
            (record.deployment, record.player, record.page),
            (full.deployment, full.player, full.page)
        );
        assert_eq!(record.id.received_at(), NOW);
    }
}

pub async fn the_newest_of_an_environment_come_first(place: &dyn Place) {
    let store = place.open().await;
    assert!(list(&store, all("demo")).await.is_empty());
    for new in [
        infos("demo", NOW, &["a", "b"]),
        infos("other", NOW + 1, &["x"]),
        NewLogRecords {
            environment: Environment::Dev,
            ..infos("demo", NOW + 2, &["y"])
        },
        infos("demo", NOW + 3, &[]),
        infos("demo", NOW + 4, &["c"]),
    ] {
        store.add_log_records(new).await.unwrap();
    }
    assert_eq!(messages(&list(&store, all("demo")).await), ["c", "b", "a"]);
    assert_eq!(messages(&list(&store, all("other")).await), ["x"]);
    let dev = LogQuery {
        environment: Environment::Dev,
        ..all("demo")
    };
    assert_eq!(messages(&list(&store, dev).await), ["y"]);
    assert!(list(&store, all("nobody")).await.is_empty());
}

pub async fn only_records_as_grave_as_asked_for_are_listed(place: &dyn Place) {
    let store = place.open().await;
    let entries = LogLevel::ALL
        .into_iter()
        .chain(LogLevel::ALL)
        .map(|level| entry(level.as_str(), level));
    let new = request("demo", NOW, entries.collect());
    store.add_log_records(new).await.unwrap();
    for (level, newest) in [
        (
            LogLevel::Debug,
            vec!["error", "warn", "info", "debug", "error"],
        ),
        (
            LogLevel::Info,
            vec!["error", "warn", "info", "error", "warn"],
        ),
        (LogLevel::Warn, vec!["error", "warn", "error", "warn"]),
        (LogLevel::Error, vec!["error", "error"]),
    ] {
        let query = LogQuery {
            level,
            limit: 5,
            bytes: usize::MAX,
            ..all("demo")
        };
        assert_eq!(messages(&list(&store, query).await), newest, "{level:?}");
    }
}

pub async fn pages_of_records_join_without_gap_or_overlap(place: &dyn Place) {
    let store = place.open().await;
    let mut expected = Vec::new();
    for number in 0..30_u8 {
        let level = LogLevel::ALL[usize::from(number) % 4];
        let entries = (0..3).map(|part| entry(&format!("{number}.{part}"), level));
        let entries: Vec<_> = entries.collect();
        expected.extend(entries.iter().map(|entry| entry.message.clone()));
        let new = request("demo", NOW + Millis::from(number / 2), entries);
        store.add_log_records(new).await.unwrap();
    }
    expected.reverse();
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let query = LogQuery {
            before,
            limit: 7,
            bytes: usize::MAX,
            ..all("demo")
        };
        let page = list(&store, query).await;
        assert!(page.len() <= 7);
        let Some(last) = page.last() else { break };
        before = Some(last.id);
        found.extend(page.into_iter().map(|record| record.entry.message));
    }
    assert_eq!(found, expected);
}

pub async fn records_of_one_millisecond_keep_their_order(place: &dyn Place) {
    let store = place.open().await;
    for pair in [["a", "b"], ["c", "d"], ["e", "f"]] {
        let new = infos("demo", NOW, &pair);
        store.add_log_records(new).await.unwrap();
    }
    let found = list(&store, all("demo")).await;
    assert_eq!(messages(&found), ["f", "e", "d", "c", "b", "a"]);
    assert!(found.iter().all(|record| record.id.received_at() == NOW));
}

pub async fn many_requests_at_once_are_all_kept(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let store = handles.next();
    let tasks: Vec<_> = (0..100)
        .map(|number| {
            let store = handles.next();
            tokio::spawn(async move {
                let text = number.to_string();
                let new = infos("demo", NOW, &[text.as_str(); 10]);
                store.add_log_records(new).await
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let found = list(&store, all("demo")).await;
    let ids: HashSet<LogId> = found.iter().map(|record| record.id).collect();
    assert_eq!((found.len(), ids.len()), (1_000, 1_000));
    for request in found.chunks(10) {
        let first = &request[0].entry.message;
        let whole = request.iter().all(|record| record.entry.message == *first);
        assert!(whole, "a request's records lie together");
    }
}

pub async fn a_clock_set_back_takes_no_records_away(place: &dyn Place) {
    let store = place.open().await;
    for (time, text) in [(NOW, "a"), (NOW - 60_000, "b"), (NOW, "c")] {
        let new = infos("demo", time, &[text]);
        store.add_log_records(new).await.unwrap();
    }
    assert_eq!(messages(&list(&store, all("demo")).await), ["c", "b", "a"]);
}

fn tail(slug: &str, after: LogId) -> LogTail {
    LogTail {
        slug: slug.into(),
        environment: Environment::Prod,
        level: LogLevel::Debug,
        after,
        now: NOW,
        limit: 7,
        bytes: usize::MAX,
        backlog: None,
    }
}

pub async fn who_reads_on_while_others_write_misses_nothing(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let store = handles.next();
    let start = last(&store, "demo").await;
    let writers: Vec<_> = (0..20)
        .map(|writer: i64| {
            let store = handles.next();
            tokio::spawn(async move {
                for number in 0..20 {
                    // Requests are not committed in the order of their times.
                    let time = NOW + (writer * 7 + number * 3) % 40;
                    let texts = [format!("{writer}.{number}a"), format!("{writer}.{number}b")];
                    let new = infos("demo", time, &texts.each_ref().map(String::as_str));
                    store.add_log_records(new).await.unwrap();
                }
            })
        })
        .collect();
    let mut seen = Vec::new();
    let mut tail = tail("demo", start);
    while seen.len() < 800 {
        let done = writers.iter().all(tokio::task::JoinHandle::is_finished);
        let page = handles
            .next()
            .list_log_records_after(tail.clone())
            .await
            .unwrap();
        if let Some(last) = page.records.last() {
            assert!(last.id > tail.after);
            tail.after = last.id;
        } else if done {
            break;
        }
        seen.extend(page.records);
    }
    let mut order = list(&store, all("demo")).await;
    order.reverse();
    assert_eq!(order.len(), 800);
    assert_eq!(messages(&seen), messages(&order));
}

pub async fn who_is_far_behind_is_told_how_many_were_left_out(place: &dyn Place) {
    let store = place.open().await;
    for number in 0..10 {
        let (one, other) = (format!("{number}a"), format!("{number}b"));
        let mut new = infos("demo", NOW, &[&one, &other]);
        new.entries[1].level = LogLevel::Error;
        store.add_log_records(new).await.unwrap();
        let others = infos("other", NOW, &["x"]);
        store.add_log_records(others).await.unwrap();
    }
    let read = async |backlog, level| {
        let tail = LogTail {
            backlog,
            level,
            ..tail("demo", LogId(0))
        };
        let page = store.list_log_records_after(tail).await.unwrap();
        let texts: Vec<_> = messages(&page.records)
            .iter()
            .map(ToString::to_string)
            .collect();
        (texts.join(" "), page.skipped)
    };
    let first = ("0a 0b 1a 1b 2a 2b 3a".to_owned(), 0);
    assert_eq!(read(None, LogLevel::Debug).await, first);
    assert_eq!(read(Some(20), LogLevel::Debug).await, first);
    let last = ("6b 7a 7b 8a 8b 9a 9b".to_owned(), 13);
    assert_eq!(read(Some(19), LogLevel::Debug).await, last);
    let grave = ("3b 4b 5b 6b 7b 8b 9b".to_owned(), 3);
    assert_eq!(read(Some(9), LogLevel::Error).await, grave);
}

pub async fn a_record_from_the_far_future_keeps_no_others_there(place: &dyn Place) {
    let store = place.open().await;
    for (time, text) in [(NOW + 90_000_000, "far"), (NOW, "now"), (NOW - 50, "then")] {
        let new = infos("demo", time, &[text]);
        store.add_log_records(new).await.unwrap();
    }
    let found = list(&store, all("demo")).await;
    assert_eq!(messages(&found), ["far", "then", "now"]);
    assert_eq!(found[1].id.received_at(), NOW);
    let last = last(&store, "demo").await;
    assert_eq!(last, found[1].id);
    // A reader that follows gets the earlier ones first, and this one when its time has come.
    let follow = async |now| {
        let tail = LogTail {
            now,
            ..tail("demo", last)
        };
        store.list_log_records_after(tail).await.unwrap().records
    };
    assert_eq!(messages(&follow(NOW).await), [""; 0]);
    let new = infos("demo", NOW, &["next"]);
    store.add_log_records(new).await.unwrap();
    assert_eq!(messages(&follow(NOW).await), ["next"]);
    let later = follow(NOW + 90_000_000).await;
    assert_eq!(messages(&later), ["next", "far"]);
}

pub async fn what_is_old_is_swept_in_batches_and_nothing_else(place: &dyn Place) {
    let store = place.open().await;
    for (slug, time, text) in [
        ("demo", NOW - 3, "oldest"),
        ("other", NOW - 2, "oldest but one"),
        ("demo", NOW - 1, "oldest but two"),
        ("demo", NOW, "just young enough"),
        ("demo", NOW + 9, "young"),
    ] {
        store
            .add_log_records(infos(slug, time, &[text]))
            .await
            .unwrap();
    }
    assert_eq!(store.sweep_log_records(NOW - 3, 9).await.unwrap(), 0);
    assert_eq!(store.sweep_log_records(NOW, 2).await.unwrap(), 2);
    assert!(list(&store, all("other")).await.is_empty());
    assert_eq!(
        messages(&list(&store, all("demo")).await),
        ["young", "just young enough", "oldest but two"]
    );
    assert_eq!(store.sweep_log_records(NOW, 2).await.unwrap(), 1);
    assert_eq!(store.sweep_log_records(NOW, 2).await.unwrap(), 0);
    assert_eq!(
        messages(&list(&store, all("demo")).await),
        ["young", "just young enough"]
    );
}

pub async fn a_request_is_there_whole_after_a_drop_without_close(place: &dyn Place) {
    let store = place.open().await;
    let new = infos("demo", NOW, &["a", "b", "c"]);
    store.add_log_records(new).await.unwrap();
    drop(store);
    let store = place.open().await;
    assert_eq!(messages(&list(&store, all("demo")).await), ["c", "b", "a"]);
}

pub async fn a_closed_store_takes_no_records(place: &dyn Place) {
    let store = place.open().await;
    store.close().await.unwrap();
    let late = store.add_log_records(infos("demo", NOW, &["a"])).await;
    assert!(matches!(late, Err(StoreError::Unavailable(_))), "{late:?}");
    let listed = store.list_log_records(all("demo")).await;
    assert!(
        matches!(listed, Err(StoreError::Unavailable(_))),
        "{listed:?}"
    );
}
