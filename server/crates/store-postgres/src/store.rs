//! The store itself: its databases, opened and closed.

use async_trait::async_trait;
use futures_util::future::join;
use platform_store::{ConnectError, SchemaPolicy, Store, StoreError};

use super::database::{self, Database};
use super::guests::Guests;
use super::log_writes::LogWriter;
use super::rows::get;

/// A store in PostgreSQL.
#[derive(Debug)]
pub struct PostgresStore {
    /// Players, sessions, keys, projects.
    pub(super) main: Database,
    /// New guests, many in one commit.
    pub(super) guests: Guests,
    /// Frontend log records, which may be in a separate database.
    pub(super) logs: Logs,
}

/// The part of the store for frontend log records.
#[derive(Debug)]
pub(super) struct Logs {
    /// Their database, with connections of its own, so that a flood of records delays only itself.
    pub(super) database: Database,
    /// New records, many requests in one commit.
    pub(super) writer: LogWriter,
}

impl PostgresStore {
    /// Opens the store at `url`, with its log records at `logs`, or in the same database if that is
    /// `None`.
    ///
    /// # Errors
    /// [`ConnectError`]. It does not contain the address, which may contain a password.
    pub async fn open(
        url: &str,
        logs: Option<&str>,
        schema: SchemaPolicy,
    ) -> Result<Self, ConnectError> {
        let main = Database::open(url, &database::MAIN, schema).await?;
        let logs = match logs {
            Some(logs) => Database::open(logs, &database::LOGS, schema)
                .await
                .map_err(of_logs)?,
            None => Database::open(url, &database::LOGS, schema).await?,
        };
        if schema == SchemaPolicy::Upgrade {
            warn_of_one_machine(&main).await;
        }
        Ok(Self {
            guests: Guests::start(main.clone()),
            main,
            logs: Logs {
                writer: LogWriter::start(logs.clone()),
                database: logs,
            },
        })
    }
}

/// Returns the error of the database of log records, which another setting names.
pub(super) fn of_logs(error: ConnectError) -> ConnectError {
    ConnectError::Logs(match error {
        ConnectError::Database(cause) => cause,
        other => Box::new(other),
    })
}

/// Warns a server whose acknowledged writes are on one machine. Without a session that it
/// acknowledged, a browser becomes a new guest.
async fn warn_of_one_machine(database: &Database) {
    let sql = "SELECT current_setting('synchronous_standby_names')";
    let Ok(Some(row)) = database.row(sql, &[]).await else {
        return;
    };
    if get::<&str>(&row, 0).is_ok_and(str::is_empty) {
        tracing::warn!(
            "PostgreSQL does not wait for a standby (synchronous_standby_names is empty): if its \
             machine is lost, the last players are lost with it, unless the database is replicated \
             in another way; see docs/several-nodes.md"
        );
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn close(&self) -> Result<(), StoreError> {
        join(self.guests.close(), self.logs.writer.close()).await;
        join(self.main.close(), self.logs.database.close()).await;
        Ok(())
    }
}
