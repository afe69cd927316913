//! The one writing thread, with group commit.
//!
//! Requests wait in a bounded queue. The thread takes all waiting ones, runs each in a savepoint
//! inside one transaction, commits, and only then replies: a reply means that `fdatasync` has
//! returned. While one commit waits for the disk, the next group gathers, so the rate rises with
//! the load. Callers that got their replies together send their next requests within microseconds
//! of each other, so the thread waits a moment for as many requests as last time: otherwise the
//! first would get a commit of its own, and all others would wait for two. A single request does
//! not wait.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use platform_store::StoreError;
use platform_store::figures::WriteFigures;
use platform_telemetry::Step;
use rusqlite::{Connection, ffi};
use tokio::sync::oneshot;

use super::error::Error;

/// The longest wait of a group for as many requests as the last one had.
const GATHER: Duration = Duration::from_micros(500);

/// The limits of a writer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The thread's name.
    pub(super) name: &'static str,
    /// How many requests may wait. One more is refused, so that memory stays bounded.
    pub(super) queue: usize,
    /// How many requests one transaction takes: more would only delay the first.
    pub(super) group: usize,
}

/// A write request, with the channel for its reply.
trait Job: Send {
    /// Does the work inside the group's transaction. Returns whether to keep it.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Sends the caller the work's own result, or the reason why the group was not committed.
    fn answer(self: Box<Self>, failure: Option<&str>);
}

struct Operation<F, T> {
    work: Option<F>,
    result: Option<Result<T, StoreError>>,
    caller: oneshot::Sender<Result<T, StoreError>>,
    step: Step,
}

impl<F, T> Job for Operation<F, T>
where
    F: FnOnce(&Connection) -> Result<T, Error> + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        let Some(work) = self.work.take() else {
            return false;
        };
        self.step.reached("transaction");
        // A bug in one operation must not stop the writer, and with it every other player's writes.
        let result = catch_unwind(AssertUnwindSafe(|| work(connection)))
            .unwrap_or_else(|_| Err(StoreError::Database("the operation panicked".into()).into()))
            .map_err(StoreError::from);
        let keep = result.is_ok();
        self.result = Some(result);
        keep
    }

    fn answer(mut self: Box<Self>, failure: Option<&str>) {
        if failure.is_some() {
            self.step.fail("not written");
        }
        drop(std::mem::take(&mut self.step));
        let answer = match (failure, self.result) {
            // A work that failed keeps its own reason, whatever happens to the group.
            (_, Some(Err(error))) => Err(error),
            (None, Some(Ok(value))) => Ok(value),
            (reason, _) => Err(StoreError::Unavailable(
                reason.unwrap_or("the operation did not run").to_owned(),
            )),
        };
        // The caller may be gone; the write is done all the same.
        let _ = self.caller.send(answer);
    }
}

enum Request {
    Write(Box<dyn Job>),
    Close(oneshot::Sender<Result<(), StoreError>>),
}

/// The handle of the writing thread. When it is dropped, the thread writes what is queued and ends.
#[derive(Debug)]
pub(super) struct Writer {
    name: &'static str,
    queue: mpsc::SyncSender<Request>,
    thread: Mutex<Option<JoinHandle<()>>>,
    figures: Arc<WriteFigures>,
}

impl Writer {
    /// Starts the thread, which owns `connection` from now on.
    pub(super) fn start(connection: Connection, limits: Limits) -> std::io::Result<Self> {
        let (queue, requests) = mpsc::sync_channel(limits.queue);
        let figures = Arc::new(WriteFigures::default());
        let counted = Arc::clone(&figures);
        let thread = std::thread::Builder::new()
            .name(limits.name.into())
            .spawn(move || serve(connection, requests, limits.group, &counted))?;
        Ok(Self {
            name: limits.name,
            queue,
            thread: Mutex::new(Some(thread)),
            figures,
        })
    }

    /// Returns what the thread has counted.
    pub(super) fn figures(&self) -> Arc<WriteFigures> {
        Arc::clone(&self.figures)
    }

