//! The requirements on the counts of errors.

use platform_domain::clock::Millis;
use platform_domain::counting::{DAY, HOUR, Span};
use platform_domain::log::{ERRORS_KNOWN, ErrorCount, ErrorQuery, NewLogRecords};
use platform_protocol::log::LogLevel;
use platform_protocol::names::Environment;
use uuid::Uuid;

use super::{all, entry, infos, list, request};
use crate::{NOW, Place};

fn errors(from: Millis, to: Millis) -> ErrorQuery {
    ErrorQuery {
        slug: "demo".into(),
        environment: Environment::Prod,
        from,
        to,
        limit: 10,
    }
}

/// Several errors, a warning and an info record of one deployment.
fn trouble(deployment: u128, received_at: Millis, number: u32) -> NewLogRecords {
    let mut repeated = entry("error", LogLevel::Error);
    repeated.count = number;
    let others = [LogLevel::Warn, LogLevel::Info].map(|level| entry("other", level));
    NewLogRecords {
        deployment: (deployment > 0).then(|| Uuid::from_u128(deployment)),
        ..request(
            "demo",
            received_at,
            [vec![repeated], others.into()].concat(),
        )
    }
}

pub async fn errors_are_counted_by_deployment_and_hour(place: &dyn Place) {
    let store = place.open().await;
    let hour = Span::Hour.start(NOW);
    assert_eq!(store.count_errors(errors(0, NOW)).await.unwrap(), []);
    for new in [
        trouble(1, hour, 5),
        trouble(1, hour + 7, 2),
        trouble(2, hour + 9, 1),
        trouble(1, hour + HOUR, 10),
        trouble(0, hour + HOUR + 1, 3),
        infos("demo", hour + 2, &["no error"]),
        NewLogRecords {
            slug: "other".into(),
            ..trouble(1, hour, 100)
        },
        NewLogRecords {
            environment: Environment::Dev,
            ..trouble(1, hour, 100)
        },
    ] {
        store.add_log_records(new).await.unwrap();
    }
    let count = |deployment: u128, errors, warnings, last_at| ErrorCount {
        deployment: (deployment > 0).then(|| Uuid::from_u128(deployment)),
        errors,
        warnings,
        last_at,
    };
    let all = store.count_errors(errors(0, NOW + DAY)).await.unwrap();
    let expected = [
        count(0, 3, 1, hour + HOUR + 1),
        count(1, 17, 3, hour + HOUR),
        count(2, 1, 1, hour + 9),
    ];
    assert_eq!(all, expected);
    // Hours count as a whole, and an hour that begins at the end is not included.
    let first = [count(2, 1, 1, hour + 9), count(1, 7, 2, hour + 7)];
    for (from, to) in [(hour, hour + HOUR), (hour + 30, hour + 31)] {
        assert_eq!(store.count_errors(errors(from, to)).await.unwrap(), first);
    }
    let few = ErrorQuery {
        limit: 1,
        ..errors(0, NOW + DAY)
    };
    assert_eq!(store.count_errors(few).await.unwrap(), expected[..1]);
}

pub async fn numbers_of_errors_outlive_their_records_and_end_some_day(place: &dyn Place) {
    let store = place.open().await;
    let old = NOW - ERRORS_KNOWN;
    for time in [old - HOUR, old, NOW - HOUR] {
        store.add_log_records(trouble(1, time, 1)).await.unwrap();
    }
    store.sweep_log_records(NOW, 100).await.unwrap();
    assert!(list(&store, all("demo")).await.is_empty());
    let known = async || {
        let counts = store.count_errors(errors(0, NOW + DAY)).await.unwrap();
        counts.iter().map(|count| count.errors).sum::<u64>()
    };
    assert_eq!(known().await, 3);
    store.add_log_records(trouble(2, NOW, 1)).await.unwrap();
    assert_eq!(known().await, 3);
}
