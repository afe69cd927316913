//! Groups, their failures, and the bounded queue.

use std::sync::mpsc as std_mpsc;

use futures_util::FutureExt as _;
use futures_util::future::join_all;

use super::*;

const LIMITS: Limits = Limits {
    name: "test-writer",
    queue: 4_096,
    group: 512,
};

fn writer() -> (Writer, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let connection = Connection::open(directory.path().join("test.db")).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON;
             CREATE TABLE numbers (number INTEGER PRIMARY KEY) STRICT;
             CREATE TABLE doubles (number INTEGER REFERENCES numbers (number)) STRICT;",
        )
        .unwrap();
    (Writer::start(connection, LIMITS).unwrap(), directory)
}

fn numbers(directory: &tempfile::TempDir) -> Vec<i64> {
    let connection = Connection::open(directory.path().join("test.db")).unwrap();
    let mut statement = connection.prepare("SELECT number FROM numbers").unwrap();
    statement
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

fn add(connection: &Connection, number: i64) -> Result<(), Error> {
    connection.execute("INSERT INTO numbers VALUES (?1)", [number])?;
    Ok(())
}

/// Keeps the thread busy until the returned sender is used or dropped, so that writes in the
/// meantime become one group.
async fn hold(writer: &Writer) -> std_mpsc::Sender<()> {
    let (started, begun) = oneshot::channel();
    let (release, held) = std_mpsc::channel();
    let mut write = Box::pin(writer.write(move |_| {
        let _ = started.send(());
        let _ = held.recv();
        Ok(())
    }));
    assert!(write.as_mut().now_or_never().is_none());
    begun.await.unwrap();
    release
}

/// Runs all `writes` in one group and returns their results.
async fn in_one_group<F>(writer: &Writer, writes: Vec<F>) -> Vec<Result<(), StoreError>>
where
    F: FnOnce(&Connection) -> Result<(), Error> + Send + 'static,
{
    let release = hold(writer).await;
    let mut writes = Box::pin(join_all(
        writes.into_iter().map(|write| writer.write(write)),
    ));
    assert!(
        writes.as_mut().now_or_never().is_none(),
        "all wait in the queue"
    );
    drop(release);
    writes.await
}

type Write = Box<dyn FnOnce(&Connection) -> Result<(), Error> + Send>;

#[tokio::test]
async fn a_write_beyond_the_queue_is_refused_at_once() {
    let (writer, directory) = writer();
    let release = hold(&writer).await;
    for number in 0..i64::try_from(LIMITS.queue).unwrap() {
        let waits = writer
            .write(move |connection| add(connection, number))
            .now_or_never();
        assert!(waits.is_none(), "write {number}");
    }
    let refused = writer
        .write(|connection| add(connection, -1))
        .now_or_never();
    assert!(
        matches!(refused, Some(Err(StoreError::Busy))),
        "{refused:?}"
    );
    drop(release);
    writer.close().await.unwrap();
    // Requests whose callers are gone are written all the same.
    assert_eq!(numbers(&directory).len(), LIMITS.queue);
}

#[tokio::test]
async fn a_failing_or_panicking_operation_is_undone_alone() {
    let (writer, directory) = writer();
    let writes: Vec<Write> = vec![
        Box::new(|connection| add(connection, 1)),
        Box::new(|connection| {
            add(connection, 2)?;
            Err(StoreError::Missing { table: "numbers" }.into())
        }),
        Box::new(|connection| {
            add(connection, 3)?;
            panic!("an operation with a bug")
        }),
        Box::new(|connection| add(connection, 4)),
    ];
    let answers = in_one_group(&writer, writes).await;
    assert!(matches!(
        answers.as_slice(),
        [
            Ok(()),
            Err(StoreError::Missing { .. }),
            Err(StoreError::Database(_)),
            Ok(())
        ]
    ));
    assert_eq!(numbers(&directory), [1, 4]);
}

#[tokio::test]
async fn a_failing_commit_fails_the_whole_group_and_nothing_else() {
    let (writer, directory) = writer();
    let writes: Vec<Write> = vec![
        Box::new(|connection| add(connection, 1)),
        Box::new(|connection| {
            // The violation occurs only at the commit.
            connection
                .execute_batch("PRAGMA defer_foreign_keys = ON; INSERT INTO doubles VALUES (99)")?;
            Ok(())
        }),
    ];
    let answers = in_one_group(&writer, writes).await;
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Err(StoreError::Unavailable(_)))),
        "{answers:?}"
    );
    assert_eq!(numbers(&directory), [] as [i64; 0]);
    writer.write(|connection| add(connection, 5)).await.unwrap();
    assert_eq!(numbers(&directory), [5]);
}

#[tokio::test]
async fn an_operation_that_loses_the_transaction_fails_the_group() {
    let (writer, directory) = writer();
    let writes: Vec<Write> = vec![
        Box::new(|connection| add(connection, 1)),
        // What SQLite does when the disk is full.
        Box::new(|connection| {
            connection.execute_batch("ROLLBACK")?;
            Err(StoreError::Unavailable("the disk is full".into()).into())
        }),
        Box::new(|connection| add(connection, 3)),
    ];
    let answers = in_one_group(&writer, writes).await;
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Err(StoreError::Unavailable(_)))),
        "{answers:?}"
    );
    assert_eq!(numbers(&directory), [] as [i64; 0]);
    writer.write(|connection| add(connection, 5)).await.unwrap();
    assert_eq!(numbers(&directory), [5]);
}

#[tokio::test]
async fn a_group_is_one_transaction() {
    let (writer, _directory) = writer();
    let changes = std::sync::Arc::new(Mutex::new(Vec::new()));
    let writes = (0..10)
        .map(|number| {
            let changes = std::sync::Arc::clone(&changes);
            move |connection: &Connection| {
                // The log grows at a commit; inside a group it does not.
                changes.lock().unwrap().push(connection.is_autocommit());
                add(connection, number)
            }
        })
        .collect();
    let answers = in_one_group(&writer, writes).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(*changes.lock().unwrap(), [false; 10]);
}

#[tokio::test]
async fn a_closed_writer_answers_unavailable() {
    let (writer, _directory) = writer();
    writer.close().await.unwrap();
    writer.close().await.unwrap();
    let late = writer.write(|connection| add(connection, 1)).await;
    assert!(matches!(late, Err(StoreError::Unavailable(_))), "{late:?}");
}
