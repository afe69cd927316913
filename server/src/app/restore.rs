//! Going back to a backup. All of it is unpacked next to its goal and checked there; until nothing is
//! wrong with it, no existing file is touched. Then existing data is moved aside, if that is wanted,
//! and the new data is renamed into its place. As long as this lasts, a note in the data folder keeps
//! a server from starting on half of it.
//!
//! | module | contents |
//! |---|---|
//! | `places` | where data is, what is there already, and moving it |

mod places;

use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use platform_archive::backup::{BackupArchiveError, DATABASE, LOGS, unpack};
use tempfile::{Builder, TempDir};

use self::places::Places;
use crate::clock::Millis;
use crate::config::Config;
use crate::games::files::FileError;
#[cfg(feature = "cluster")]
use crate::games::files::copies::BucketCopies;
use crate::platform::disk::FreeSpace;
use crate::store::{CheckedCopy, CopyFault, SqliteStore};

/// The prefix of folders in which a backup is unpacked.
const UNPACKED: &str = ".platform-restore-";

/// What the operator allows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowed {
    /// Existing data is moved aside.
    pub force: bool,
    /// Only the store is restored; deployed files stay as they are.
    pub without_files: bool,
    /// Deployed files may be missing.
    pub incomplete: bool,
}

/// What is in a backup with which nothing is wrong.
#[derive(Debug)]
pub struct Checked {
    /// The store in it.
    pub copy: CheckedCopy,
    /// The deployed files in it, by their SHA-256.
    pub files: BTreeSet<String>,
}

impl Checked {
    /// Returns how many deployed files of the store are not in it.
    #[must_use]
    pub fn missing(&self) -> usize {
        let missing = self.copy.files.iter();
        missing
            .filter(|entry| !self.files.contains(&entry.sha256))
            .count()
    }
}

/// What was restored.
#[derive(Debug)]
pub struct Restored {
    /// What was in the backup.
    pub checked: Checked,
    /// How many deployed files of the store are missing.
    pub missing: usize,
    /// Where the data from before is now.
    pub aside: Vec<PathBuf>,
}