    /// Runs `work` in a savepoint of the next group. Returns when the group is on the disk.
    ///
    /// # Errors
    /// The error of `work`; [`StoreError::Busy`] if the queue is full; [`StoreError::Unavailable`]
    /// if the writer was closed or the commit failed. Nothing was written then.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
        T: Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let mut step = Step::inside("store write");
        step.note("db.system.name", "sqlite");
        step.note("thread.name", self.name);
        let job = Operation {
            work: Some(work),
            result: None,
            caller,
            step,
        };
        // Counted first, since the thread may take the request before this goes on.
        self.figures.waits();
        self.queue
            .try_send(Request::Write(Box::new(job)))
            .map_err(|error| {
                self.figures.begun(1);
                match error {
                    mpsc::TrySendError::Full(_) => StoreError::Busy,
                    mpsc::TrySendError::Disconnected(_) => closed(),
                }
            })?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Writes what is queued and ends the thread.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        let (caller, answer) = oneshot::channel();
        let queue = self.queue.clone();
        // The queue may be full; then this waits for the writer.
        let sent = tokio::task::spawn_blocking(move || queue.send(Request::Close(caller))).await;
        if !matches!(sent, Ok(Ok(()))) {
            return Ok(());
        }
        let closed = answer.await.unwrap_or(Ok(()));
        let thread = self.thread.lock().ok().and_then(|mut thread| thread.take());
        if let Some(thread) = thread {
            // The thread has replied and is about to end, so this wait is short.
            let _ = thread.join();
        }
        closed
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}

fn serve(
    mut connection: Connection,
    requests: mpsc::Receiver<Request>,
    size: usize,
    figures: &WriteFigures,
) {
    let mut group: Vec<Box<dyn Job>> = Vec::with_capacity(size);
    let mut closer = None;
    let mut expected = 1;
    while closer.is_none() {
        let Ok(first) = requests.recv() else { break };
        closer = gather(first, &requests, expected, size, &mut group);
        expected = group.len();
        figures.begun(group.len());
        commit_group(&mut connection, &mut group, figures);
    }
    // The senders of later requests see that the channel is closed.
    drop(requests);
    let end = finish(connection);
    if let Some(caller) = closer {
        let _ = caller.send(end.map_err(StoreError::Unavailable));
    }
}

/// Fills `group` with `first`, with all waiting requests, and for a moment with arriving ones,
/// until there are `expected` of them, or `size` at most. If a request to close arrives, returns
/// its caller; all requests before it are in the group.
fn gather(
    first: Request,
    requests: &mpsc::Receiver<Request>,
    expected: usize,
    size: usize,
    group: &mut Vec<Box<dyn Job>>,
) -> Option<oneshot::Sender<Result<(), StoreError>>> {
    let mut deadline = None;
    let mut next = first;
    loop {
        match next {
            Request::Write(job) => group.push(job),
            Request::Close(caller) => return Some(caller),
        }
        if group.len() >= size {
            return None;
        }
        next = match requests.try_recv() {
            Ok(request) => request,
            Err(_) if group.len() >= expected => return None,
            Err(_) => {
                let now = real_now();
                let end = *deadline.get_or_insert(now + GATHER);
                requests
                    .recv_timeout(end.saturating_duration_since(now))
                    .ok()?
            }
        };
    }
}

fn real_now() -> Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "a disk's latency is real time, whatever clock tests move"
    )]
    Instant::now()
}

/// Moves the log into the database, so that this one file is the whole store.
fn finish(connection: Connection) -> Result<(), String> {
    let checkpoint = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .map_err(describe);
    connection.close().map_err(|(_, error)| describe(error))?;
    checkpoint
}

fn commit_group(
    connection: &mut Connection,
    group: &mut Vec<Box<dyn Job>>,
    figures: &WriteFigures,
) {
    if group.is_empty() {
        return;
    }
    let begun = real_now();
    let outcome = run_group(connection, group);
    if let Err(error) = &outcome {
        figures.failed();
        tracing::error!(error = %error, operations = group.len(), "a group of writes failed");
        if !connection.is_autocommit() {
            // Replies that are dropped below mean "not written", so it must not be written.
            let _ = connection.execute_batch("ROLLBACK");
        }
    } else {
        figures.committed(group.len(), real_now().saturating_duration_since(begun));
    }
    let failure = outcome.err().map(describe);
    for job in group.drain(..) {
        job.answer(failure.as_deref());
    }
}

fn run_group(connection: &Connection, group: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
    // IMMEDIATE: the wait for another process's lock happens here, where the busy timeout applies,
    // and not in the middle of the group.
    execute(connection, "BEGIN IMMEDIATE")?;
    for job in group.iter_mut() {
        execute(connection, "SAVEPOINT operation")?;
        if !job.run(connection) {
            if connection.is_autocommit() {
                // Errors such as a full disk end the whole transaction, so what ran before this
                // operation is undone as well.
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
mod tests;
