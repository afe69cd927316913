//! The backups that a server makes by itself: where they are kept, how they are named, when the next
//! one is due, and which are removed.
//!
//! A backup is written under another name, in a folder that nobody takes for backups, and gets its
//! name when it is complete and on the disk. So whatever ends the process, every name is that of a
//! whole backup.

mod job;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform_archive::backup::DATABASE;
use tempfile::TempDir;

pub use self::job::MakeBackups;
use crate::app::backup::{self, Backup, BackupError, DeployedFiles};
use crate::clock::Millis;
use crate::config::{BackupPlace, Config, S3Settings};
use crate::domain::administration::StoreCopy;
use crate::domain::date::{parse_rfc3339, rfc3339_seconds};
use crate::games::files::FileError;
#[cfg(feature = "cluster")]
use crate::games::files::archives::BucketArchives;
#[cfg(feature = "cluster")]
use crate::games::files::copies::BucketCopies;
use crate::platform::disk::{DiskFloor, FreeSpace};
use crate::store::{
    ConnectError, CopyFault, SchemaPolicy, SqliteStore, Store as _, StoreError,
    make_private_directory,
};

/// What the name of a backup begins and ends with.
const PREFIX: &str = "platform-";
const SUFFIX: &str = ".tar";
/// The folder in which an unfinished backup is written: in that of the backups, or in the data folder
/// if they are in a bucket.
pub(super) const UNFINISHED: &str = ".unfinished-backup";
/// The file in it whose lock shows that a backup is being made.
const LOCK: &str = "lock";

