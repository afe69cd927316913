//! Copies of the whole store.

use std::path::Path;
use std::sync::Arc;

use platform_domain::administration::StoreCopy;
use platform_domain::project::FileEntry;
use platform_store::StoreError;
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::database::make_private_file;
use super::error::Error;
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
fn list_files(path: &Path) -> Result<StoreCopy, Error> {
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
