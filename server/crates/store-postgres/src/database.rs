//! A database's connections: reads, writes of one statement, time limits, and closing.
//!
//! Some connections are kept for reads. A write may wait for a standby that is gone, and the server
//! goes on waiting even if its client gives up: were such writes to take every connection, or more
//! connections than the pool has, players could not even be looked up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod, Runtime,
};
use platform_store::figures::{DatabaseFigures, PoolFigures, WriteFigures};
use platform_store::{ConnectError, SchemaPolicy, StoreError};
use tokio::sync::{OwnedRwLockReadGuard, OwnedSemaphorePermit, RwLock, Semaphore, watch};
use tokio::time::Instant;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, Row};

use super::error::{Error, describe};
use super::migrations::Schema;
use super::servers::Servers;
use super::transaction::{Attempts, Transaction, write_step};
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

/// Lets the server notice a client that is gone while a statement waits for a lock. Not every
/// server has this setting.
const NOTICE: &str = "SET client_connection_check_interval = '1s'";

/// The message if no write was answered for longer than the limit.
const NOT_WRITTEN: &str =
    "the database answers no writes; if it waits for standbys, none of them may be left";
/// The message if no connection that may write became free in time.
const ALL_WRITE: &str = "every connection that may write is in use";

/// A value of a statement.
pub(super) type Value<'value> = &'value (dyn ToSql + Sync);

/// The purpose and limits of a database.
#[derive(Debug)]
pub(super) struct Kind {
    /// Its name, for the operator.
    pub(super) name: &'static str,
    /// Its tables.
    pub(super) schema: &'static Schema,
    /// How many connections there are at most.
    pub(super) connections: usize,
    /// How many of them may write at the same time.
    pub(super) writers: usize,
}

/// Players, sessions, keys, projects.
pub(super) const MAIN: Kind = Kind {
    name: "database",
    schema: &migrations::MAIN,
    connections: 16,
    writers: 10,
};

/// Frontend log records.
pub(super) const LOGS: Kind = Kind {
    name: "database of log records",
    schema: &migrations::LOGS,
    connections: 6,
    writers: 4,
};

/// An open database.
#[derive(Clone)]
pub(super) struct Database {
    pool: Pool,
    servers: Servers,
    writers: Arc<Writers>,
    figures: Arc<WriteFigures>,
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

/// The connections that may write.
struct Writers {
    /// One permit for each that is free.
    free: Arc<Semaphore>,
    /// How many there are.
    all: usize,
    /// How many wait for a write that the server has not answered within the limit.
    abandoned: AtomicUsize,
    /// Whether the database was closed.
    closed: watch::Sender<bool>,
}

/// A connection in use.
pub(super) struct Connection {
    pub(super) client: Object,
    /// What lets it write.
    writer: Option<Writer>,
    _open: OwnedRwLockReadGuard<bool>,
}

/// A permit to write.
struct Writer {
    writers: Arc<Writers>,
    takeovers: watch::Receiver<u64>,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    /// Closes the connection, because its state is unknown.
    pub(super) fn give_up(self) {
        drop(Object::take(self.client));
    }

    /// Gives up a write that the server did not answer within the limit. Closing the connection
    /// would not end such a write on a server that waits for a standby. So the connection and the
    /// permit stay in use until the server answers, the connection breaks, or another server takes
    /// over.
    pub(super) fn abandon(self) {
        let Self { client, writer, .. } = self;
        let Some(Writer {
            writers,
            mut takeovers,
            _permit: permit,
        }) = writer
        else {
            drop(Object::take(client));
            return;
        };
        writers.abandoned.fetch_add(1, Ordering::Relaxed);
        let mut closed = writers.closed.subscribe();
        tokio::spawn(async move {
            tokio::select! {
                // The server answers in order, so this is answered after the write.
                _ = client.batch_execute("") => {}
                _ = takeovers.changed() => {}
                _ = closed.wait_for(|closed| *closed) => {}
            }
            drop(Object::take(client));
            writers.abandoned.fetch_sub(1, Ordering::Relaxed);
            drop(permit);
        });
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
        if policy == SchemaPolicy::Upgrade && address::may_be_read(&config) {
            tracing::warn!(
                "the address of the {} does not end with ?sslmode=require: connections may go over \
                 the network without TLS, and whoever is in between could read passwords and \
                 sessions; see docs/several-nodes.md",
                kind.name
            );
        }
        kind.schema.bring_up_to_date(&config, policy).await?;
        let servers = Servers::new(&config)?;
        Ok(Self {
            pool: pool(config, kind, &servers)?,
            servers,
            writers: Arc::new(Writers {
                free: Arc::new(Semaphore::new(kind.writers)),
                all: kind.writers,
                abandoned: AtomicUsize::new(0),
                closed: watch::Sender::new(false),
            }),
            figures: Arc::default(),
            closed: Arc::default(),
        })
    }