/// Why there is no new backup; a line for the operator.
#[derive(Debug, thiserror::Error)]
pub enum BackupsError {
    /// The settings name no place.
    #[error(
        "the settings name no place for backups; set PLATFORM_BACKUP, as the server has it, or name \
         the file of the backup"
    )]
    NoPlace,
    /// Another process makes one.
    #[error("another backup is being made in {0}; wait for its end")]
    Busy(String),
    /// The folder cannot be used.
    #[error(
        "{path} could not be used; let this user write there, or set PLATFORM_BACKUP to another \
         folder"
    )]
    Folder {
        /// The folder, or the file in it.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// It would fill the disk.
    #[error(
        "the disk of {path} has no room for a backup of {bytes} bytes; free some, keep fewer \
         backups (PLATFORM_BACKUPS_KEPT), or set PLATFORM_BACKUP to another disk"
    )]
    NoRoom {
        /// The folder in which it is written.
        path: String,
        /// How many bytes it needs.
        bytes: u64,
    },
    /// The store is damaged.
    #[error(
        "the store is damaged, so no backup of it takes the place of an older one; stop the server and \
         restore the newest backup, or write a copy as it is with `platform-server backup <file>`"
    )]
    Damaged(#[source] CopyFault),
    /// The store could not be opened.
    #[error("the store could not be opened")]
    Open(#[from] ConnectError),
    /// The backup could not be written.
    #[error(transparent)]
    Write(#[from] BackupError),
    /// The bucket of backups failed.
    #[error("the bucket that PLATFORM_BACKUP names failed")]
    Bucket(#[from] FileError),
}

fn unusable(path: &Path) -> impl FnOnce(std::io::Error) -> BackupsError {
    let path = path.display().to_string();
    move |source| BackupsError::Folder { path, source }
}

/// A backup that was made and kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// Its size and its files.
    pub backup: Backup,
    /// How many older ones were removed.
    pub removed: usize,
}

/// The place of the backups.
#[derive(Debug)]
enum Place {
    Folder(PathBuf),
    #[cfg(feature = "cluster")]
    Bucket(BucketArchives),
}

/// The backups of a platform with an embedded store.
#[derive(Debug)]
pub struct Backups {
    place: Place,
    work: PathBuf,
    period: Millis,
    kept: usize,
}

impl Backups {
    /// Returns the backups of the settings.
    ///
    /// # Errors
    /// [`BackupsError::NoPlace`], [`BackupsError::Bucket`]
    pub fn new(config: &Config) -> Result<Self, BackupsError> {
        let (place, work) = match &config.backup {
            None => return Err(BackupsError::NoPlace),
            Some(BackupPlace::Folder(folder)) => {
                (Place::Folder(folder.clone()), folder.join(UNFINISHED))
            }
            Some(BackupPlace::Bucket(settings)) => {
                (in_bucket(settings)?, config.data.join(UNFINISHED))
            }
        };
        Ok(Self {
            place,
            work,
            period: config.backup_period(),
            kept: usize::try_from(config.backups_kept).unwrap_or(usize::MAX),
        })
    }

    /// Returns the names of the backups, oldest first.
    ///
    /// # Errors
    /// [`BackupsError`]
    pub async fn list(&self) -> Result<Vec<String>, BackupsError> {
        let names = match &self.place {
            Place::Folder(folder) => {
                let folder = folder.clone();
                blocking(move || names_in(&folder)).await?
            }
            #[cfg(feature = "cluster")]
            Place::Bucket(bucket) => bucket.list().await?,
        };
        let mut names: Vec<String> = names
            .into_iter()
            .filter(|name| time_of(name).is_some())
            .collect();
        // The names sort by time.
        names.sort_unstable();
        Ok(names)
    }

    /// Opens the backup `name` to read it.
    ///
    /// # Errors
    /// [`BackupsError`]
    pub async fn open(&self, name: &str) -> Result<File, BackupsError> {
        match &self.place {
            Place::Folder(folder) => {
                let path = folder.join(name);
                blocking(move || File::open(&path).map_err(unusable(&path))).await
            }
            #[cfg(feature = "cluster")]
            Place::Bucket(bucket) => {
                let work = self.work.clone();
                let file = blocking(move || {
                    make_private_directory(&work).map_err(unusable(&work))?;
                    tempfile::tempfile_in(&work).map_err(unusable(&work))
                });
                let file = file.await?;
                bucket.read_into(name, &file).await?;
                Ok(file)
            }
        }
    }

    /// Whether no backup was made within the last period. One with a time in the future, which a
    /// clock that was wrong wrote, does not count.
    fn is_due(&self, names: &[String], now: Millis) -> bool {
        newest(names, now).is_none_or(|newest| now - newest >= self.period)
    }

    /// Makes a backup if one is due. Returns what was made. If none is due, older ones are removed
    /// that could not be removed before.
    ///
    /// # Errors
    /// [`BackupsError`]
    pub async fn make_if_due(
        &self,
        config: &Config,
        disk: &DiskFloor,
        now: Millis,
    ) -> Result<Option<Kept>, BackupsError> {
        let names = self.list().await?;
        self.make_after(&names, config, disk, now).await
    }

    /// Makes a backup if one is due after those with these names, which are all.
    async fn make_after(
        &self,
        names: &[String],
        config: &Config,
        disk: &DiskFloor,
        now: Millis,
    ) -> Result<Option<Kept>, BackupsError> {
        if self.is_due(names, now) {
            return self.make(config, disk, now).await.map(Some);
        }
        self.remove_older(names, now).await?;
        Ok(None)
    }

    /// Makes a backup of the store and the files that the settings name, also beside a running
    /// server, and removes older ones.
    ///
    /// # Errors
    /// [`BackupsError`]
    pub async fn make(
        &self,
        config: &Config,
        disk: &DiskFloor,
        now: Millis,
    ) -> Result<Kept, BackupsError> {
        self.make_of(Source::Served, config, disk, now).await
    }

    async fn make_of(
        &self,
        source: Source,
        config: &Config,
        disk: &DiskFloor,
        now: Millis,
    ) -> Result<Kept, BackupsError> {
        let work = self.work.clone();
        // Held until the end.
        let _lock = blocking(move || begin(&work)).await?;
        self.check_room(config, disk).await?;
        let name = name_at(now);
        let unfinished = self.work.join(&name);
        let backup = write(source, config, &unfinished).await?;
        self.keep(&name, &unfinished, backup.bytes).await?;
        let removed = self.remove_older(&self.list().await?, now).await?;
        Ok(Kept {
            name,
            backup,
            removed,
        })
    }

    /// Checks that the disk has room for the backup, and for the copy of the store beside it.
    async fn check_room(&self, config: &Config, disk: &DiskFloor) -> Result<(), BackupsError> {
        let database = config.database_path();
        let files = config.s3.is_none().then(|| config.files_path());
        let bytes = blocking(move || {
            let logs = SqliteStore::logs_beside(&database);
            let store = size_of(&database) + size_of(&logs);
            Ok(2 * store + files.as_deref().map_or(0, size_of_deployed))
        });
        let bytes = bytes.await?;
        if disk.has_room_in(&self.work, bytes) {
            return Ok(());
        }
        let path = self.work.parent().unwrap_or(&self.work);
        let path = path.display().to_string();
        Err(BackupsError::NoRoom { path, bytes })
    }

    /// Gives a complete backup its name.
    async fn keep(&self, name: &str, unfinished: &Path, bytes: u64) -> Result<(), BackupsError> {
        match &self.place {
            Place::Folder(folder) => {
                let _ = bytes;
                let (from, folder, to) = (unfinished.to_owned(), folder.clone(), folder.join(name));
                blocking(move || {
                    std::fs::rename(&from, &to).map_err(unusable(&to))?;
                    let synced = File::open(&folder).and_then(|folder| folder.sync_all());
                    synced.map_err(unusable(&folder))
                })
                .await
            }
            #[cfg(feature = "cluster")]
            Place::Bucket(bucket) => {
                let stored = bucket.store(name, unfinished, bytes).await;
                // If this fails, the next backup removes it.
                let _ = std::fs::remove_file(unfinished);
                Ok(stored?)
            }
        }
    }

    /// Removes the oldest backups beyond the number that is kept, and returns how many. One with a
    /// time in the future is left alone.
    async fn remove_older(&self, names: &[String], now: Millis) -> Result<usize, BackupsError> {
        let names: Vec<&String> = up_to(names, now).collect();
        let old = names.len().saturating_sub(self.kept);
        for name in names.iter().take(old) {
            match &self.place {
                Place::Folder(folder) => {
                    let path = folder.join(name);
                    blocking(move || remove(&path).map_err(unusable(&path))).await?;
                }
                #[cfg(feature = "cluster")]
                Place::Bucket(bucket) => bucket.remove(name).await?,
            }
        }
        Ok(old)
    }
}

#[cfg(feature = "cluster")]
fn in_bucket(settings: &S3Settings) -> Result<Place, BackupsError> {
    Ok(Place::Bucket(BucketArchives::new(settings)?))
}

#[cfg(not(feature = "cluster"))]
fn in_bucket(_settings: &S3Settings) -> Result<Place, BackupsError> {
    Err(FileError::Unsupported("S3").into())
}

/// The store that is copied.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// One that this program serves.
    Served,
    /// One that no program has opened, and whose schema may be older.
    Older,
}

/// Makes a backup of an existing store before this program upgrades it, if the settings say where
/// backups are kept.
///
/// # Errors
/// [`BackupsError`]
pub(super) async fn make_before_upgrade(
    config: &Config,
    disk: &Arc<dyn FreeSpace>,
    now: Millis,
) -> Result<(), BackupsError> {
    if config.backup.is_none() || config.postgres.is_some() {
        return Ok(());
    }
    let database = config.database_path();
    if !blocking(move || Ok(SqliteStore::is_older(&database)?)).await? {
        return Ok(());
    }
    let floor = DiskFloor::new(Arc::clone(disk), config.folders(), config.disk_floor());
    let backups = Backups::new(config)?;
    let made = backups.make_of(Source::Older, config, &floor, now).await?;
    tracing::info!(name = made.name, "backed up before the store is upgraded");
    Ok(())
}

/// Copies the store and the files of the settings into `target`.
async fn write(source: Source, config: &Config, target: &Path) -> Result<Backup, BackupsError> {
    let folder = config.files_path();
    #[cfg(feature = "cluster")]
    let bucket = match &config.s3 {
        Some(settings) => Some(BucketCopies::open_to_read(settings)?),
        None => None,
    };
    #[cfg(feature = "cluster")]
    let files = match &bucket {
        Some(bucket) => DeployedFiles::Bucket(bucket),
        None => DeployedFiles::Folder(&folder),
    };
    #[cfg(not(feature = "cluster"))]
    let files = DeployedFiles::Folder(&folder);
    let database = config.database_path();
    if matches!(source, Source::Older) {
        let copy = async |folder: Arc<TempDir>| {
            let held = Arc::clone(&folder);
            let copy = move || SqliteStore::copy_as_it_is(&database, held.path());
            let copied = tokio::task::spawn_blocking(copy).await;
            let failed = |error| StoreError::Database(Box::new(error));
            checked(folder, copied.map_err(failed)??).await
        };
        return whole(backup::write(copy, files, target).await);
    }
    // Connections of its own, so that the copy keeps nobody waiting who reads.
    let store = SqliteStore::open(&database, SchemaPolicy::Refuse).await?;
    let copy = async |folder: Arc<TempDir>| {
        let copied = store.copy_into(Arc::clone(&folder)).await?;
        checked(folder, copied).await
    };
    let written = whole(backup::write(copy, files, target).await);
    let closed = store.close().await.map_err(BackupError::Store);
    let backup = written?;
    closed?;
    Ok(backup)
}

/// Checks a copy of the store, as a restore would: otherwise backups that nobody can use would take the places
/// of those that are whole.
async fn checked(folder: Arc<TempDir>, copied: StoreCopy) -> Result<StoreCopy, BackupError> {
    let check = move || SqliteStore::check_copy(&folder.path().join(DATABASE));
    let checked = tokio::task::spawn_blocking(check).await;
    let checked = checked.map_err(|error| StoreError::Database(Box::new(error)))?;
    checked.map_err(BackupError::Damaged)?;
    Ok(copied)
}

/// Tells a damaged store from other failures.
fn whole(written: Result<Backup, BackupError>) -> Result<Backup, BackupsError> {
    written.map_err(|error| match error {
        BackupError::Damaged(fault) => BackupsError::Damaged(fault),
        error => BackupsError::Write(error),
    })
}

/// Creates the folder of an unfinished backup, takes its lock, and removes what a killed process
/// left there.
fn begin(work: &Path) -> Result<File, BackupsError> {
    let place = work.parent().unwrap_or(work);
    if !place.exists() {
        let place = place.display().to_string();
        tracing::warn!(
            place,
            "the place of the backups was not there and is made; if it should be another disk, look whether \
             that is mounted"
        );
    }
    make_private_directory(work).map_err(unusable(work))?;
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).write(true).mode(0o600);
    let lock = options.open(work.join(LOCK)).map_err(unusable(work))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(BackupsError::Busy(work.display().to_string()));
        }
        Err(TryLockError::Error(error)) => return Err(unusable(work)(error)),
    }
    let remove = || -> std::io::Result<()> {
        for entry in std::fs::read_dir(work)? {
            let entry = entry?;
            if entry.file_name() == LOCK {
                continue;
            }
            if entry.file_type()?.is_dir() {
                std::fs::remove_dir_all(entry.path())?;
            } else {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    };
    remove().map_err(unusable(work))?;
    Ok(lock)
}

/// Returns the names of the entries of a folder; none if it does not exist.
fn names_in(folder: &Path) -> Result<Vec<String>, BackupsError> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unusable(folder))?,
    };
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names
        .collect::<std::io::Result<_>>()
        .map_err(unusable(folder))
}

