//! A backup, which can be made while servers run: one file with the store and all deployed files.
//!
//! It is a tar archive with the entries of a data folder, so it is restored by unpacking it into an
//! empty folder, whatever the platform keeps its store in. Deployed files never change and are named
//! by their content. The existing files of a folder are added first, and the store's copy after them.
//! So every file to which the copy refers is in the backup already or was deployed meanwhile, and is
//! then added. Files of a bucket are added after the copy.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{BufWriter, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform_archive::backup::FILES;
use tempfile::{Builder, NamedTempFile, TempDir};

#[cfg(feature = "cluster")]
use crate::app::moving::MoveError;
use crate::domain::administration::StoreCopy;
use crate::domain::stored_file::{folder_and_name, is_sha256};
#[cfg(feature = "cluster")]
use crate::games::files::FileError;
#[cfg(feature = "cluster")]
use crate::games::files::copies::BucketCopies;
use crate::store::{ConnectError, CopyFault, StoreError};

/// The prefix of temporary files next to the backup. They are removed, except after a power cut or
/// SIGKILL.
const UNFINISHED: &str = ".platform-backup-";

/// How many files of a bucket are read ahead.
#[cfg(feature = "cluster")]
const AHEAD: usize = 4;

/// Where the deployed files of a backup are.
#[derive(Clone, Copy, Debug)]
pub enum DeployedFiles<'a> {
    /// They are left out.
    LeftOut,
    /// In a folder.
    Folder(&'a Path),
    /// In a bucket.
    #[cfg(feature = "cluster")]
    Bucket(&'a BucketCopies),
}

impl DeployedFiles<'_> {
    fn folder(&self) -> Option<PathBuf> {
        match self {
            Self::Folder(folder) => Some(folder.to_path_buf()),
            _ => None,
        }
    }
}

