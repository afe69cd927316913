//! The store itself: its databases, opened and closed.

use async_trait::async_trait;
use futures_util::future::join;
use platform_store::figures::DatabaseFigures;
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

#[async_trait]
impl Store for PostgresStore {
    async fn close(&self) -> Result<(), StoreError> {
        join(self.guests.close(), self.logs.writer.close()).await;
        join(self.main.close(), self.logs.database.close()).await;
        Ok(())
    }

    fn figures(&self) -> Vec<DatabaseFigures> {
        let logs = &self.logs;
        vec![
            self.main.figures("main", self.guests.waiting()),
            logs.database.figures("logs", logs.writer.waiting()),
        ]
    }
}
