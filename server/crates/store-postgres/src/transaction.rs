//! A transaction, and running an operation again after a conflict.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use futures_util::future::join;
use platform_domain::node::Topic;
use platform_store::StoreError;
use platform_telemetry::Step;
use tokio::time::Instant;
use tokio_postgres::Row;

use super::database::{ATTEMPTS, Connection, Database, LIMIT, SOON, Value};
use super::error::Error;
use super::nodes;

/// Runs an operation in a transaction, and runs it again if it conflicts with another one, up to
/// five more times. Evaluates to the operation's result after the commit.
///
/// `transact!(database, transaction => operation(&transaction, …))`
macro_rules! transact {
    ($database:expr, $transaction:ident => $operation:expr) => {{
        let mut attempts = $database.attempts();
        loop {
            let $transaction = attempts.begin().await?;
            let done = $operation.await;
            if let Some(result) = attempts.finish($transaction, done).await {
                break result;
            }
        }
    }};
}

/// A transaction on a connection of its own. If it is dropped before its end, the connection is
/// closed, and the server rolls the transaction back.
pub(super) struct Transaction {
    connection: Option<Connection>,
    begin: &'static str,
    begun: AtomicBool,
    /// What the transaction changes for other nodes.
    changed: Mutex<BTreeSet<Topic>>,
}

/// Begins a transaction with the isolation level that every operation assumes, whatever the
/// server's default is.
const WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
/// Begins a read-only transaction, whose statements all see the same moment.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

impl Transaction {
    const fn new(connection: Connection, begin: &'static str) -> Self {
        Self {
            connection: Some(connection),
            begin,
            begun: AtomicBool::new(false),
            changed: Mutex::new(BTreeSet::new()),
        }
    }

    /// Notes that the transaction changes something that nodes keep in memory. Its version is
    /// raised at the end, since all who raise one wait for each other until they commit.
    pub(super) fn changes(&self, topic: Topic) {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        changed.insert(topic);
    }

    /// Raises the versions of what the transaction changes.
    async fn raise(&self) -> Result<(), Error> {
        let changed = {
            let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *changed)
        };
        if changed.is_empty() {
            return Ok(());
        }
        nodes::raise(self, &changed).await
    }

    /// Returns a read-only transaction, whose statements all see the same moment.
    pub(super) const fn snapshot(connection: Connection) -> Self {
        Self::new(connection, SNAPSHOT)
    }

    fn client(&self) -> Result<&deadpool_postgres::Object, Error> {
        let connection = self.connection.as_ref();
        // Only the end of a transaction takes the connection, and it consumes the transaction.
        connection
            .map(|connection| &connection.client)
            .ok_or(Error::Changed)
    }

    /// Runs a statement. Returns its rows.
    pub(super) async fn rows(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, Error> {
        let client = self.client()?;
        let run = async {
            let statement = client.prepare_cached(sql).await?;
            if self.begun.swap(true, Ordering::Relaxed) {
                return Ok(client.query(&statement, values).await?);
            }
            // Both are sent before the first reply arrives, so `BEGIN` costs no extra round trip.
            let begin = client.batch_execute(self.begin);
            let (begun, rows) = join(begin, client.query(&statement, values)).await;
            begun?;
            Ok(rows?)
        };
        let ran = tokio::time::timeout(LIMIT, run).await;
        ran.unwrap_or(Err(Error::TimedOut))
    }

    /// Runs a statement that returns one row or none.
    pub(super) async fn row(&self, sql: &str, values: &[Value<'_>]) -> Result<Option<Row>, Error> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Runs a statement. Returns how many rows it changed.
    pub(super) async fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, Error> {
        let client = self.client()?;
        let run = async {
            let statement = client.prepare_cached(sql).await?;
            if self.begun.swap(true, Ordering::Relaxed) {
                return Ok(client.execute(&statement, values).await?);
            }
            let begin = client.batch_execute(self.begin);
            let (begun, rows) = join(begin, client.execute(&statement, values)).await;
            begun?;
            Ok(rows?)
        };
        let ran = tokio::time::timeout(LIMIT, run).await;
        ran.unwrap_or(Err(Error::TimedOut))
    }

    /// Runs statements that are not worth preparing.
    pub(super) async fn run(&self, sql: &str) -> Result<(), Error> {
        let client = self.client()?;
        let run = async {
            if !self.begun.swap(true, Ordering::Relaxed) {
                client.batch_execute(self.begin).await?;
            }
            Ok(client.batch_execute(sql).await?)
        };
        let ran = tokio::time::timeout(LIMIT, run).await;
        ran.unwrap_or(Err(Error::TimedOut))
    }

    /// Ends a transaction with `COMMIT` or `ROLLBACK`.
    async fn end(mut self, how: &'static str) -> Result<(), Error> {
        let Some(connection) = self.connection.take() else {
            return Ok(());
        };
        if !self.begun.load(Ordering::Relaxed) {
            return Ok(());
        }
        let ended = tokio::time::timeout(LIMIT, connection.client.batch_execute(how)).await;
        let result = match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(Error::TimedOut),
        };
        match &result {
            Err(Error::TimedOut) => connection.abandon(),
            Err(_) => connection.give_up(),
            Ok(()) => {}
        }
        result
    }

    /// Ends a transaction that only read.
    pub(super) async fn finish_reading(self) -> Result<(), Error> {
        self.end("COMMIT").await
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && self.begun.load(Ordering::Relaxed)
        {
            connection.give_up();
        }
    }
}

/// Begins the span of a write.
pub(super) fn write_step() -> Step {
    let mut step = Step::inside("store write");
    step.note("db.system.name", "postgresql");
    step
}

/// The attempts to run one operation.
pub(super) struct Attempts<'database> {
    database: &'database Database,
    start: Instant,
    left: u32,
    step: Step,
}

