//! Deployed files on their way between a folder and a bucket, without the cache of a server.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path as FilePath, PathBuf};

use bytes::Bytes;
use object_store::path::Path;
use sha2::{Digest as _, Sha256};

use super::bucket::Bucket;
use super::shared::{MARKED, MARKER, PIECE};
use super::{FileError, location, name_at};
use crate::config::S3Settings;
use crate::domain::project::FileEntry;
use crate::domain::stored_file::folder_and_name;

/// What is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not exist.
    Missing,
    /// Its length or its SHA-256 is another one.
    Damaged,
}

/// A bucket that files are copied into, or from.
#[derive(Debug)]
pub struct BucketCopies {
    bucket: Bucket,
}

impl BucketCopies {
    /// Opens a bucket to write into.
    ///
    /// # Errors
    /// [`FileError::Bucket`] if the bucket cannot be used; [`FileError::Unavailable`] if it does
    /// not answer.
    pub async fn open(settings: &S3Settings) -> Result<Self, FileError> {
        let bucket = Bucket::new(settings)?;
        bucket.prove(&Path::from(MARKER), MARKED).await?;
        Ok(Self { bucket })
    }

    /// Opens a bucket to read from.
    ///
    /// # Errors
    /// [`FileError::Bucket`]
    pub fn open_to_read(settings: &S3Settings) -> Result<Self, FileError> {
        let bucket = Bucket::new(settings)?;
        Ok(Self { bucket })
    }

    /// Asks whether the bucket answers and may be read.
    ///
    /// # Errors
    /// [`FileError::Unavailable`], [`FileError::Bucket`]
    pub async fn answers(&self) -> Result<(), FileError> {
        let marker = Path::from(MARKER);
        self.bucket.length(&marker).await.map(drop)
    }

    /// Returns the names of the deployed files in the bucket.
    ///
    /// # Errors
    /// [`FileError::Unavailable`]
    pub async fn list(&self) -> Result<BTreeSet<String>, FileError> {
        let paths = self.bucket.list().await?;
        Ok(paths.iter().filter_map(name_at).collect())
    }

    /// Stores a file of `folder`, if it is right.
    ///
    /// # Errors
    /// [`FileError::Unavailable`], [`FileError::Read`]
    pub async fn store(
        &self,
        folder: &FilePath,
        entry: &FileEntry,
    ) -> Result<Option<Fault>, FileError> {
        let from = path_in(folder, &entry.sha256)?;
        let (checked, expected) = (from.clone(), entry.clone());
        let check = tokio::task::spawn_blocking(move || check_file(&checked, &expected));
        let checked = check.await;
        let checked = checked.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        let checked = checked.map_err(|source| FileError::Read {
            path: from.display().to_string(),
            source: std::sync::Arc::new(source),
        });
        if let Some(fault) = checked? {
            return Ok(Some(fault));
        }
        let path = location(&entry.sha256)?;
        self.bucket.put_file(&path, &from, entry.size).await?;
        Ok(None)
    }

    /// Reads a file of the bucket. Returns what is wrong with it.
    ///
    /// # Errors
    /// [`FileError::Unavailable`]
    pub async fn check(&self, entry: &FileEntry) -> Result<Option<Fault>, FileError> {
        self.read(entry, |_| Ok(())).await
    }

    /// Copies a file of the bucket into an empty file, which is then read from its beginning.
    /// Returns what is wrong with it.
    ///
    /// # Errors
    /// [`FileError::Unavailable`], [`FileError::Cache`] if it cannot be written.
    pub async fn read_into(
        &self,
        entry: &FileEntry,
        mut file: &File,
    ) -> Result<Option<Fault>, FileError> {
        let read = self.read(entry, |piece| file.write_all(piece)).await?;
        file.rewind().map_err(FileError::of_disk)?;
        Ok(read)
    }

    async fn read(
        &self,
        entry: &FileEntry,
        mut keep: impl FnMut(&Bytes) -> std::io::Result<()>,
    ) -> Result<Option<Fault>, FileError> {
        let path = location(&entry.sha256)?;
        let (mut hash, mut start) = (Sha256::new(), 0);
        loop {
            let Some((piece, size)) = self.bucket.get(&path, start..start + PIECE).await? else {
                return Ok(Some(Fault::Missing));
            };
            let length = piece.len() as u64;
            if size != entry.size || length != PIECE.min(size - start) {
                return Ok(Some(Fault::Damaged));
            }
            keep(&piece).map_err(FileError::of_disk)?;
            hash.update(&piece);
            start += length;
            if start == size {
                let is_right = hex(hash) == entry.sha256;
                return Ok((!is_right).then_some(Fault::Damaged));
            }
        }
    }
}

fn hex(hash: Sha256) -> String {
    base16ct::lower::encode_string(&hash.finalize())
}

/// Returns the path of a deployed file in `folder`.
///
/// # Errors
/// [`FileError::Name`]
pub fn path_in(folder: &FilePath, sha256: &str) -> Result<PathBuf, FileError> {
    location(sha256)?;
    let (directory, name) = folder_and_name(sha256);
    Ok(folder.join(directory).join(name))
}

/// Compares a file with its name. This function blocks.
fn check_file(path: &FilePath, entry: &FileEntry) -> std::io::Result<Option<Fault>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Some(Fault::Missing));
        }
        opened => opened?,
    };
    let (mut hash, mut length) = (Sha256::new(), 0);
    let mut piece = vec![0; 256 * 1024];
    loop {
        let read = file.read(&mut piece)?;
        let Some(read) = piece.get(..read).filter(|read| !read.is_empty()) else {
            break;
        };
        hash.update(read);
        length += read.len() as u64;
    }
    let is_right = length == entry.size && hex(hash) == entry.sha256;
    Ok((!is_right).then_some(Fault::Damaged))
}
