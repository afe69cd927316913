//! One SQLite file: its permissions, the settings of its connections, and the ways to write and to
//! read it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform_store::figures::DatabaseFigures;
use platform_store::{ConnectError, LOG_WRITES, SchemaPolicy, StoreError};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::connection::{not_opened, prepare};
use super::error::Error;
use super::migrations::{self, Schema};
use super::readers::Readers;
use super::writer::{Limits, Writer};

/// KiB of pages that the writing connection caches.
const WRITER_CACHE_KIB: i32 = 2_048;
/// The maximum number of reading connections: a point read takes microseconds, so more than the
/// cores can use at once would only cost memory.
const READERS: usize = 4;

/// The purpose and limits of a file.
#[derive(Debug)]
pub(super) struct Kind {
    schema: &'static Schema,
    /// Whether what is removed is overwritten (`PRAGMA secure_delete`): always, or only where that
    /// costs no extra write.
    overwrites: &'static str,
    limits: Limits,
    readers: usize,
}

/// Players, sessions, keys, projects.
pub(super) const MAIN: Kind = Kind {
    schema: &migrations::MAIN,
    overwrites: "ON",
    limits: Limits {
        name: "store-writer",
        queue: 4_096,
        group: 512,
    },
    readers: READERS,
};

/// Frontend log records. A write is a whole request of up to 64 KiB, so both the queue and the
/// group are smaller.
pub(super) const LOGS: Kind = Kind {
    schema: &migrations::LOGS,
    overwrites: "FAST",
    limits: Limits {
        name: "log-writer",
        queue: LOG_WRITES,
        group: 64,
    },
    readers: 2,
};

/// One open file.
#[derive(Debug)]
pub(super) struct Database {
    writer: Writer,
    readers: Arc<Readers>,
}

impl Database {
    /// Opens the file at `path`, creates it if it does not exist, and upgrades its schema if that
    /// is allowed. It blocks.
    pub(super) fn open(
        path: &Path,
        kind: &Kind,
        schema: SchemaPolicy,
    ) -> Result<Self, ConnectError> {
        let lock = lock_directory(path)?;
        make_private_file(path).map_err(|source| ConnectError::File {
            path: path.display().to_string(),
            source,
        })?;
        let mut connection = open_writing(path)?;
        connection
            .pragma_update(None, "secure_delete", kind.overwrites)
            .map_err(not_opened)?;
        kind.schema.bring_up_to_date(&mut connection, schema)?;
        drop(lock);
        let count = std::thread::available_parallelism()
            .map_or(kind.readers, usize::from)
            .min(kind.readers);
        let readers = Readers::open(path, count).map_err(not_opened)?;
        let writer = Writer::start(connection, kind.limits)
            .map_err(|error| ConnectError::Database(error.into()))?;
        Ok(Self {
            writer,
            readers: Arc::new(readers),
        })
    }

    /// Runs `work` in the writer's next group; see [`Writer::write`].
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
        T: Send + 'static,
    {
        self.writer.write(work).await
    }

    /// Reads on the caller's thread: for reads of a few microseconds.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, StoreError> {
        self.readers.read(work)
    }

    /// Reads on a blocking thread: for reads whose time grows with the store.
    pub(super) async fn read_much<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = Arc::clone(&self.readers);
        tokio::task::spawn_blocking(move || readers.read(work))
            .await
            .unwrap_or_else(|error| Err(StoreError::Database(Box::new(error))))
    }

    /// Returns what was counted, under this name.
    pub(super) fn figures(&self, name: &'static str) -> DatabaseFigures {
        let writes = self.writer.figures();
        DatabaseFigures {
            name,
            waiting: writes.waiting(),
            writes,
            pool: None,
        }
    }

    /// Writes what is queued and closes every connection.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.readers.close();
        self.writer.close().await
    }
}

/// Creates the directory (mode 0700) if it does not exist, and locks it until the returned file is
/// dropped. Without the lock, if two processes create a database at once, SQLite would refuse one
/// of them.
fn lock_directory(path: &Path) -> Result<File, ConnectError> {
    let directory = match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    make_private_directory(directory)
        .and_then(|()| File::open(directory))
        .and_then(|lock| lock.lock().map(|()| lock))
        .map_err(|source| ConnectError::File {
            path: directory.display().to_string(),
            source,
        })
}

/// Creates the file (mode 0600) if it does not exist, and removes the permissions of other users.
/// SQLite gives the log beside it the same mode.
///
/// An existing file is never opened here: closing it would release the locks that SQLite holds on
/// it elsewhere in this process (POSIX fcntl).
pub fn make_private_file(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => take_rights_away(path),
        made => made.map(drop),
    }
}

#[cfg(unix)]
fn take_rights_away(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if std::fs::metadata(path)?.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn take_rights_away(_path: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Creates `directory` and its missing parents, only for its owner. An existing one keeps its mode:
/// it may serve other purposes as well.
pub fn make_private_directory(directory: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

fn open_writing(path: &Path) -> Result<Connection, ConnectError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let path = PathBuf::from(path);
    let mut connection = Connection::open_with_flags(path, flags).map_err(not_opened)?;
    prepare(&connection, WRITER_CACHE_KIB).map_err(not_opened)?;
    // FULL: the log is on the disk before a commit returns, not only at the next checkpoint.
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
        .map_err(not_opened)?;
    connection.set_transaction_behavior(TransactionBehavior::Immediate);
    Ok(connection)
}
