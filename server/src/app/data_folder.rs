//! The data folder: the lock for one server at a time, and the check for an existing platform.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::store::{SqliteStore, make_private_directory};

/// The file whose lock shows that a server uses the folder.
const LOCK: &str = "platform.lock";
/// The file that is there while a backup is put into its place.
pub(super) const UNFINISHED_RESTORE: &str = "restore-unfinished";

/// Why a command cannot use the data folder; a line for the operator.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Another server uses it. Two servers would each treat keys, limits and presence as their own.
    #[error("another platform-server uses {0}; stop it, or set PLATFORM_DATA to another folder")]
    InUse(String),
    /// A command that changes a platform did not find one.
    #[error("there is no platform in {0}; set PLATFORM_DATA to the folder that `serve` uses")]
    NoPlatform(String),
    /// There is no store, but what belongs to one.
    #[error(
        "there is no store at {store}, but {found} belongs to one, which a new store would lose; set \
         PLATFORM_DATA or PLATFORM_DATABASE_URL to where the store is, restore a backup, or move {found} \
         away to begin with an empty platform"
    )]
    Orphaned {
        /// Where the store would be.
        store: String,
        /// The file or folder that is there without it.
        found: String,
    },
    /// A backup was half restored.
    #[error(
        "{0} has half of a backup, because its restore was interrupted; repeat `platform-server \
         restore` with --force"
    )]
    HalfRestored(String),
    /// The user has no access.
    #[error("cannot use {path}: {}", advice(reason))]
    Unusable {
        /// The folder, or the file in it.
        path: String,
        /// The system's message. It is part of the sentence, and therefore not its source.
        reason: Error,
    },
}

fn advice(error: &Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => {
            "this user may not read and write there; change its permissions, or set PLATFORM_DATA \
             to another folder"
                .to_owned()
        }
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            "it is a file; set PLATFORM_DATA to a folder".to_owned()
        }
        _ => format!("{error}; set PLATFORM_DATA to a folder that can be created and written to"),
    }
}

fn unusable(path: &Path) -> impl FnOnce(Error) -> FolderError {
    let path = path.display().to_string();
    move |reason| FolderError::Unusable { path, reason }
}

/// The lock on the folders of this server. The system releases it when the process ends, in
/// whatever way.
#[derive(Debug)]
#[must_use = "dropping it lets another server in"]
pub struct FolderLock {
    _files: Vec<File>,
}

impl FolderLock {
    /// Locks the data folder, which is created if it does not exist, and the embedded store if it
    /// is in another folder.
    ///
    /// # Errors
    /// [`FolderError::InUse`], [`FolderError::Unusable`]
    pub fn take(config: &Config) -> Result<Self, FolderError> {
        let mut locks = vec![lock_path(&config.data, LOCK)?];
        // Several nodes may use one PostgreSQL database.
        if config.postgres.is_none() {
            let database = config.database_path();
            let beside = lock_path(folder_of(&database), &lock_name(&database))?;
            if !locks.contains(&beside) {
                locks.push(beside);
            }
        }
        let files = locks
            .iter()
            .map(|path| lock(path))
            .collect::<Result<_, _>>()?;
        Ok(Self { _files: files })
    }
}

/// Returns the name of the lock: stores with different names in one folder have separate locks.
fn lock_name(database: &Path) -> String {
    let stem = database.file_stem().unwrap_or_default().to_string_lossy();
    format!("{stem}.lock")
}

pub(super) fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Returns the canonical path, so that a folder that is named in two ways is not blocked by its own
/// lock.
fn lock_path(folder: &Path, name: &str) -> Result<PathBuf, FolderError> {
    make_private_directory(folder).map_err(unusable(folder))?;
    let folder = folder.canonicalize().map_err(unusable(folder))?;
    Ok(folder.join(name))
}

fn lock(path: &Path) -> Result<File, FolderError> {
    let folder = folder_of(path);
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(unusable(folder))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(FolderError::InUse(folder.display().to_string())),
        Err(TryLockError::Error(error)) => Err(unusable(folder)(error)),
    }
}

/// Checks that no restore was interrupted in the data folder.
///
/// # Errors
/// [`FolderError::HalfRestored`]
pub fn require_whole(config: &Config) -> Result<(), FolderError> {
    if config.data.join(UNFINISHED_RESTORE).exists() {
        let folder = config.data.display().to_string();
        return Err(FolderError::HalfRestored(folder));
    }
    Ok(())
}