/// Why nothing was restored; a line for the operator.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The archive cannot be unpacked.
    #[error(transparent)]
    Archive(#[from] BackupArchiveError),
    /// The store in it cannot be used.
    #[error("the backup cannot be used")]
    Store(#[from] CopyFault),
    /// It was made without deployed files, or some were missing then.
    #[error(
        "the backup lacks {missing} of the {all} deployed files of its games; add --without-files \
         to restore the store alone and leave the deployed files as they are, or --incomplete to \
         restore what there is"
    )]
    Incomplete {
        /// How many are missing.
        missing: usize,
        /// How many there should be.
        all: usize,
    },
    /// The settings name a store in PostgreSQL.
    #[error(
        "the settings name PostgreSQL, and a backup is restored into an embedded store; leave \
         PLATFORM_DATABASE_URL out, restore into an empty PLATFORM_DATA, and then use \
         `platform-server move` (docs/several-nodes.md)"
    )]
    Shared,
    /// There is data already.
    #[error(
        "{0} exists already; set PLATFORM_DATA to an empty folder, or add --force, which keeps the \
         data that is there aside"
    )]
    NotEmpty(String),
    /// The disk is too small.
    #[error("the disk of {path} has no room for the {bytes} bytes of the backup; free some")]
    NoRoom {
        /// The folder.
        path: String,
        /// How many bytes are needed.
        bytes: u64,
    },
    /// A file could not be read.
    #[error("{path} could not be read")]
    Read {
        /// The file or folder.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A file could not be written or moved.
    #[error("{path} could not be written")]
    Write {
        /// The file or folder.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The bucket of deployed files failed.
    #[error("the deployed files could not be stored in the bucket")]
    Files(#[from] FileError),
}

fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> RestoreError {
    let path = path.display().to_string();
    move |source| RestoreError::Read { path, source }
}

fn unwritten(path: &Path) -> impl FnOnce(std::io::Error) -> RestoreError {
    let path = path.display().to_string();
    move |source| RestoreError::Write { path, source }
}

/// Checks a whole backup: every file's name, length and SHA-256, the databases' integrity, and the
/// version of their schema. Nothing of it is kept.
///
/// # Errors
/// [`RestoreError`]
pub async fn check(archive: File) -> Result<Checked, RestoreError> {
    blocking(move || {
        let folder = unpacked_in(&std::env::temp_dir())?;
        check_into(&archive, folder.path(), None)
    })
    .await
}

/// Restores a backup where the settings keep the platform's data. The caller holds the lock of the
/// data folder.
///
/// # Errors
/// [`RestoreError`]; then nothing that existed has changed, unless the disk failed at the end: in this
/// case no server starts until the backup was restored.
pub async fn run(
    archive: File,
    config: &Config,
    disk: &dyn FreeSpace,
    allowed: Allowed,
    now: Millis,
) -> Result<Restored, RestoreError> {
    if config.postgres.is_some() {
        return Err(RestoreError::Shared);
    }
    let places = Places::of(config, allowed.without_files);
    if !allowed.force
        && let Some(found) = places.occupied()?
    {
        return Err(RestoreError::NotEmpty(found.display().to_string()));
    }
    let staged = {
        let places = places.clone();
        places.make_room(&archive, disk)?;
        blocking(move || stage(&archive, &places)).await?
    };
    let missing = match (&config.s3, allowed.without_files) {
        (_, true) => 0,
        (None, false) => staged.checked.missing(),
        (Some(settings), false) => fill_bucket(settings, &staged).await?,
    };
    if missing > 0 && !allowed.incomplete {
        let all = staged.checked.copy.files.len();
        return Err(RestoreError::Incomplete { missing, all });
    }
    blocking(move || {
        let aside = places.replace(&staged, now)?;
        Ok(Restored {
            checked: staged.checked,
            missing,
            aside,
        })
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RestoreError> + Send + 'static,
) -> Result<T, RestoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        let source = std::io::Error::other(error);
        Err(RestoreError::Read {
            path: "the backup".to_owned(),
            source,
        })
    })
}

/// A backup that is unpacked and checked, on the disks on which it shall be.
#[derive(Debug)]
struct Staged {
    checked: Checked,
    databases: TempDir,
    /// The deployed files, if they are restored.
    files: Option<TempDir>,
}

fn stage(archive: &File, places: &Places) -> Result<Staged, RestoreError> {
    let databases = unpacked_in(places.database_folder())?;
    let files = places.files_folder().map(unpacked_in).transpose()?;
    let into = files.as_ref().map(TempDir::path);
    let checked = check_into(archive, databases.path(), into)?;
    Ok(Staged {
        checked,
        databases,
        files,
    })
}

/// Unpacks the databases into `databases`, the deployed files into `files`, and checks all of them.
fn check_into(
    archive: &File,
    databases: &Path,
    files: Option<&Path>,
) -> Result<Checked, RestoreError> {
    let files = unpack(archive, databases, files)?;
    for name in [DATABASE, LOGS] {
        if !databases.join(name).exists() {
            return Err(BackupArchiveError::Damaged(format!("it has no {name}")).into());
        }
    }
    let copy = SqliteStore::check_copy(&databases.join(DATABASE))?;
    Ok(Checked { copy, files })
}

/// Creates a folder, which is removed with everything in it when it is dropped. Only its owner may
/// read it: it gets signing keys.
fn unpacked_in(folder: &Path) -> Result<TempDir, RestoreError> {
    let mut builder = Builder::new();
    let builder = builder
        .prefix(UNPACKED)
        .permissions(Permissions::from_mode(0o700));
    builder.tempdir_in(folder).map_err(unwritten(folder))
}

/// Stores the backup's files in the bucket that do not exist there. Returns how many of the store's
/// files are in neither.
#[cfg(feature = "cluster")]
async fn fill_bucket(
    settings: &crate::config::S3Settings,
    staged: &Staged,
) -> Result<usize, RestoreError> {
    let bucket = BucketCopies::open(settings).await?;
    let existing = bucket.list().await?;
    let mut missing = 0;
    for entry in &staged.checked.copy.files {
        if existing.contains(&entry.sha256) {
            continue;
        }
        match &staged.files {
            Some(folder) if staged.checked.files.contains(&entry.sha256) => {
                let fault = bucket.store(folder.path(), entry).await?;
                missing += usize::from(fault.is_some());
            }
            _ => missing += 1,
        }
    }
    Ok(missing)
}

#[cfg(not(feature = "cluster"))]
async fn fill_bucket(
    _settings: &crate::config::S3Settings,
    _staged: &Staged,
) -> Result<usize, RestoreError> {
    std::future::ready(Err(FileError::Unsupported("S3").into())).await
}
