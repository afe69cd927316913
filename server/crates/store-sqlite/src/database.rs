//! One SQLite file: whose it is, how its connections are set, and the two
//! ways into it, to write and to read.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform_store::{ConnectError, LOG_WRITES, SchemaPolicy, StoreError};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::connection::{not_opened, prepare};
use super::error::Error;
use super::migrations::{self, Schema};
use super::readers::Readers;
use super::writer::{Limits, Writer};

/// KiB of pages that the writing connection keeps.
const WRITER_CACHE_KIB: i32 = 2_048;
/// Reading connections, at most: a point read takes microseconds, so more
/// than the cores can use at once would only cost memory.
const READERS: usize = 4;

/// What a file is for.
#[derive(Debug)]
pub(super) struct Kind {
    schema: &'static Schema,
    limits: Limits,
    readers: usize,
}

/// Players, sessions, keys, projects.
pub(super) const MAIN: Kind = Kind {
    schema: &migrations::MAIN,
    limits: Limits {
        name: "store-writer",
        queue: 4_096,
        group: 512,
    },
    readers: READERS,
};

/// Frontend log records. A write is a whole request of up to 64 KiB, so fewer
/// of them may wait, and fewer make a group.
pub(super) const LOGS: Kind = Kind {
    schema: &migrations::LOGS,
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
    /// Opens the file at `path`, made if it is not there, and brings its
    /// schema up to date if it may. It blocks.
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

    /// Reads on the thread of the caller: for what takes some microseconds.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, StoreError> {
        self.readers.read(work)
    }

    /// Reads on a thread that may wait: for what grows with the store.
    pub(super) async fn read_much<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = Arc::clone(&self.readers);
        tokio::task::spawn_blocking(move || readers.read(work))
            .await
            .unwrap_or_else(|error| Err(StoreError::Database(Box::new(error))))
    }

    /// Writes out what is queued and closes every connection.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.readers.close();
        self.writer.close().await
    }
}

/// Makes the directory (mode 0700) where it is missing, and keeps all others
/// who open a store in it waiting until the answer is dropped: of two that
/// find a database new, SQLite would turn one away.
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

/// Makes the file (mode 0600) where it is missing, and takes others' rights to
/// it away where they have any. SQLite gives the log beside it the same mode.
///
/// A file that exists is never opened here: to close it again would take the
/// locks away that SQLite holds on it elsewhere in this process (POSIX fcntl).
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

/// Makes `directory` and what is missing above it, for its owner alone. One
/// that exists keeps its mode: it may be somebody else's business.
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
    // FULL: the log is on the disk before a commit returns, not only at the
    // next checkpoint.
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
        .map_err(not_opened)?;
    connection.set_transaction_behavior(TransactionBehavior::Immediate);
    Ok(connection)
}
