//! The requirements on the search for log records.

use platform_domain::log::{LogEntry, LogId, LogQuery, LogSearch, LogTail, NewLogRecords};
use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use platform_store::Store;
use uuid::Uuid;

use super::{all, entry, infos, messages, request, tail};
use crate::{NOW, Place};

fn any(slug: &str) -> LogSearch {
    LogSearch::all(slug.into(), Environment::Prod, 100, usize::MAX)
}

/// Adds four records of one project to search, and one of another.
async fn fill_for_search(store: &dyn Store) {
    let with = |message: &str, level, change: fn(&mut LogEntry)| {
        let mut entry = entry(message, level);
        change(&mut entry);
        entry
    };
    let first = vec![
        with("Straße 100% _blocked", LogLevel::Info, |_| ()),
        with("b", LogLevel::Error, |entry| {
            entry.stack = Some("at lose (SHIP.js)".into());
            entry.source = LogSource::Report;
        }),
    ];
    let second = vec![
        with("c", LogLevel::Warn, |entry| {
            entry.url = Some("/ship.png".into());
        }),
        with("d", LogLevel::Debug, |entry| {
            entry.metadata = Some(r#"{"ship":1}"#.into());
        }),
    ];
    store
        .add_log_records(request("demo", NOW, first))
        .await
        .unwrap();
    let of_player = NewLogRecords {
        player: Some(Uuid::from_u128(7)),
        ..request("demo", NOW + 50, second)
    };
    store.add_log_records(of_player).await.unwrap();
    store
        .add_log_records(infos("other", NOW, &["ship"]))
        .await
        .unwrap();
}

pub async fn a_search_finds_what_is_asked_for_and_nothing_else(place: &dyn Place) {
    let store = place.open().await;
    fill_for_search(&*store).await;
    let text = |text: &str| LogSearch {
        text: Some(text.into()),
        ..any("demo")
    };
    for (search, expected) in [
        (any("demo"), vec!["d", "c", "b", "Straße 100% _blocked"]),
        (any("nobody"), vec![]),
        (text("ship"), vec!["d", "c", "b"]),
        (text("STRASSE"), vec![]),
        (text("STRAßE 100%"), vec!["Straße 100% _blocked"]),
        (text("100_"), vec![]),
        (text("s.ip"), vec![]),
        (text("(ship.js)"), vec!["b"]),
        (
            LogSearch {
                level: LogLevel::Warn,
                ..text("ship")
            },
            vec!["c", "b"],
        ),
        (
            LogSearch {
                source: Some(LogSource::Report),
                ..any("demo")
            },
            vec!["b"],
        ),
        (
            LogSearch {
                player: Some(Uuid::from_u128(7)),
                ..any("demo")
            },
            vec!["d", "c"],
        ),
        (
            LogSearch {
                player: Some(Uuid::from_u128(8)),
                ..any("demo")
            },
            vec![],
        ),
        (
            LogSearch {
                from: Some(NOW + 1),
                ..any("demo")
            },
            vec!["d", "c"],
        ),
        (
            LogSearch {
                before: Some(LogId::first_of(NOW + 50)),
                ..any("demo")
            },
            vec!["b", "Straße 100% _blocked"],
        ),
        (
            LogSearch {
                limit: 1,
                bytes: usize::MAX,
                ..text("ship")
            },
            vec!["d"],
        ),
    ] {
        let found = store.search_log_records(search.clone()).await.unwrap();
        assert_eq!(messages(&found.records), expected, "{search:?}");
        assert_eq!(found.next.is_some(), search.limit == 1, "{search:?}");
    }
}

pub async fn a_search_looks_at_so_many_and_goes_on_from_there(place: &dyn Place) {
    let store = place.open().await;
    let mut needle = entry("needle", LogLevel::Warn);
    needle.source = LogSource::Error;
    store
        .add_log_records(request("demo", NOW, vec![needle]))
        .await
        .unwrap();
    for round in 0..31 {
        let many = (0..800)
            .map(|_| entry("hay", LogLevel::ALL[round % 4]))
            .collect();
        store
            .add_log_records(request("demo", NOW + 1, many))
            .await
            .unwrap();
    }
    for search in [
        LogSearch {
            text: Some("needle".into()),
            ..any("demo")
        },
        LogSearch {
            source: Some(LogSource::Error),
            ..any("demo")
        },
    ] {
        let (mut found, mut looks, mut before) = (Vec::new(), 0, None);
        loop {
            let search = LogSearch {
                before,
                ..search.clone()
            };
            let page = store.search_log_records(search).await.unwrap();
            looks += 1;
            found.extend(page.records);
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!((messages(&found), looks), (vec!["needle"], 17));
    }
}

pub async fn a_page_ends_after_so_many_bytes_and_goes_on_from_there(place: &dyn Place) {
    let store = place.open().await;
    let long = |number: usize| format!("{number} {}", "x".repeat(998));
    let mut written = Vec::new();
    for round in 0..5 {
        let texts = [long(round * 2), long(round * 2 + 1)];
        let mut new = infos("demo", NOW, &texts.each_ref().map(String::as_str));
        new.entries[1].level = LogLevel::Error;
        store.add_log_records(new).await.unwrap();
        written.extend(texts);
    }
    let bytes = 2_500;
    let mut forward = Vec::new();
    let mut tail = LogTail {
        bytes,
        ..tail("demo", LogId(0))
    };
    tail.limit = 100;
    loop {
        let page = store.list_log_records_after(tail.clone()).await.unwrap();
        assert!(page.records.len() <= 3, "2,500 bytes are in the third");
        let Some(last) = page.records.last() else {
            break;
        };
        tail.after = last.id;
        let full = page.full;
        forward.extend(page.records);
        assert_eq!(full, forward.len() < written.len());
    }
    assert_eq!(messages(&forward), written);

    let (mut listed, mut found) = (Vec::new(), Vec::new());
    let mut query = LogQuery {
        bytes,
        ..all("demo")
    };
    let mut search = LogSearch {
        bytes,
        ..any("demo")
    };
    loop {
        let page = store.list_log_records(query.clone()).await.unwrap();
        let same = store.search_log_records(search.clone()).await.unwrap();
        assert!(page.records.len() <= 3 && same.records.len() <= 3);
        listed.extend(page.records);
        found.extend(same.records);
        assert_eq!(page.next, same.next);
        query.before = page.next;
        search.before = page.next;
        if page.next.is_none() {
            break;
        }
    }
    assert_eq!(listed, found);
    listed.reverse();
    assert_eq!(messages(&listed), written);
}
