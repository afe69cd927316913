//! Copies of the whole store.

use std::path::Path;
use std::sync::Arc;

use platform_domain::administration::StoreCopy;
use platform_domain::project::FileEntry;
use platform_store::{ConnectError, StoreError};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::connection::not_opened;
use super::database::make_private_file;
use super::error::Error;
use super::migrations::{LOGS, MAIN};
use super::store::{MAIN_FILE, SqliteStore, beside};

impl SqliteStore {
    /// Writes a copy of the whole store into `folder`, which exists and has no copy yet: everything
    /// that was written before the call, while other writes continue. The folder is kept until the
    /// copy is finished, even if the caller no longer waits for it.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn copy_into(&self, folder: Arc<TempDir>) -> Result<StoreCopy, StoreError> {
        let main = folder.path().join(MAIN_FILE);
        let logs = beside(&main);
        let held = Arc::clone(&folder);
        let copy = self
            .main
            .read_much(move |connection| {
                copy_database(connection, &main)?;
                let files = list_files(&main);
                drop(held);
                files
            })
            .await?;
        self.logs
            .read_much(move |connection| {
                copy_database(connection, &logs)?;
                drop(folder);
                Ok(())
            })
            .await?;
        Ok(copy)
    }
}

impl SqliteStore {
    /// Whether there is a store at `path` that [`SqliteStore::open`] would upgrade. It blocks.
    ///
    /// # Errors
    /// [`ConnectError`]
    pub fn is_older(path: &Path) -> Result<bool, ConnectError> {
        for (path, schema) in [(path, &MAIN), (&beside(path), &LOGS)] {
            if !path.metadata().is_ok_and(|found| found.len() > 0) {
                continue;
            }
            let connection = open_existing(path).map_err(not_opened)?;
            let found = schema.version_of(&connection).map_err(not_opened)?;
            if found.is_some_and(|found| found < schema.newest()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes a copy of the store at `path` into `folder` as [`SqliteStore::copy_into`] does, whatever
    /// the version of its schema. Nobody may be writing. It blocks.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn copy_as_it_is(path: &Path, folder: &Path) -> Result<StoreCopy, StoreError> {
        let copied = || -> Result<StoreCopy, Error> {
            let main = folder.join(MAIN_FILE);
            copy_database(&open_existing(path)?, &main)?;
            copy_database(&open_existing(&beside(path))?, &beside(&main))?;
            list_files(&main)
        };
        Ok(copied()?)
    }
}

/// Opens a file of a store as it is. A killed process may have left a log beside it, which is then
/// applied.
fn open_existing(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// Writes a snapshot of one read transaction into a new file, which is complete without a log. The
/// writer continues meanwhile.
fn copy_database(connection: &Connection, to: &Path) -> Result<(), Error> {
    // SQLite fills an empty file, and keeps the mode of an existing one.
    make_private_file(to).map_err(|error| StoreError::Unavailable(error.to_string()))?;
    let path = to.to_str().ok_or_else(|| {
        StoreError::Unavailable("the copy's path has characters that SQLite does not know".into())
    })?;
    connection.execute("VACUUM INTO ?1", [path])?;
    Ok(())
}

/// The files of the deployments in a copied store.
pub(super) fn list_files(path: &Path) -> Result<StoreCopy, Error> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut statement = connection
        .prepare("SELECT DISTINCT lower(hex(sha256)), size FROM deployment_files ORDER BY 1")?;
    let files = statement.query_map([], |row| {
        Ok(FileEntry {
            sha256: row.get(0)?,
            size: row.get::<_, i64>(1)?.unsigned_abs(),
        })
    })?;
    let files = files.collect::<Result<_, _>>()?;
    Ok(StoreCopy { files })
}