/// The result of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The number of deployed files in it.
    pub files: usize,
    /// The number of deployed files to which the store refers, but which were missing or damaged.
    pub missing: usize,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Why the backup failed; a line for the operator.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file with this name exists, and might be an older backup.
    #[error("{0} already exists; choose another name for the backup")]
    Exists(String),
    /// There is no such folder.
    #[error("{0} does not exist; make this folder, or choose another for the backup")]
    NoFolder(String),
    /// It could not be written.
    #[error("{path} could not be written")]
    Write {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// Deployed files could not be read.
    #[error("{path} could not be read")]
    Read {
        /// The file or folder.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The store failed.
    #[error("the store could not be copied")]
    Store(#[from] StoreError),
    /// The copy of the store is damaged.
    #[error("the store is damaged")]
    Damaged(#[source] CopyFault),
    /// The new store could not be created.
    #[error("the copy of the store could not be created")]
    Create(#[source] ConnectError),
    /// The rows of the store could not be copied.
    #[cfg(feature = "cluster")]
    #[error("the store could not be copied")]
    Rows(#[from] MoveError),
    /// The bucket failed.
    #[cfg(feature = "cluster")]
    #[error("the deployed files could not be copied")]
    Files(#[from] FileError),
}

/// Writes a backup to `target`, which must not exist. `copy` writes the store's copy into a folder,
/// which is kept until the copy is finished, even if nobody waits for it any more.
///
/// # Errors
/// [`BackupError`]; `target` then does not exist.
pub async fn write<F>(
    copy: impl FnOnce(Arc<TempDir>) -> F,
    files: DeployedFiles<'_>,
    target: &Path,
) -> Result<Backup, BackupError>
where
    F: Future<Output = Result<StoreCopy, BackupError>>,
{
    if target.exists() {
        return Err(BackupError::Exists(target.display().to_string()));
    }
    let folder = folder_of(target);
    if !folder.exists() {
        return Err(BackupError::NoFolder(folder.display().to_string()));
    }
    let (archive, folder) = {
        let (files, target) = (files.folder(), target.to_owned());
        blocking(move || begin(&target, files.as_deref())).await?
    };
    let folder = Arc::new(folder);
    let copy = copy(Arc::clone(&folder)).await?;
    #[cfg(feature = "cluster")]
    let archive = match files {
        DeployedFiles::Bucket(bucket) => archive.fetch(bucket, &copy, target).await?,
        _ => archive,
    };
    let (files, goal) = (files.folder(), target.to_owned());
    let (backup, file) =
        blocking(move || archive.finish(&folder, &copy, files.as_deref(), &goal)).await?;
    // The file only gets its name here, so that a command that is stopped leaves nothing behind.
    give_name(file, target)?;
    Ok(backup)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(StoreError::Database(Box::new(error)).into()))
}

/// A backup that is being written, under a temporary name.
struct Archive {
    tar: tar::Builder<BufWriter<NamedTempFile>>,
    /// The deployed files that it contains.
    kept: BTreeSet<String>,
    /// How many it should contain, but does not.
    missing: usize,
}

/// Begins the backup with the existing files, and creates a folder for the store's copy next to it.
fn begin(target: &Path, files: Option<&Path>) -> Result<(Archive, TempDir), BackupError> {
    let beside = folder_of(target);
    // Only their owner may read them: both contain signing keys.
    let file = Builder::new()
        .prefix(UNFINISHED)
        .tempfile_in(beside)
        .map_err(unwritten(target))?;
    let folder = Builder::new()
        .prefix(UNFINISHED)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(beside)
        .map_err(unwritten(target))?;
    let mut archive = Archive {
        tar: tar::Builder::new(BufWriter::new(file)),
        kept: BTreeSet::new(),
        missing: 0,
    };
    if let Some(files) = files {
        for name in list(files)? {
            archive.add_file(files, &name, target)?;
        }
    }
    Ok((archive, folder))
}

/// Returns the names of the existing deployed files. A file that is being written has another name
/// until it is complete.
fn list(files: &Path) -> Result<Vec<String>, BackupError> {
    let mut names = Vec::new();
    for folder in entries(files)? {
        let Some(start) = folder.to_str().filter(|name| name.len() == 2) else {
            continue;
        };
        for name in entries(&files.join(start))? {
            let name = format!("{start}{}", name.to_string_lossy());
            if is_sha256(&name) {
                names.push(name);
            }
        }
    }
    Ok(names)
}

/// Returns the entries of a folder; none if it does not exist.
fn entries(folder: &Path) -> Result<Vec<OsString>, BackupError> {
    let names = || -> std::io::Result<Vec<OsString>> {
        std::fs::read_dir(folder)?
            .map(|entry| Ok(entry?.file_name()))
            .collect()
    };
    match names() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        names => names.map_err(|source| BackupError::Read {
            path: folder.display().to_string(),
            source,
        }),
    }
}

impl Archive {
    /// Adds a deployed file. Returns whether it existed.
    fn add_file(&mut self, files: &Path, name: &str, target: &Path) -> Result<bool, BackupError> {
        let (directory, rest) = folder_and_name(name);
        let path = files.join(directory).join(rest);
        match File::open(&path) {
            // The server removed it because nothing refers to it any more.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(source) => Err(BackupError::Read {
                path: path.display().to_string(),
                source,
            }),
            Ok(file) => {
                let inside = Path::new(FILES).join(directory).join(rest);
                self.add(&inside, file).map_err(unwritten(target))?;
                self.kept.insert(name.to_owned());
                Ok(true)
            }
        }
    }

    /// Adds the files to which the store's copy refers, from a bucket.
    #[cfg(feature = "cluster")]
    async fn fetch(
        mut self,
        bucket: &BucketCopies,
        copy: &StoreCopy,
        target: &Path,
    ) -> Result<Self, BackupError> {
        use futures_util::{StreamExt as _, stream};

        // Owned, so that this can be a part of a job, which may move between threads.
        let mut fetched = stream::iter(copy.files.clone())
            .map(|entry| async move {
                // It has no name, so nothing is left of it.
                let file = tempfile::tempfile_in(folder_of(target)).map_err(unwritten(target))?;
                let fault = bucket.read_into(&entry, &file).await?;
                Ok::<_, BackupError>((entry, fault.is_none().then_some(file)))
            })
            .buffered(AHEAD);
        while let Some(next) = fetched.next().await {
            let (entry, file) = next?;
            let Some(file) = file else {
                self.missing += 1;
                continue;
            };
            let (directory, rest) = folder_and_name(&entry.sha256);
            let inside = Path::new(FILES).join(directory).join(rest);
            let goal = target.to_owned();
            self = blocking(move || {
                self.add(&inside, file).map_err(unwritten(&goal))?;
                Ok(self)
            })
            .await?;
            self.kept.insert(entry.sha256);
        }
        Ok(self)
    }

    fn add(&mut self, inside: &Path, mut file: File) -> std::io::Result<()> {
        let found = file.metadata()?;
        let mut header = tar::Header::new_gnu();
        header.set_metadata_in_mode(&found, tar::HeaderMode::Deterministic);
        // Some programs do not apply the folder's permissions when they unpack.
        header.set_mode(0o600);
        self.tar.append_data(&mut header, inside, &mut file)
    }

    /// Adds the store's copy and the files to which it refers, and returns the backup, which is
    /// then on the disk.
    fn finish(
        mut self,
        folder: &TempDir,
        copy: &StoreCopy,
        files: Option<&Path>,
        target: &Path,
    ) -> Result<(Backup, NamedTempFile), BackupError> {
        if let Some(files) = files {
            for entry in &copy.files {
                let name = &entry.sha256;
                if !self.kept.contains(name) && !self.add_file(files, name, target)? {
                    self.missing += 1;
                }
            }
        }
        let (files, missing) = (self.kept.len(), self.missing);
        let file = self.close(folder.path()).map_err(unwritten(target))?;
        let bytes = file.as_file().metadata().map_err(unwritten(target))?.len();
        let backup = Backup {
            files,
            missing,
            bytes,
        };
        Ok((backup, file))
    }

    /// Adds the databases in `folder`, and syncs to the disk.
    fn close(mut self, folder: &Path) -> std::io::Result<NamedTempFile> {
        let mut databases = std::fs::read_dir(folder)?
            .map(|entry| Ok(entry?.file_name()))
            .collect::<std::io::Result<Vec<_>>>()?;
        databases.sort();
        for name in databases {
            self.add(Path::new(&name), File::open(folder.join(&name))?)?;
        }
        let file = self
            .tar
            .into_inner()?
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        Ok(file)
    }
}

/// Gives the backup its name, unless a file with this name exists.
fn give_name(file: NamedTempFile, target: &Path) -> Result<(), BackupError> {
    file.persist_noclobber(target)
        .map_err(|error| match error.error.kind() {
            ErrorKind::AlreadyExists => BackupError::Exists(target.display().to_string()),
            _ => unwritten(target)(error.error),
        })?;
    File::open(folder_of(target))
        .and_then(|folder| folder.sync_all())
        .map_err(unwritten(target))
}

fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn unwritten(target: &Path) -> impl FnOnce(std::io::Error) -> BackupError {
    let path = target.display().to_string();
    move |source| BackupError::Write { path, source }
}