/// Removes a file. Another process may have done so.
fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Returns the length of a file, or of all files in a folder; 0 if it does not exist. It is for an
/// estimate, so what cannot be read does not count.
fn size_of(path: &Path) -> u64 {
    let Ok(found) = path.symlink_metadata() else {
        return 0;
    };
    if !found.is_dir() {
        return found.len();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size_of(&entry.path())).sum()
}

/// Returns the length of all deployed files in a folder, which may have other entries.
fn size_of_deployed(files: &Path) -> u64 {
    let folders = std::fs::read_dir(files).into_iter().flatten().flatten();
    let folders = folders.filter(|folder| folder.file_name().len() == 2);
    folders.map(|folder| size_of(&folder.path())).sum()
}

/// Returns the name of the backup of this moment.
fn name_at(now: Millis) -> String {
    let time = rfc3339_seconds(now).unwrap_or_default();
    // A colon is not allowed in names everywhere.
    format!("{PREFIX}{}{SUFFIX}", time.replace(':', ""))
}

/// Returns the time that a backup's name says; `None` if it is not the name of one.
#[must_use]
pub fn time_of(name: &str) -> Option<Millis> {
    let time = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let (day, time) = time.split_once('T')?;
    let time = time.strip_suffix('Z').filter(|time| time.len() == 6)?;
    let part = |range| time.get(range);
    let (hours, minutes, seconds) = (part(0..2)?, part(2..4)?, part(4..6)?);
    parse_rfc3339(&format!("{day}T{hours}:{minutes}:{seconds}Z"))
}

