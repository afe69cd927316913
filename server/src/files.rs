//! Deployed files, addressed by their content.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use sha2::{Digest, Sha256};

use crate::domain::project::FileEntry;
use crate::store::make_private_directory;

/// Why a file could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The address is not that of a file store.
    #[error("a file store's address is file://<directory>, not {0}")]
    Address(String),
    /// The address is good, but nothing in this build speaks to such a store.
    #[error("{0} file stores are not supported by this build yet; use file://<directory>")]
    Unsupported(&'static str),
    /// A name that is not a SHA-256 in lower-case hex.
    #[error("a file is named by its SHA-256 in lower-case hex")]
    Name,
    /// There is no such file.
    #[error("there is no file {0}")]
    Missing(String),
    /// The directory could not be made.
    #[error("{path} could not be made")]
    Directory {
        /// Which one.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file store failed.
    #[error("the file store failed")]
    Backend(#[source] object_store::Error),
}

/// The files of all deployments. A file is written once, whole, and never
/// changed; equal files are kept once.
#[derive(Clone, Debug)]
pub struct FileStore {
    files: Arc<dyn ObjectStore>,
}

impl FileStore {
    /// Opens the file store at `url`: `file://<directory>`, made if it is not
    /// there.
    ///
    /// # Errors
    /// [`FileError`]; its sentence is meant for the operator.
    pub async fn connect(url: &str) -> Result<Self, FileError> {
        match url.split_once("://") {
            Some(("file", path)) if !path.is_empty() => {
                let path = path.to_owned();
                tokio::task::spawn_blocking(move || Self::local(Path::new(&path)))
                    .await
                    .unwrap_or(Err(FileError::Unsupported("such")))
            }
            Some(("s3", _)) => Err(FileError::Unsupported("S3")),
            Some((scheme, _)) => Err(FileError::Address(format!("{scheme}://…"))),
            None => Err(FileError::Address("an address without a scheme".into())),
        }
    }

    /// Opens the file store in a directory, which is made for its owner alone
    /// if it is not there.
    ///
    /// # Errors
    /// [`FileError::Directory`], [`FileError::Backend`].
    pub fn local(directory: &Path) -> Result<Self, FileError> {
        make_private_directory(directory).map_err(|source| FileError::Directory {
            path: directory.display().to_string(),
            source,
        })?;
        // A file is written beside its place, synced, and renamed into it.
        let files = LocalFileSystem::new_with_prefix(directory)
            .map_err(FileError::Backend)?
            .with_fsync(true);
        Ok(Self {
            files: Arc::new(files),
        })
    }

    /// Keeps `content`, and answers under which name. When it has answered,
    /// the file survives a power cut.
    ///
    /// # Errors
    /// [`FileError::Backend`].
    pub async fn put(&self, content: Bytes) -> Result<FileEntry, FileError> {
        let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
        let sha256 = digest(&content);
        let path = location(&sha256)?;
        match self.files.head(&path).await {
            // A file that is there is whole, because it was renamed into place.
            Ok(found) if found.size == size => return Ok(FileEntry { sha256, size }),
            Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(FileError::Backend(error)),
        }
        self.files
            .put(&path, PutPayload::from(content))
            .await
            .map_err(FileError::Backend)?;
        Ok(FileEntry { sha256, size })
    }

    /// The whole content of a file.
    ///
    /// # Errors
    /// [`FileError::Missing`], [`FileError::Name`], [`FileError::Backend`].
    pub async fn read(&self, sha256: &str) -> Result<Bytes, FileError> {
        let found = self.files.get(&location(sha256)?).await;
        let found = found.map_err(|error| named(error, sha256))?;
        found.bytes().await.map_err(|error| named(error, sha256))
    }

    /// Some bytes of a file, from `range.start` to before `range.end`.
    ///
    /// # Errors
    /// As [`FileStore::read`].
    pub async fn read_range(&self, sha256: &str, range: Range<u64>) -> Result<Bytes, FileError> {
        let found = self.files.get_range(&location(sha256)?, range).await;
        found.map_err(|error| named(error, sha256))
    }
}

/// The SHA-256 of `content`, in lower-case hex.
fn digest(content: &[u8]) -> String {
    Sha256::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Where a file lies: in one of 256 directories, so that none grows huge.
fn location(sha256: &str) -> Result<object_store::path::Path, FileError> {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if sha256.len() != 64 || !sha256.bytes().all(hex) {
        return Err(FileError::Name);
    }
    let (directory, name) = sha256.split_at(2);
    Ok(object_store::path::Path::from_iter([directory, name]))
}

fn named(error: object_store::Error, sha256: &str) -> FileError {
    match error {
        object_store::Error::NotFound { .. } => FileError::Missing(sha256.to_owned()),
        error => FileError::Backend(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[tokio::test]
    async fn a_file_is_read_back_under_the_name_of_its_content() {
        let directory = tempfile::tempdir().unwrap();
        let files = FileStore::local(directory.path()).unwrap();
        let entry = files.put(Bytes::from_static(b"abc")).await.unwrap();
        assert_eq!(
            entry,
            FileEntry {
                sha256: ABC.into(),
                size: 3
            }
        );
        assert_eq!(files.put(Bytes::from_static(b"abc")).await.unwrap(), entry);
        assert_eq!(files.read(ABC).await.unwrap().as_ref(), b"abc");
        assert_eq!(files.read_range(ABC, 1..3).await.unwrap().as_ref(), b"bc");
        let reopened = FileStore::local(directory.path()).unwrap();
        assert_eq!(reopened.read(ABC).await.unwrap().as_ref(), b"abc");
    }

    #[tokio::test]
    async fn nothing_but_whole_files_lies_in_the_store() {
        let directory = tempfile::tempdir().unwrap();
        let files = FileStore::local(directory.path()).unwrap();
        files.put(Bytes::from_static(b"abc")).await.unwrap();
        let names: Vec<_> = std::fs::read_dir(directory.path().join("ba"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(names, [&ABC[2..]]);
    }

    #[tokio::test]
    async fn a_missing_file_and_a_bad_name_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let files = FileStore::local(directory.path()).unwrap();
        assert!(matches!(files.read(ABC).await, Err(FileError::Missing(name)) if name == ABC));
        for name in ["", "..", "../../etc/passwd", &ABC.to_uppercase(), &ABC[1..]] {
            assert!(
                matches!(files.read(name).await, Err(FileError::Name)),
                "{name}"
            );
        }
    }

    #[tokio::test]
    async fn the_store_is_chosen_by_its_address() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("file://{}/files", directory.path().display());
        assert!(FileStore::connect(&url).await.is_ok());
        assert!(directory.path().join("files").is_dir());
        assert!(matches!(
            FileStore::connect("s3://bucket").await,
            Err(FileError::Unsupported("S3"))
        ));
        assert!(matches!(
            FileStore::connect("ftp://x").await,
            Err(FileError::Address(_))
        ));
        assert!(matches!(
            FileStore::connect("files").await,
            Err(FileError::Address(_))
        ));
    }
}
