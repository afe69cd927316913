//! The one thread that writes, with group commit.
//!
//! Requests wait in a bounded queue. The thread takes all that wait, runs each
//! in a savepoint of its own inside one transaction, commits, and only then
//! answers: an answer means that `fdatasync` has returned. While one commit
//! waits for the disk the next group gathers by itself, so the rate rises with
//! the load, and a lone request waits for nobody.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread::JoinHandle;

use rusqlite::{Connection, ffi};
use tokio::sync::{mpsc, oneshot};

use crate::store::StoreError;

/// Requests that may wait. One more is refused rather than kept in memory.
const QUEUE: usize = 4_096;
/// Requests in one transaction: more would only make the first wait longer.
const GROUP: usize = 512;

/// A request to write, with the place that its answer goes to.
trait Job: Send {
    /// Does the work inside the group's transaction, and says whether to keep it.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Answers the caller: with the work's own result, or with why the group
    /// was not committed.
    fn answer(self: Box<Self>, failure: Option<&str>);
}

struct Operation<F, T> {
    work: Option<F>,
    result: Option<Result<T, StoreError>>,
    caller: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> Job for Operation<F, T>
where
    F: FnOnce(&Connection) -> Result<T, StoreError> + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        let Some(work) = self.work.take() else {
            return false;
        };
        // A bug in one operation may not take the writer, and with it every
        // other player's writes, down.
        let result = catch_unwind(AssertUnwindSafe(|| work(connection)))
            .unwrap_or_else(|_| Err(StoreError::Database("the operation panicked".into())));
        let keep = result.is_ok();
        self.result = Some(result);
        keep
    }

    fn answer(self: Box<Self>, failure: Option<&str>) {
        let answer = match (failure, self.result) {
            // What failed by itself keeps its own reason, whatever the group's fate.
            (_, Some(Err(error))) => Err(error),
            (None, Some(Ok(value))) => Ok(value),
            (reason, _) => Err(StoreError::Unavailable(
                reason.unwrap_or("the operation did not run").to_owned(),
            )),
        };
        // The caller may have gone away; what it asked for is done all the same.
        let _ = self.caller.send(answer);
    }
}

enum Request {
    Write(Box<dyn Job>),
    Close(oneshot::Sender<Result<(), StoreError>>),
}

/// The way to the writer's thread. Dropping it lets the thread write out what
/// is queued and end.
#[derive(Debug)]
pub(super) struct Writer {
    queue: mpsc::Sender<Request>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the thread, which owns `connection` from now on.
    pub(super) fn start(connection: Connection) -> std::io::Result<Self> {
        let (queue, requests) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || serve(connection, requests))?;
        Ok(Self {
            queue,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Runs `work` in a savepoint of the next group, and answers when the
    /// group is on the disk.
    ///
    /// # Errors
    /// What `work` answered; [`StoreError::Unavailable`] if the queue is full,
    /// the writer closed, or the commit failed. Then nothing was written.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let job = Operation {
            work: Some(work),
            result: None,
            caller,
        };
        self.queue
            .try_send(Request::Write(Box::new(job)))
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => {
                    StoreError::Unavailable("too many writes are waiting".into())
                }
                mpsc::error::TrySendError::Closed(_) => closed(),
            })?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Writes out what is queued and ends the thread.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        let (caller, answer) = oneshot::channel();
        if self.queue.send(Request::Close(caller)).await.is_err() {
            return Ok(());
        }
        let closed = answer.await.unwrap_or(Ok(()));
        let thread = self.thread.lock().ok().and_then(|mut thread| thread.take());
        if let Some(thread) = thread {
            // The thread has answered, so it is at its end: this wait is short.
            let _ = thread.join();
        }
        closed
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}

fn serve(mut connection: Connection, mut requests: mpsc::Receiver<Request>) {
    let mut group: Vec<Box<dyn Job>> = Vec::with_capacity(GROUP);
    let mut closers = Vec::new();
    while let Some(first) = requests.blocking_recv() {
        let mut next = Some(first);
        while let Some(request) = next {
            match request {
                Request::Write(job) => group.push(job),
                Request::Close(caller) => {
                    // Nothing new is let in; what waits already is taken below.
                    requests.close();
                    closers.push(caller);
                }
            }
            next = if group.len() < GROUP {
                requests.try_recv().ok()
            } else {
                None
            };
        }
        commit_group(&mut connection, &mut group);
    }
    let end = finish(connection);
    for caller in closers {
        let answer = match &end {
            Ok(()) => Ok(()),
            Err(reason) => Err(StoreError::Unavailable(reason.clone())),
        };
        let _ = caller.send(answer);
    }
}

