//! The embedded store: one SQLite file, one thread that writes, a few
//! connections that read beside it.
//!
//! | module | holds |
//! |---|---|
//! | `writer` | the writing thread and its group commit |
//! | `readers` | the reading connections |
//! | `migrations` | the schema's history |
//! | `error` | what SQLite's errors mean to a caller |
//! | `players`, `keys`, `projects` | the operations, as SQL |

mod error;
mod keys;
mod migrations;
mod players;
mod projects;
mod readers;
#[cfg(test)]
mod tests;
mod writer;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use platform_protocol::names::Environment;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use uuid::Uuid;

use self::readers::Readers;
use self::writer::Writer;
use super::{ConnectError, NewGuest, Store, StoreError};
use crate::clock::Millis;
use crate::domain::key::StoredKey;
use crate::domain::player::Player;
use crate::domain::project::{Deployment, Project};
use crate::domain::session::{Session, SessionHash};

/// How long a statement waits while another process, such as an operator's
/// command, holds the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// KiB of pages that the writing connection keeps.
const WRITER_CACHE_KIB: i32 = 2_048;
/// Reading connections, at most: a point read takes microseconds, so more
/// than the cores can use at once would only cost memory.
const READERS: usize = 4;
/// Statements that a connection keeps prepared.
const PREPARED: usize = 32;

/// A store in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    writer: Writer,
    readers: Arc<Readers>,
}

impl SqliteStore {
    /// Opens the store at `path`. The file, which only its owner may read, and
    /// its directory are made if they are not there.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn open(path: &Path) -> Result<Self, ConnectError> {
        let path = path.to_owned();
        tokio::task::spawn_blocking(move || Self::open_blocking(&path))
            .await
            .unwrap_or_else(|error| Err(ConnectError::Database(Box::new(error))))
    }

    fn open_blocking(path: &Path) -> Result<Self, ConnectError> {
        let lock = lock_directory(path)?;
        make_private(path)?;
        let mut connection = open_writing(path)?;
        migrations::migrate(&mut connection)?;
        drop(lock);
        let count = std::thread::available_parallelism()
            .map_or(READERS, usize::from)
            .min(READERS);
        let readers = Readers::open(path, count).map_err(database)?;
        let writer =
            Writer::start(connection).map_err(|error| ConnectError::Database(error.into()))?;
        Ok(Self {
            writer,
            readers: Arc::new(readers),
        })
    }

    /// Reads on the thread of the caller: for what takes some microseconds.
    fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.readers.read(work)
    }

    /// Reads on a thread that may wait: for what grows with the store.
    async fn read_much<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = Arc::clone(&self.readers);
        tokio::task::spawn_blocking(move || readers.read(work))
            .await
            .unwrap_or_else(|error| Err(StoreError::Database(Box::new(error))))
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn lookup_session(&self, hash: &SessionHash) -> Result<Option<Session>, StoreError> {
        self.read(|connection| players::lookup_session(connection, hash))
    }

    async fn add_guest(&self, guest: NewGuest) -> Result<Player, StoreError> {
        self.writer
            .write(move |connection| players::add_guest(connection, &guest))
            .await
    }

    async fn renew_session(&self, hash: &SessionHash, now: Millis) -> Result<(), StoreError> {
        let hash = *hash;
        self.writer
            .write(move |connection| players::renew_session(connection, &hash, now))
            .await
    }

    async fn end_session(&self, hash: &SessionHash, now: Millis) -> Result<(), StoreError> {
        let hash = *hash;
        self.writer
            .write(move |connection| players::end_session(connection, &hash, now))
            .await
    }

    async fn list_keys(&self) -> Result<Vec<StoredKey>, StoreError> {
        self.read_much(keys::list_keys).await
    }

    async fn add_key(&self, key: StoredKey, after: Option<&str>) -> Result<bool, StoreError> {
        let after = after.map(str::to_owned);
        self.writer
            .write(move |connection| keys::add_key(connection, &key, after.as_deref()))
            .await
    }

    async fn remove_keys(&self, kids: &[String]) -> Result<(), StoreError> {
        let kids = kids.to_vec();
        self.writer
            .write(move |connection| keys::remove_keys(connection, &kids))
            .await
    }

    async fn add_project(&self, project: Project) -> Result<(), StoreError> {
        self.writer
            .write(move |connection| projects::add_project(connection, &project))
            .await
    }

    async fn list_projects(&self) -> Result<Vec<Project>, StoreError> {
        self.read_much(projects::list_projects).await
    }

    async fn find_project(&self, slug: &str) -> Result<Option<Project>, StoreError> {
        self.read(|connection| projects::find_project(connection, slug))
    }

    async fn add_deployment(&self, deployment: Deployment) -> Result<(), StoreError> {
        self.writer
            .write(move |connection| projects::add_deployment(connection, &deployment))
            .await
    }

    async fn find_current_deployment(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Option<Deployment>, StoreError> {
        let slug = slug.to_owned();
        self.read_much(move |connection| {
            projects::find_current_deployment(connection, &slug, environment)
        })
        .await
    }

    async fn close(&self) -> Result<(), StoreError> {
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
fn make_private(path: &Path) -> Result<(), ConnectError> {
    let mut options = std::fs::OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let made = match options.open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => take_rights_away(path),
        made => made.map(drop),
    };
    made.map_err(|source| ConnectError::File {
        path: path.display().to_string(),
        source,
    })
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
pub(crate) fn make_private_directory(directory: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

fn open_writing(path: &Path) -> Result<Connection, ConnectError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let path = PathBuf::from(path);
    let mut connection = Connection::open_with_flags(path, flags).map_err(database)?;
    prepare(&connection, WRITER_CACHE_KIB).map_err(database)?;
    // FULL: the log is on the disk before a commit returns, not only at the
    // next checkpoint.
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
        .map_err(database)?;
    connection.set_transaction_behavior(TransactionBehavior::Immediate);
    Ok(connection)
}

/// What every connection is set to.
fn prepare(connection: &Connection, cache_kib: i32) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(PREPARED);
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)
}

fn database(error: rusqlite::Error) -> ConnectError {
    ConnectError::Database(Box::new(error))
}

/// A UUID as the store keeps it, or which row is wrong.
fn uuid(
    bytes: &[u8],
    table: &'static str,
    column: &'static str,
    row: impl FnOnce() -> String,
) -> Result<Uuid, StoreError> {
    Uuid::from_slice(bytes).map_err(|_| StoreError::Corrupt {
        table,
        column,
        row: row(),
    })
}
