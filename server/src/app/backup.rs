//! A backup beside a running server: one file that has the store and all
//! deployed files.
//!
//! It is a tar whose entries are what a data folder has, so restoring it is
//! unpacking it into an empty one. Deployed files never change and are named by
//! their content. Those that are there go first and the store's copy after
//! them, so that what the copy refers to is either in the backup already or was
//! deployed meanwhile, and then is added.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{BufWriter, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use tempfile::{Builder, NamedTempFile, TempDir};

use crate::domain::administration::StoreCopy;
use crate::games::files::{location, place};
use crate::store::{Store, StoreError};

/// Folder of the deployed files in the backup, as in the data folder.
const FILES: &str = "files";
/// How the names of what is not whole begin, beside the backup. They are
/// removed but by a power cut or SIGKILL.
const UNFINISHED: &str = ".platform-backup-";

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Deployed files in it.
    pub files: usize,
    /// Deployed files that the store refers to and that were nowhere.
    pub missing: usize,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Why there is no backup; a line for the operator.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file has its name already, and might be an older backup.
    #[error("{0} is there already; give the backup a name of its own")]
    Exists(String),
    /// It could not be written.
    #[error("{path} could not be written")]
    Write {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Deployed files could not be read.
    #[error("{path} could not be read")]
    Read {
        /// Which file or folder.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The store failed.
    #[error("the store could not be copied")]
    Store(#[from] StoreError),
}

/// Writes a backup to `target`, which may not be there yet: the store, and the
/// deployed files in the folder `files`.
///
/// # Errors
/// [`BackupError`]; then nothing is at `target`.
pub async fn write(store: &dyn Store, files: &Path, target: &Path) -> Result<Backup, BackupError> {
    if target.exists() {
        return Err(BackupError::Exists(target.display().to_string()));
    }
    let (archive, folder) = {
        let (files, target) = (files.to_owned(), target.to_owned());
        blocking(move || begin(&target, &files)).await?
    };
    let folder = Arc::new(folder);
    let copy = store.copy_into(Arc::clone(&folder)).await?;
    let (files, goal) = (files.to_owned(), target.to_owned());
    let (backup, file) = blocking(move || archive.finish(&folder, &copy, &files, &goal)).await?;
    // Only here, so that a command that is stopped leaves nothing behind.
    give_name(file, target)?;
    Ok(backup)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(StoreError::Database(Box::new(error)).into()))
}

/// A backup that is being written, under a name that nobody looks for.
struct Archive {
    tar: tar::Builder<BufWriter<NamedTempFile>>,
    /// The deployed files that are in it.
    kept: BTreeSet<String>,
}

/// Begins the backup with the files that are there, and makes a folder for the
/// store's copy beside it.
fn begin(target: &Path, files: &Path) -> Result<(Archive, TempDir), BackupError> {
    let beside = folder_of(target);
    // Only their owner may read either of them: in both are signing keys.
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
    };
    for name in list(files)? {
        archive.add_file(files, &name, target)?;
    }
    Ok((archive, folder))
}

/// The names of the deployed files that are there. What is on its way has
/// another name until it is whole.
fn list(files: &Path) -> Result<Vec<String>, BackupError> {
    let mut names = Vec::new();
    for folder in entries(files)? {
        let Some(start) = folder.to_str().filter(|name| name.len() == 2) else {
            continue;
        };
        for name in entries(&files.join(start))? {
            let name = format!("{start}{}", name.to_string_lossy());
            if location(&name).is_ok() {
                names.push(name);
            }
        }
    }
    Ok(names)
}

/// What is in a folder; nothing if there is none.
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
    /// Adds a deployed file. Answers whether it was there.
    fn add_file(&mut self, files: &Path, name: &str, target: &Path) -> Result<bool, BackupError> {
        let (directory, rest) = place(name);
        let path = files.join(directory).join(rest);
        match File::open(&path) {
            // Nothing referred to it any more, so the server removed it.
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

    fn add(&mut self, inside: &Path, mut file: File) -> std::io::Result<()> {
        let found = file.metadata()?;
        let mut header = tar::Header::new_gnu();
        header.set_metadata_in_mode(&found, tar::HeaderMode::Deterministic);
        // Not every program that unpacks keeps to the folder's rights.
        header.set_mode(0o600);
        self.tar.append_data(&mut header, inside, &mut file)
    }

    /// Adds the store's copy and what it refers to; the backup, all of which is
    /// on the disk.
    fn finish(
        mut self,
        folder: &TempDir,
        copy: &StoreCopy,
        files: &Path,
        target: &Path,
    ) -> Result<(Backup, NamedTempFile), BackupError> {
        let mut missing = 0;
        for name in &copy.files {
            if !self.kept.contains(name) && !self.add_file(files, name, target)? {
                missing += 1;
            }
        }
        let files = self.kept.len();
        let file = self.close(folder.path()).map_err(unwritten(target))?;
        let bytes = file.as_file().metadata().map_err(unwritten(target))?.len();
        let backup = Backup {
            files,
            missing,
            bytes,
        };
        Ok((backup, file))
    }

    /// Adds the databases in `folder`, and waits for the disk.
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

/// Gives the backup its name, unless something has it.
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