/// Moves the log into the database, so that the file alone is the whole store.
fn finish(connection: Connection) -> Result<(), String> {
    let checkpoint = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .map_err(describe);
    connection.close().map_err(|(_, error)| describe(error))?;
    checkpoint
}

fn commit_group(connection: &mut Connection, group: &mut Vec<Box<dyn Job>>) {
    if group.is_empty() {
        return;
    }
    let outcome = run_group(connection, group);
    if let Err(error) = &outcome {
        tracing::error!(error = %error, operations = group.len(), "a group of writes failed");
        if !connection.is_autocommit() {
            // Dropped answers below say "not written", so it must not be.
            let _ = connection.execute_batch("ROLLBACK");
        }
    }
    let failure = outcome.err().map(describe);
    for job in group.drain(..) {
        job.answer(failure.as_deref());
    }
}

fn run_group(connection: &Connection, group: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
    // IMMEDIATE: the wait for another process's lock is here, where the busy
    // timeout applies, and not in the middle of the group.
    execute(connection, "BEGIN IMMEDIATE")?;
    for job in group.iter_mut() {
        execute(connection, "SAVEPOINT operation")?;
        if !job.run(connection) {
            if connection.is_autocommit() {
                // A full disk and the like end the whole transaction, so what
                // ran before this operation is undone as well.
                return Err(rusqlite::Error::SqliteFailure(
                    ffi::Error::new(ffi::SQLITE_ABORT_ROLLBACK),
                    None,
                ));
            }
            execute(connection, "ROLLBACK TO operation")?;
        }
        execute(connection, "RELEASE operation")?;
    }
    execute(connection, "COMMIT")
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

#[expect(clippy::needless_pass_by_value, reason = "it is a `map_err` function")]
fn describe(error: rusqlite::Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc as std_mpsc;

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;

    use super::*;

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
        (Writer::start(connection).unwrap(), directory)
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

    fn add(connection: &Connection, number: i64) -> Result<(), StoreError> {
        connection.execute("INSERT INTO numbers VALUES (?1)", [number])?;
        Ok(())
    }

    /// Keeps the thread busy until the answer is sent or dropped, so that what
    /// is written meanwhile becomes one group.
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

    /// Runs all `writes` in one group and answers what each was answered.
    async fn in_one_group<F>(writer: &Writer, writes: Vec<F>) -> Vec<Result<(), StoreError>>
    where
        F: FnOnce(&Connection) -> Result<(), StoreError> + Send + 'static,
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

    type Write = Box<dyn FnOnce(&Connection) -> Result<(), StoreError> + Send>;

    #[tokio::test]
    async fn a_write_beyond_the_queue_is_refused_at_once() {
        let (writer, directory) = writer();
        let release = hold(&writer).await;
        for number in 0..i64::try_from(QUEUE).unwrap() {
            let waits = writer
                .write(move |connection| add(connection, number))
                .now_or_never();
            assert!(waits.is_none(), "write {number}");
        }
        let refused = writer
            .write(|connection| add(connection, -1))
            .now_or_never();
        assert!(
            matches!(refused, Some(Err(StoreError::Unavailable(_)))),
            "{refused:?}"
        );
        drop(release);
        writer.close().await.unwrap();
        // Those whose callers went away are written all the same.
        assert_eq!(numbers(&directory).len(), QUEUE);
    }

    #[tokio::test]
    async fn a_failing_or_panicking_operation_is_undone_alone() {
        let (writer, directory) = writer();
        let writes: Vec<Write> = vec![
            Box::new(|connection| add(connection, 1)),
            Box::new(|connection| {
                add(connection, 2)?;
                Err(StoreError::Missing { table: "numbers" })
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
                // The violation shows at the commit alone.
                connection.execute_batch(
                    "PRAGMA defer_foreign_keys = ON; INSERT INTO doubles VALUES (99)",
                )?;
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
            // What SQLite itself does when the disk is full.
            Box::new(|connection| {
                connection.execute_batch("ROLLBACK")?;
                Err(StoreError::Unavailable("the disk is full".into()))
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
                    // The log grows at a commit; inside a group it stands still.
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
}