/// Checks that a new store would find no deployed files and no log records of another one: it would remove
/// files that none of its deployments has.
///
/// # Errors
/// [`FolderError::Orphaned`]
pub fn require_no_orphans(config: &Config) -> Result<(), FolderError> {
    let store = config.database_path();
    if config.postgres.is_some() || store.exists() {
        return Ok(());
    }
    let logs = SqliteStore::logs_beside(&store);
    let files = config.files_path();
    let found = if logs.metadata().is_ok_and(|found| found.len() > 0) {
        logs
    } else if config.s3.is_none() && has_deployed(&files) {
        files
    } else {
        return Ok(());
    };
    Err(FolderError::Orphaned {
        store: store.display().to_string(),
        found: found.display().to_string(),
    })
}

/// Whether a folder of deployed files has any: they are in folders that are named by the first two digits of
/// their SHA-256.
fn has_deployed(files: &Path) -> bool {
    let folders = std::fs::read_dir(files).into_iter().flatten().flatten();
    let folders = folders.filter(|folder| folder.file_name().len() == 2);
    let mut inside =
        folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten());
    inside.next().is_some()
}

/// Checks that there is a platform, for commands that need an existing one.
///
/// # Errors
/// [`FolderError::NoPlatform`], [`FolderError::HalfRestored`], [`FolderError::Unusable`]
pub fn require_platform(config: &Config) -> Result<(), FolderError> {
    if config.postgres.is_some() {
        // Opening the store fails if the database has no platform.
        return Ok(());
    }
    require_whole(config)?;
    let database = config.database_path();
    let folder = folder_of(&database);
    match File::open(&database).and_then(|file| file.metadata()) {
        Ok(found) if found.is_file() && found.len() > 0 => Ok(()),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(unusable(folder)(error)),
        _ => Err(FolderError::NoPlatform(folder.display().to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_folder(data: &Path) -> Config {
        Config {
            data: data.to_owned(),
            ..Config::default()
        }
    }

    #[test]
    fn one_folder_is_taken_once_however_it_is_spelled() {
        let folder = tempfile::tempdir().unwrap();
        let config = in_folder(folder.path());
        let mut spelled_twice = in_folder(&folder.path().join("."));
        spelled_twice.database = Some(folder.path().join("platform.db"));
        let lock = FolderLock::take(&spelled_twice).unwrap();
        assert!(matches!(
            FolderLock::take(&config),
            Err(FolderError::InUse(_))
        ));
        drop(lock);
        drop(FolderLock::take(&config).unwrap());
    }

    #[test]
    fn one_store_is_taken_once_whatever_the_data_folder() {
        let (store, one, other) = (
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
        );
        let mut config = in_folder(one.path());
        config.database = Some(store.path().join("a.db"));
        let _lock = FolderLock::take(&config).unwrap();
        config.data = other.path().to_owned();
        assert!(matches!(
            FolderLock::take(&config),
            Err(FolderError::InUse(_))
        ));
        config.database = Some(store.path().join("b.db"));
        drop(FolderLock::take(&config).unwrap());
    }

    #[test]
    fn a_new_store_takes_nothing_of_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = in_folder(folder.path());
        let is_refused = |config: &Config| require_no_orphans(config).is_err();
        std::fs::create_dir_all(folder.path().join("files/4a")).unwrap();
        assert!(!is_refused(&config), "a folder without files");
        std::fs::write(folder.path().join("files/4a/63"), "page").unwrap();
        let line = require_no_orphans(&config).unwrap_err().to_string();
        for part in ["platform.db", "files", "PLATFORM_DATABASE_URL", "restore"] {
            assert!(line.contains(part), "{line}");
        }
        config.database = Some(folder.path().join("platfrom.db"));
        assert!(is_refused(&config), "a name that is misspelled");
        std::fs::write(folder.path().join("platfrom.db"), "").unwrap();
        assert!(!is_refused(&config), "a store whose first start was killed");
        let folder = tempfile::tempdir().unwrap();
        let config = in_folder(folder.path());
        std::fs::write(folder.path().join("logs.db"), "records").unwrap();
        assert!(is_refused(&config), "log records");
    }

    #[test]
    fn what_the_system_refuses_is_said_with_what_to_do() {
        let refused = |kind: ErrorKind| unusable(Path::new("/data"))(kind.into()).to_string();
        for kind in [ErrorKind::PermissionDenied, ErrorKind::NotADirectory] {
            let line = refused(kind);
            assert!(
                line.contains("/data") && line.contains("PLATFORM_DATA"),
                "{line}"
            );
        }
        assert!(refused(ErrorKind::PermissionDenied).contains("may not read"));
    }
}
