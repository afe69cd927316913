//! The store itself: its two files, opened and closed.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use futures_util::future::join;
use platform_store::figures::DatabaseFigures;
use platform_store::{ConnectError, SchemaPolicy, Store, StoreError};

use super::database::{self, Database};

/// A store in two SQLite files.
#[derive(Debug)]
pub struct SqliteStore {
    /// Players, sessions, keys, projects.
    pub(super) main: Database,
    /// Frontend log records.
    pub(super) logs: Database,
}

impl SqliteStore {
    /// Opens the store at `path`, and its log records in `logs.db` beside it. Creates the files,
    /// which only their owner may read, and their directory if they do not exist.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn open(path: &Path, schema: SchemaPolicy) -> Result<Self, ConnectError> {
        let path = path.to_owned();
        tokio::task::spawn_blocking(move || {
            Ok(Self {
                main: Database::open(&path, &database::MAIN, schema)?,
                logs: Database::open(&beside(&path), &database::LOGS, schema)?,
            })
        })
        .await
        .unwrap_or_else(|error| Err(ConnectError::Database(Box::new(error))))
    }
}

/// The file's name in a copy, which is also the default in the settings.
pub(super) const MAIN_FILE: &str = "platform.db";

/// The file of the log records: `logs.db` beside `platform.db`. For a store with another name, that
/// name is the prefix, so that two stores in one directory share nothing.
pub(super) fn beside(path: &Path) -> PathBuf {
    match path.file_stem().and_then(std::ffi::OsStr::to_str) {
        None | Some("platform") => path.with_file_name("logs.db"),
        Some(stem) => path.with_file_name(format!("{stem}.logs.db")),
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn close(&self) -> Result<(), StoreError> {
        let (main, logs) = join(self.main.close(), self.logs.close()).await;
        main.and(logs)
    }

    fn figures(&self) -> Vec<DatabaseFigures> {
        vec![self.main.figures("main"), self.logs.figures("logs")]
    }
}