    /// Returns what counts the writes.
    pub(super) fn counted(&self) -> &WriteFigures {
        &self.figures
    }

    /// Returns what was counted, under this name. `queued` writes wait before they come here.
    pub(super) fn figures(&self, name: &'static str, queued: usize) -> DatabaseFigures {
        let status = self.pool.status();
        DatabaseFigures {
            name,
            waiting: queued.saturating_add(self.figures.waiting()),
            writes: Arc::clone(&self.figures),
            pool: Some(PoolFigures {
                most: status.max_size,
                idle: status.available,
                in_use: status.size.saturating_sub(status.available),
                waiting: status.waiting,
                unanswered: self.writers.abandoned.load(Ordering::Relaxed),
            }),
        }
    }

    /// Takes an idle connection for reads, or opens one.
    pub(super) async fn connection(&self) -> Result<Connection, StoreError> {
        self.connection_for(None).await
    }

    /// Takes an idle connection for a write, or opens one. Fails at once if no write is answered.
    pub(super) async fn writing_connection(&self) -> Result<Connection, StoreError> {
        let writers = &self.writers;
        if writers.abandoned.load(Ordering::Relaxed) >= writers.all {
            return Err(StoreError::Unavailable(NOT_WRITTEN.into()));
        }
        let free = Arc::clone(&writers.free).acquire_owned();
        let waiting = self.figures.waits_until_dropped();
        let permit = tokio::time::timeout(WAIT, free)
            .await
            .map_err(|_| StoreError::Unavailable(ALL_WRITE.into()))?
            .map_err(|_| closed())?;
        drop(waiting);
        let writer = Writer {
            writers: Arc::clone(writers),
            takeovers: self.servers.takeovers(),
            _permit: permit,
        };
        self.connection_for(Some(writer)).await
    }

    async fn connection_for(&self, writer: Option<Writer>) -> Result<Connection, StoreError> {
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
            writer,
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
            match Self::run(self.connection().await?, limit, sql, values).await {
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
        let mut step = write_step();
        loop {
            left -= 1;
            let connection = self.writing_connection().await;
            let connection = connection.inspect_err(|_| step.fail("no connection"))?;
            step.reached("transaction");
            let begun = Instant::now();
            let ran = Self::run(connection, LIMIT, sql, values).await;
            match ran {
                Ok(rows) => {
                    self.figures.committed(1, begun.elapsed());
                    return Ok(rows);
                }
                Err(error) if error.is_conflict() && left > 0 => {}
                Err(error) => {
                    self.figures.failed();
                    step.fail("not written");
                    return Err(if error.is_lost() {
                        error.uncertain()
                    } else {
                        error.into()
                    });
                }
            }
        }
    }

    async fn run(
        connection: Connection,
        limit: Duration,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, Error> {
        let client = &connection.client;
        let asked = async {
            let statement = client.prepare_cached(sql).await?;
            Ok(client.query(&statement, values).await?)
        };
        let asked = tokio::time::timeout(limit, asked).await;
        let result = asked.unwrap_or(Err(Error::TimedOut));
        match &result {
            Err(Error::TimedOut) => connection.abandon(),
            Err(error) if error.ends_connection() => connection.give_up(),
            Ok(_) | Err(_) => {}
        }
        result
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
        self.writers.closed.send_replace(true);
        self.pool.close();
    }
}

/// Returns the pool of connections to the server that accepts writes.
fn pool(config: Config, kind: &Kind, servers: &Servers) -> Result<Pool, ConnectError> {
    let manager = Manager::from_connect(
        config,
        servers.clone(),
        ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        },
    );
    let known = servers.clone();
    Pool::builder(manager)
        .max_size(kind.connections)
        // The connection that was used last is most likely to have the statement prepared.
        .queue_mode(QueueMode::Lifo)
        .post_create(Hook::async_fn(|client, _| {
            Box::pin(async move {
                let begun = client.batch_execute(BEGINNING).await;
                begun.map_err(HookError::Backend)?;
                let _ = client.batch_execute(NOTICE).await;
                Ok(())
            })
        }))
        .pre_recycle(Hook::sync_fn(move |_, metrics| {
            if known.took_over_since(metrics.created) {
                return Err(HookError::message("another server took over"));
            }
            Ok(())
        }))
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(WAIT))
        .create_timeout(Some(WAIT))
        .recycle_timeout(Some(WAIT))
        .build()
        .map_err(|error| ConnectError::Database(Box::new(error)))
}

/// Returns the error of a closed store.
pub(super) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}
