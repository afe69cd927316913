//! A database's connections: reads, writes of one statement, time limits, and closing.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod, Runtime,
};
use platform_store::{ConnectError, SchemaPolicy, StoreError};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::error::{Error, describe};
use super::migrations::Schema;
use super::transaction::{Attempts, Transaction};
use super::{address, migrations};

/// How long a statement or a commit may take before its connection is closed. With [`WAIT`] before
/// it, a request is answered within six seconds, whatever became of the database.
pub(super) const LIMIT: Duration = Duration::from_secs(4);
/// The same limit for statements that read very many rows, for a job and not for a caller.
const LONG: Duration = Duration::from_secs(120);
/// How long an operation waits for an idle connection.
const WAIT: Duration = Duration::from_millis(1_500);
/// How long after its start an operation may run again because its connection was lost. If a server
/// does not answer at all, running again would make the caller wait twice as long.
pub(super) const SOON: Duration = Duration::from_millis(1_500);
/// How often an operation runs at most, if it conflicts with others.
pub(super) const ATTEMPTS: u32 = 6;

/// The first statements of every connection. If a time limit of the server ended a commit's wait
/// for a standby, the commit would still be *acknowledged*, so there is no such limit. Every commit
/// waits for the disk at least. If a program loses its connection, its transaction keeps its locks
/// only for a while.
const BEGINNING: &str =
    "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = '15s';
    SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') IN ('off', 'local')";

/// A value of a statement.
pub(super) type Value<'value> = &'value (dyn ToSql + Sync);

/// The purpose and limits of a database.
#[derive(Debug)]
pub(super) struct Kind {
    /// Its tables.
    pub(super) schema: &'static Schema,
    /// How many connections there are at most.
    pub(super) connections: usize,
}

/// Players, sessions, keys, projects.
pub(super) const MAIN: Kind = Kind {
    schema: &migrations::MAIN,
    connections: 16,
};

/// Frontend log records.
pub(super) const LOGS: Kind = Kind {
    schema: &migrations::LOGS,
    connections: 6,
};

/// An open database.
#[derive(Clone)]
pub(super) struct Database {
    pool: Pool,
    /// Whether the database was closed. Every operation holds a read lock, so closing waits for all
    /// of them.
    closed: Arc<RwLock<bool>>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("connections", &self.pool.status())
            .finish_non_exhaustive()
    }
}

/// A connection in use.
pub(super) struct Connection {
    pub(super) client: Object,
    _open: OwnedRwLockReadGuard<bool>,
}

impl Connection {
    /// Closes the connection, because its state is unknown.
    pub(super) fn give_up(self) {
        drop(Object::take(self.client));
    }
}

impl Database {
    /// Opens the database at `url`, and upgrades its schema if that is allowed.
    pub(super) async fn open(
        url: &str,
        kind: &Kind,
        policy: SchemaPolicy,
    ) -> Result<Self, ConnectError> {
        let config = address::parse(url)?;
        kind.schema.bring_up_to_date(&config, policy).await?;
        let manager = Manager::from_config(
            config,
            address::tls()?,
            ManagerConfig {
                recycling_method: RecyclingMethod::Fast,
            },
        );
        let pool = Pool::builder(manager)
            .max_size(kind.connections)
            // The connection that was used last is most likely to have the statement prepared.
            .queue_mode(QueueMode::Lifo)
            .post_create(Hook::async_fn(|client, _| {
                Box::pin(async move {
                    let begun = client.batch_execute(BEGINNING).await;
                    begun.map_err(HookError::Backend)
                })
            }))
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(WAIT))
            .create_timeout(Some(WAIT))
            .recycle_timeout(Some(WAIT))
            .build()
            .map_err(|error| ConnectError::Database(Box::new(error)))?;
        Ok(Self {
            pool,
            closed: Arc::default(),
        })
    }

    /// Takes an idle connection, or opens one.
    pub(super) async fn connection(&self) -> Result<Connection, StoreError> {
        let open = Arc::clone(&self.closed).read_owned().await;
        if *open {
            return Err(closed());
        }
        let client = self.pool.get().await.map_err(|error| {
            StoreError::Unavailable(match error {
                deadpool_postgres::PoolError::Backend(error) => describe(&error),
                other => other.to_string(),
            })
        })?;
        Ok(Connection {
            client,
            _open: open,
        })
    }

    /// Runs a statement that only reads, and returns its rows. Runs it once more if the connection
    /// was lost.
    pub(super) async fn rows(
        &self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.rows_within(LIMIT, sql, values).await
    }

    /// Does the same as [`Self::rows`], with more time, for a statement that reads very many rows.
    pub(super) async fn rows_of_many(
        &self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.rows_within(LONG, sql, values).await
    }

    async fn rows_within(
        &self,
        limit: Duration,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let (start, mut asked) = (Instant::now(), false);
        loop {
            match self.run(limit, sql, values).await? {
                Ok(rows) => return Ok(rows),
                Err(error) if error.ends_connection() && !asked && start.elapsed() < SOON => {
                    asked = true;
                }
                // No text in the database contains U+0000, so nothing matches.
                Err(error) if error.is_nul() => return Ok(Vec::new()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Runs a statement that only reads, and returns its first row.
    pub(super) async fn row(
        &self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Runs one statement that writes, as a transaction of its own. Returns its rows.
    pub(super) async fn write(
        &self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            match self.run(LIMIT, sql, values).await? {
                Ok(rows) => return Ok(rows),
                Err(error) if error.is_conflict() && left > 0 => {}
                Err(error) if error.is_lost() => return Err(error.uncertain()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn run(
        &self,
        limit: Duration,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Result<Vec<Row>, Error>, StoreError> {
        let connection = self.connection().await?;
        let client = &connection.client;
        let asked = async {
            let statement = client.prepare_cached(sql).await?;
            Ok(client.query(&statement, values).await?)
        };
        let asked = tokio::time::timeout(limit, asked).await;
        let result = asked.unwrap_or(Err(Error::TimedOut));
        if result.as_ref().is_err_and(Error::ends_connection) {
            connection.give_up();
        }
        Ok(result)
    }

    /// Returns the attempts to run an operation of several statements; see `transact!`.
    pub(super) fn attempts(&self) -> Attempts<'_> {
        Attempts::new(self)
    }

    /// Returns a read-only transaction, whose statements all see the same moment.
    pub(super) async fn snapshot(&self) -> Result<Transaction, StoreError> {
        Ok(Transaction::snapshot(self.connection().await?))
    }

    /// Waits for running operations, and closes every connection.
    pub(super) async fn close(&self) {
        *self.closed.write().await = true;
        self.pool.close();
    }
}

/// Returns the error of a closed store.
pub(super) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}
