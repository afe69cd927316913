//! The data folder: the lock for one server at a time, and the check for an existing platform.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::store::make_private_directory;

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