impl<'database> Attempts<'database> {
    pub(super) fn new(database: &'database Database) -> Self {
        Self {
            database,
            start: Instant::now(),
            left: ATTEMPTS,
            step: write_step(),
        }
    }

    /// Begins the next attempt.
    pub(super) async fn begin(&mut self) -> Result<Transaction, StoreError> {
        self.left = self.left.saturating_sub(1);
        let connection = self.database.writing_connection().await;
        match &connection {
            Ok(_) => self.step.reached("transaction"),
            Err(_) => self.step.fail("no connection"),
        }
        Ok(Transaction::new(connection?, WRITE))
    }

    /// Commits the transaction, or rolls it back if the operation failed. Returns the operation's
    /// result, or `None` if it must run again.
    pub(super) async fn finish<T>(
        &mut self,
        transaction: Transaction,
        done: Result<T, Error>,
    ) -> Option<Result<T, StoreError>> {
        let done = match done {
            Ok(value) => transaction.raise().await.map(|()| value),
            failed => failed,
        };
        let value = match done {
            Ok(value) => value,
            Err(error) if error.ends_connection() => {
                // Nothing was committed, so it may run again on another connection.
                drop(transaction);
                return if self.start.elapsed() < SOON {
                    self.again_or(error)
                } else {
                    Some(Err(error.into()))
                };
            }
            Err(error) => {
                // If this fails, the connection is closed, which also undoes the operation.
                let _ = transaction.end("ROLLBACK").await;
                return if error.is_conflict() {
                    self.again_or(error)
                } else {
                    Some(Err(error.into()))
                };
            }
        };
        self.step.reached("commit");
        let (figures, begun) = (self.database.counted(), Instant::now());
        match transaction.end("COMMIT").await {
            Ok(()) => {
                figures.committed(1, begun.elapsed());
                Some(Ok(value))
            }
            Err(error) if error.is_conflict() => self.again_or(error),
            Err(error) => {
                figures.failed();
                self.step.fail("not written");
                // The commit may have happened: running the operation again could do it twice.
                Some(Err(if error.is_lost() || error.ends_connection() {
                    error.uncertain()
                } else {
                    error.into()
                }))
            }
        }
    }

    fn again_or<T>(&self, error: Error) -> Option<Result<T, StoreError>> {
        (self.left == 0).then(|| Err(error.into()))
    }
}