/// Returns those of `names` that have a time up to `now`.
fn up_to(names: &[String], now: Millis) -> impl Iterator<Item = &String> {
    let past = move |name: &&String| time_of(name).is_some_and(|time| time <= now);
    names.iter().filter(past)
}

/// Returns when the newest of these backups was begun. One with a time in the future, which a clock
/// that was wrong wrote, does not count. The names are sorted, as [`Backups::list`] returns them.
pub(super) fn newest(names: &[String], now: Millis) -> Option<Millis> {
    up_to(names, now).last().and_then(|name| time_of(name))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupsError> + Send + 'static,
) -> Result<T, BackupsError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        let source = std::io::Error::other(error);
        Err(BackupError::Read {
            path: "the backup".to_owned(),
            source,
        }
        .into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01, in milliseconds.
    const NOW: Millis = 1_767_225_600_000;
    const HOUR: Millis = 3_600_000;

    fn backups(period: Millis) -> Backups {
        Backups {
            place: Place::Folder("/nowhere".into()),
            work: "/nowhere".into(),
            period,
            kept: 1,
        }
    }

    #[test]
    fn a_name_says_when_the_backup_was_made() {
        let name = name_at(NOW + 3_723_456);
        assert_eq!(name, "platform-2026-01-01T010203Z.tar");
        assert_eq!(time_of(&name), Some(NOW + 3_723_000));
        for foreign in [
            "platform.db",
            "platform-before-the-upgrade.tar",
            "platform-2026-01-01T01:02:03Z.tar",
            "platform-2026-01-01T010203Z.tar.part",
            "platform-2026-13-01T010203Z.tar",
            "platform-2026-01-01Tä0203Z.tar",
        ] {
            assert_eq!(time_of(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_backup_is_due_one_period_after_the_last_one_whatever_a_wrong_clock_wrote() {
        let backups = backups(24 * HOUR);
        let names = |times: &[Millis]| times.iter().map(|time| name_at(*time)).collect::<Vec<_>>();
        assert!(backups.is_due(&[], NOW));
        assert!(!backups.is_due(&names(&[NOW]), NOW));
        assert!(!backups.is_due(&names(&[NOW]), NOW + 24 * HOUR - 1));
        assert!(backups.is_due(&names(&[NOW]), NOW + 24 * HOUR));
        // The clock was a year ahead for a moment.
        let year = 365 * 24 * HOUR;
        assert!(backups.is_due(&names(&[NOW, NOW + year]), NOW + 24 * HOUR));
    }
}
