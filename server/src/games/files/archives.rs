//! Backups in a bucket: each is one object below a prefix.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path as FilePath;

use object_store::path::Path;

use super::FileError;
use super::bucket::Bucket;
use super::shared::PIECE;
use crate::config::S3Settings;

/// A bucket that keeps backups.
#[derive(Debug)]
pub struct BucketArchives(Bucket);

impl BucketArchives {
    /// Creates the client of the bucket; nothing is sent.
    ///
    /// # Errors
    /// [`FileError::Unavailable`]
    pub fn new(settings: &S3Settings) -> Result<Self, FileError> {
        Bucket::new(settings)
            .map(Self)
            .map_err(|error| match error {
                // Its sentence names the setting of deployed files.
                FileError::Bucket(why) => FileError::Unavailable(why),
                other => other,
            })
    }

    /// Returns the names of the objects right below the prefix.
    ///
    /// # Errors
    /// [`FileError::Unavailable`]
    pub async fn list(&self) -> Result<Vec<String>, FileError> {
        let paths = self.0.list().await?;
        let names = paths.iter().filter_map(|path| {
            let mut parts = path.parts();
            let name = parts.next()?.as_ref().to_owned();
            parts.next().is_none().then_some(name)
        });
        Ok(names.collect())
    }

    /// Stores the file at `from` under `name`. Until all of it is there, there is no such object.
    ///
    /// # Errors
    /// [`FileError::Unavailable`], [`FileError::Read`]
    pub async fn store(&self, name: &str, from: &FilePath, bytes: u64) -> Result<(), FileError> {
        self.0.put_file(&Path::from(name), from, bytes).await
    }

    /// Copies an object into an empty file, which is then read from its beginning.
    ///
    /// # Errors
    /// [`FileError::Missing`], [`FileError::Unavailable`], [`FileError::Cache`] if the file cannot
    /// be written.
    pub async fn read_into(&self, name: &str, mut file: &File) -> Result<(), FileError> {
        let (path, mut start) = (Path::from(name), 0);
        loop {
            let Some((piece, size)) = self.0.get(&path, start..start + PIECE).await? else {
                return Err(FileError::Missing(name.to_owned()));
            };
            if piece.is_empty() && start < size {
                let why = format!("{name} ended early");
                return Err(FileError::Unavailable(why));
            }
            file.write_all(&piece).map_err(FileError::of_disk)?;
            start += piece.len() as u64;
            if start >= size {
                return file.rewind().map_err(FileError::of_disk);
            }
        }
    }

    /// Removes an object, if it exists.
    ///
    /// # Errors
    /// [`FileError::Unavailable`]
    pub async fn remove(&self, name: &str) -> Result<(), FileError> {
        self.0.remove(&Path::from(name)).await
    }
}
