//! Files in a folder of this machine, which usually only one server uses.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use super::pieces::Pieces;
use super::{FileError, OpenFile, SweepError, location, name_at};
use crate::clock::Millis;
use crate::domain::project::FileEntry;
use crate::store::{Store, make_private_directory};

/// The number of bytes of a file that are in memory while it is stored.
const PIECE: usize = 512 * 1024;

/// The files of a folder.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    files: Arc<dyn ObjectStore>,
    /// Locked for reading while files are stored to which nothing refers yet, and for writing while
    /// unreferenced files are removed.
    gate: Arc<RwLock<()>>,
    path: PathBuf,
}

impl Folder {
    /// Opens the folder, which is created for its owner only if it does not exist.
    pub(super) fn open(directory: &Path) -> Result<Self, FileError> {
        make_private_directory(directory).map_err(|source| unusable(directory, source))?;
        // A file is written next to its final path, synced, and renamed.
        let files = LocalFileSystem::new_with_prefix(directory)
            .map_err(FileError::backend)?
            .with_fsync(true);
        Ok(Self {
            files: Arc::new(files),
            gate: Arc::default(),
            path: directory.to_owned(),
        })
    }

    /// Prevents the removal of files as long as the returned guard exists.
    pub(super) async fn keep(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.gate).read_owned().await
    }

    /// Stores the content of the file at `from`.
    pub(super) async fn put_file(&self, from: &Path, entry: &FileEntry) -> Result<(), FileError> {
        let path = location(&entry.sha256)?;
        if self.has(&path, entry.size).await? {
            return Ok(());
        }
        let mut pieces = Pieces::open(from, PIECE)?;
        let first = pieces.next(from).await?;
        if entry.size <= first.len() as u64 {
            let put = self.files.put(&path, PutPayload::from(first)).await;
            return put.map(drop).map_err(FileError::backend);
        }
        let upload = self.files.put_multipart(&path).await;
        let mut upload = upload.map_err(FileError::backend)?;
        let mut piece = first;
        let sent = loop {
            if piece.is_empty() {
                let completed = upload.complete().await;
                break completed.map(drop).map_err(FileError::backend);
            }
            if let Err(error) = upload.put_part(PutPayload::from(piece)).await {
                break Err(FileError::backend(error));
            }
            piece = match pieces.next(from).await {
                Ok(piece) => piece,
                Err(error) => break Err(error),
            };
        };
        if sent.is_err() {
            // If this fails, the rest is removed at the next start.
            let _ = upload.abort().await;
        }
        sent
    }

    /// Stores `content`, whose name and size are in `entry`.
    pub(super) async fn put(&self, content: Bytes, entry: &FileEntry) -> Result<(), FileError> {
        let path = location(&entry.sha256)?;
        if self.has(&path, entry.size).await? {
            return Ok(());
        }
        let put = self.files.put(&path, PutPayload::from(content)).await;
        put.map(drop).map_err(FileError::backend)
    }

    /// Whether the file exists. An existing file is complete, because it was renamed into place.
    async fn has(&self, path: &object_store::path::Path, size: u64) -> Result<bool, FileError> {
        match self.files.head(path).await {
            Ok(found) => Ok(found.size == size),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(FileError::backend(error)),
        }
    }

    /// Returns the names of all files.
    pub(super) async fn list(&self) -> Result<Vec<String>, FileError> {
        let listed = self.files.list(None);
        let names = listed.try_filter_map(|meta| {
            let name = name_at(&meta.location);
            async move { Ok(name) }
        });
        names.try_collect().await.map_err(FileError::backend)
    }

    /// Removes all files to which `store` does not refer, and returns their number.
    pub(super) async fn sweep(&self, store: &dyn Store) -> Result<usize, SweepError> {
        let listed = self.list().await?;
        let _gate = self.gate.write().await;
        let unreferenced = store.list_unreferenced_files(listed).await?;
        for name in &unreferenced {
            match self.files.delete(&location(name)?).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(FileError::backend(error).into()),
            }
        }
        Ok(unreferenced.len())
    }

    /// Removes unfinished files of a killed process: all, or those that were last written before
    /// a time.
    pub(super) fn remove_unfinished(&self, before: Option<Millis>) -> Result<(), FileError> {
        remove_unfinished(&self.path, before).map_err(|source| unusable(&self.path, source))
    }

    /// Returns a file for reading.
    pub(super) fn open_file(&self, sha256: &str) -> Result<OpenFile, FileError> {
        Ok(OpenFile::in_store(
            Arc::clone(&self.files),
            location(sha256)?,
            sha256,
        ))
    }

    /// Returns the whole content of a file.
    pub(super) async fn read(&self, sha256: &str) -> Result<Bytes, FileError> {
        let found = self.files.get(&location(sha256)?).await;
        let found = found.map_err(|error| named(error, sha256))?;
        found.bytes().await.map_err(|error| named(error, sha256))
    }
}

fn unusable(directory: &Path, source: std::io::Error) -> FileError {
    FileError::Directory {
        path: directory.display().to_string(),
        source: Arc::new(source),
    }
}

/// A file is first written under its name, followed by `#` and a number.
fn remove_unfinished(directory: &Path, before: Option<Millis>) -> std::io::Result<()> {
    let mut folders = BTreeSet::from([directory.to_owned()]);
    while let Some(folder) = folders.pop_first() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.insert(entry.path());
            } else if entry.file_name().to_string_lossy().contains('#') {
                match remove_if_written(&entry, before) {
                    // Another node finished or removed it meanwhile.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    removed => removed?,
                }
            }
        }
    }
    Ok(())
}

/// Removes a file, unless it was written at the time `before` or later.
fn remove_if_written(entry: &std::fs::DirEntry, before: Option<Millis>) -> std::io::Result<()> {
    if let Some(before) = before {
        let written = entry.metadata()?.modified()?;
        let since = written.duration_since(std::time::UNIX_EPOCH);
        if since.is_ok_and(|since| since.as_millis() >= before.max(0).unsigned_abs().into()) {
            return Ok(());
        }
    }
    std::fs::remove_file(entry.path())
}

/// The error of a file that could not be read from the folder.
pub(super) fn named(error: object_store::Error, sha256: &str) -> FileError {
    match error {
        object_store::Error::NotFound { .. } => FileError::Missing(sha256.to_owned()),
        error => FileError::backend(error),
    }
}
