//! The list of what is moved is complete, and a move goes on where it was interrupted.

use platform_store::tables::{PARTS, compare_with_schema};
use platform_store::transfer::{BeginError, Begun, Moved, RowTarget as _};
use platform_test_postgres::TestDatabase;

use super::*;
use crate::PostgresStore;

/// Columns that this back end computes.
const DERIVED: [(&str, &str); 6] = [
    ("signing_keys", "follows"),
    ("log_environments", "last_id"),
    ("log_environments", "far_id"),
    ("log_environments", "bytes"),
    ("log_environments", "strangers_bytes"),
    ("log_records", "bytes"),
];
/// Tables that only this back end has.
const OWN: [&str; 3] = ["locks", "guest_addresses", "log_days"];

#[tokio::test]
async fn every_column_is_moved() {
    for place in [Place::Main, Place::Logs] {
        let database = TestDatabase::new();
        let config = address::parse(&database.url()).unwrap();
        let schema = match place {
            Place::Main => &migrations::MAIN,
            Place::Logs => &migrations::LOGS,
        };
        let client = schema
            .upgrade(&config, SchemaPolicy::Upgrade)
            .await
            .unwrap();
        let rows = client
            .query(
                "SELECT table_name::text, array_agg(column_name::text)
                 FROM information_schema.columns
                 WHERE table_schema = 'public' AND table_name NOT LIKE 'platform\\_%'
                 GROUP BY 1",
                &[],
            )
            .await
            .unwrap();
        let tables: Vec<_> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let errors = compare_with_schema(place, &tables, &DERIVED, &OWN);
        assert!(errors.is_empty(), "{errors:#?}");
    }
}

fn players() -> &'static Part {
    PARTS.iter().find(|part| part.name == "players").unwrap()
}

fn player(number: u8) -> Row {
    let name = format!("otter-{number}");
    vec![
        Value::Bytes(vec![number; 16]),
        Value::Text(name.clone()),
        Value::Text(name),
        Value::Integer(1),
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Integer(1),
        Value::Integer(2),
        Value::Null,
        Value::Null,
        Value::Null,
    ]
}

#[tokio::test]
async fn a_move_goes_on_where_it_was_interrupted_and_no_server_starts_meanwhile() {
    let database = TestDatabase::new();
    let url = database.url();
    let target = PostgresRows::create(&url, None).await.unwrap();
    assert_eq!(target.begin("one").await.unwrap(), Begun::Open);
    let first = vec![player(1), player(2)];
    let moved = target
        .add(players(), &Moved::default(), first)
        .await
        .unwrap();
    assert_eq!(moved.rows, 2);
    for policy in [SchemaPolicy::Refuse, SchemaPolicy::Upgrade] {
        let refused = PostgresStore::open(&url, None, policy).await;
        assert!(
            matches!(refused, Err(ConnectError::Incomplete)),
            "{refused:?}"
        );
    }
    drop(target);

    let target = PostgresRows::create(&url, None).await.unwrap();
    assert!(matches!(
        target.begin("other").await,
        Err(BeginError::OtherSource)
    ));
    assert_eq!(target.begin("one").await.unwrap(), Begun::Open);
    assert_eq!(target.moved(players()).await.unwrap(), moved);
    // What was added before is not added again.
    let twice = target
        .add(players(), &Moved::default(), vec![player(1)])
        .await;
    assert!(matches!(twice, Err(StoreError::Unavailable(_))));
    let last = target
        .add(players(), &moved, vec![player(3)])
        .await
        .unwrap();
    assert_eq!((last.rows, target.count(players()).await.unwrap()), (3, 3));
    target.complete().await.unwrap();
    target.complete().await.unwrap();
    target.end().await.unwrap();
    let refused = target.begin("one").await;
    assert!(
        matches!(refused, Err(BeginError::NotEmpty { table: "players" })),
        "{refused:?}"
    );
    PostgresStore::open(&url, None, SchemaPolicy::Refuse)
        .await
        .unwrap();
}

#[tokio::test]
async fn an_end_that_was_interrupted_can_run_again() {
    let (main, logs) = (TestDatabase::new(), TestDatabase::new());
    let target = PostgresRows::create(&main.url(), Some(&logs.url()))
        .await
        .unwrap();
    target.begin("one").await.unwrap();
    let rows = vec![player(1)];
    target
        .add(players(), &Moved::default(), rows)
        .await
        .unwrap();
    // As if it had been killed after its first two steps.
    let first = "UPDATE platform_incoming SET moved = 1 WHERE source = 'one'";
    target.main.batch_execute(first).await.unwrap();
    let second = "DROP TABLE platform_log_incoming";
    target.logs.batch_execute(second).await.unwrap();
    let other = target.begin("two").await;
    assert!(matches!(other, Err(BeginError::OtherSource)), "{other:?}");
    assert_eq!(target.begin("one").await.unwrap(), Begun::Compared);
    target.end().await.unwrap();
    PostgresStore::open(&main.url(), Some(&logs.url()), SchemaPolicy::Refuse)
        .await
        .unwrap();
}

#[tokio::test]
async fn log_records_of_two_environments_with_one_id_are_told_apart() {
    let database = TestDatabase::new();
    let target = PostgresRows::create(&database.url(), None).await.unwrap();
    let fill = format!(
        "{};
         INSERT INTO log_environments (project, environment) VALUES ('a', 'dev'), ('a', 'prod');
         INSERT INTO log_records
             (environment, id, level, source, page, time, message, count, bytes)
         SELECT e.id, n, 1, 'console', decode(repeat('00', 16), 'hex'), 1, 'x', 1, 161
         FROM log_environments e, unnest(ARRAY[5, 6, 9]) n",
        crate::log_days::partition(0)
    );
    target.logs.batch_execute(&fill).await.unwrap();
    let source = PostgresRows::open(&database.url(), None).await.unwrap();
    let records = PARTS.iter().find(|part| part.table == LOG_RECORDS).unwrap();
    let batches = source.read(records, None).await.unwrap();
    let batches: Vec<Vec<Row>> = batches.try_collect().await.unwrap();
    let ids = batches.iter().flatten().map(|row| match row.first() {
        Some(Value::Integer(id)) => *id,
        other => panic!("{other:?}"),
    });
    assert_eq!(ids.collect::<Vec<_>>(), [5, 6, 7, 8, 9, 10]);
}
