//! The store itself: its databases, opened and closed.

use async_trait::async_trait;
use futures_util::future::join;
use platform_store::{ConnectError, SchemaPolicy, Store, StoreError};

use super::database::{self, Database};
use super::guests::Guests;
use super::log_writes::LogWriter;

/// A store in PostgreSQL.
#[derive(Debug)]
pub struct PostgresStore {
    /// Players, sessions, keys, projects.
    pub(super) main: Database,
    /// New guests, many in one commit.
    pub(super) guests: Guests,
    /// Frontend log records, which may lie in a database of their own.
    pub(super) logs: Logs,
}

/// The part of the store that keeps frontend log records.
#[derive(Debug)]
pub(super) struct Logs {
    /// Their database, with connections of its own: a flood of records waits for
    /// itself alone.
    pub(super) database: Database,
    /// New records, many requests in one commit.
    pub(super) writer: LogWriter,
}

impl PostgresStore {
    /// Opens the store at `url`, and its log records at `logs`, or beside the rest
    /// if that is `None`.
    ///
    /// # Errors
    /// [`ConnectError`]. It repeats no address, since that may hold a password.
    pub async fn open(
        url: &str,
        logs: Option<&str>,
        schema: SchemaPolicy,
    ) -> Result<Self, ConnectError> {
        let main = Database::open(url, &database::MAIN, schema).await?;
        let logs = Database::open(logs.unwrap_or(url), &database::LOGS, schema).await?;
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

#[async_trait]
impl Store for PostgresStore {
    async fn close(&self) -> Result<(), StoreError> {
        join(self.guests.close(), self.logs.writer.close()).await;
        join(self.main.close(), self.logs.database.close()).await;
        Ok(())
    }
}
