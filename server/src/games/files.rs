//! Deployed files, addressed by their content.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use sha2::{Digest, Sha256};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::domain::project::FileEntry;
use crate::store::{Store, StoreError, make_private_directory};

/// Why a file could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The address is not one of a file store.
    #[error("a file store's address is file://<directory>, not {0}")]
    Address(String),
    /// The address is valid, but this build does not support such a store.
    #[error("{0} file stores are not supported by this build yet; use file://<directory>")]
    Unsupported(&'static str),
    /// A name that is not a SHA-256 in lower-case hex.
    #[error("a file is named by its SHA-256 in lower-case hex")]
    Name,
    /// There is no such file.
    #[error("there is no file {0}")]
    Missing(String),
    /// The directory could not be created.
    #[error("{path} could not be made; set PLATFORM_FILES_URL or PLATFORM_DATA to another folder")]
    Directory {
        /// The directory.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A file to be stored could not be read.
    #[error("{path} could not be read")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The file store failed.
    #[error("the file store failed")]
    Backend(#[source] object_store::Error),
}

/// The files of all deployments. A file is written once, completely, and never changed; equal files
/// are stored once.
#[derive(Clone, Debug)]
pub struct FileStore {
    files: Arc<dyn ObjectStore>,
    /// Locked for reading while files are stored to which nothing refers yet, and for writing while
    /// unreferenced files are removed.
    gate: Arc<RwLock<()>>,
    /// The folder of the files, if they are in a folder.
    directory: Option<PathBuf>,
}

/// While it exists, no file is removed: its holder may store files first and refer to them later.
#[derive(Debug)]
#[must_use = "dropping it lets files be removed that nothing refers to yet"]
pub struct GcGuard {
    _gate: OwnedRwLockReadGuard<()>,
}

/// The number of bytes of a file that are in memory while it is stored.
const PIECE: usize = 512 * 1024;

impl FileStore {
    /// Opens the file store at `url`: `file://<directory>`, which is created if it does not exist.
    ///
    /// # Errors
    /// [`FileError`]; its sentence is for the operator.
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

    /// Opens the file store in a directory, which is created for its owner only if it does not
    /// exist.
    ///
    /// # Errors
    /// [`FileError::Directory`], [`FileError::Backend`].
    pub fn local(directory: &Path) -> Result<Self, FileError> {
        make_private_directory(directory).map_err(|source| FileError::Directory {
            path: directory.display().to_string(),
            source,
        })?;
        // A file is written next to its final path, synced, and renamed.
        let files = LocalFileSystem::new_with_prefix(directory)
            .map_err(FileError::Backend)?
            .with_fsync(true);
        Ok(Self {
            files: Arc::new(files),
            gate: Arc::default(),
            directory: Some(directory.to_owned()),
        })
    }

    /// Prevents the removal of files as long as the returned guard exists.
    pub async fn keep(&self) -> GcGuard {
        GcGuard {
            _gate: Arc::clone(&self.gate).read_owned().await,
        }
    }

    /// Stores the content of the file at `from`, whose SHA-256 and length are known. A large file
    /// is never in memory as a whole.
    ///
    /// # Errors
    /// [`FileError`]; the file is then not stored.
    pub async fn put_file(&self, from: &Path, entry: &FileEntry) -> Result<(), FileError> {
        let path = location(&entry.sha256)?;
        if self.has(&path, entry.size).await? {
            return Ok(());
        }
        let mut pieces = Pieces::open(from)?;
        let first = pieces.next(from).await?;
        if entry.size <= first.len() as u64 {
            return self
                .files
                .put(&path, PutPayload::from(first))
                .await
                .map(drop)
                .map_err(FileError::Backend);
        }
        let mut upload = self
            .files
            .put_multipart(&path)
            .await
            .map_err(FileError::Backend)?;
        let mut piece = first;
        let sent = loop {
            if piece.is_empty() {
                break upload
                    .complete()
                    .await
                    .map(drop)
                    .map_err(FileError::Backend);
            }
            if let Err(error) = upload.put_part(PutPayload::from(piece)).await {
                break Err(FileError::Backend(error));
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

    /// Whether the file exists. An existing file is complete, because it was renamed into place.
    async fn has(&self, path: &object_store::path::Path, size: u64) -> Result<bool, FileError> {
        match self.files.head(path).await {
            Ok(found) => Ok(found.size == size),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(FileError::Backend(error)),
        }
    }

    /// Returns the names of all files.
    ///
    /// # Errors
    /// [`FileError::Backend`].
    pub async fn list(&self) -> Result<Vec<String>, FileError> {
        let name = |path: &object_store::path::Path| {
            let name: String = path.parts().map(|part| part.as_ref().to_owned()).collect();
            location(&name).is_ok().then_some(name)
        };
        let listed = self.files.list(None);
        let names = listed.try_filter_map(|meta| {
            let name = name(&meta.location);
            async move { Ok(name) }
        });
        names.try_collect().await.map_err(FileError::Backend)
    }

    /// Removes all files to which `store` does not refer, and returns their number. It waits for
    /// deploys in progress, and they wait for it.
    ///
    /// # Errors
    /// [`FileError`], or errors of the store.
    pub async fn sweep(&self, store: &dyn Store) -> Result<usize, SweepError> {
        let listed = self.list().await?;
        let _gate = self.gate.write().await;
        let unreferenced = store.list_unreferenced_files(listed).await?;
        for name in &unreferenced {
            match self.files.delete(&location(name)?).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(FileError::Backend(error).into()),
            }
        }
        Ok(unreferenced.len())
    }

    /// Removes unfinished files of a killed process. No other process may be writing. This function
    /// blocks.
    ///
    /// # Errors
    /// [`FileError::Directory`].
    pub fn remove_unfinished(&self) -> Result<(), FileError> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        remove_unfinished(directory).map_err(|source| FileError::Directory {
            path: directory.display().to_string(),
            source,
        })
    }

    /// Stores `content`, and returns its name. When it returns, the file survives a power failure.
    ///
    /// # Errors
    /// [`FileError::Backend`].
    pub async fn put(&self, content: Bytes) -> Result<FileEntry, FileError> {
        let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
        let sha256 = digest(&content);
        let path = location(&sha256)?;
        if self.has(&path, size).await? {
            return Ok(FileEntry { sha256, size });
        }
        self.files
            .put(&path, PutPayload::from(content))
            .await
            .map_err(FileError::Backend)?;
        Ok(FileEntry { sha256, size })
    }

    /// Returns the whole content of a file.
    ///
    /// # Errors
    /// [`FileError::Missing`], [`FileError::Name`], [`FileError::Backend`].
    pub async fn read(&self, sha256: &str) -> Result<Bytes, FileError> {
        let found = self.files.get(&location(sha256)?).await;
        let found = found.map_err(|error| named(error, sha256))?;
        found.bytes().await.map_err(|error| named(error, sha256))
    }

    /// Returns some bytes of a file, from `range.start` up to, but not including, `range.end`.
    ///
    /// # Errors
    /// As [`FileStore::read`].
    pub async fn read_range(&self, sha256: &str, range: Range<u64>) -> Result<Bytes, FileError> {
        let found = self.files.get_range(&location(sha256)?, range).await;
        found.map_err(|error| named(error, sha256))
    }
}

/// Why files were not swept.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The file store failed.
    #[error("the files could not be swept")]
    Files(#[from] FileError),
    /// The store failed.
    #[error("the files that are referred to could not be read")]
    Store(#[from] StoreError),
}

/// A file that is read in pieces, outside of the threads that handle requests.
struct Pieces(Option<File>);

impl Pieces {
    fn open(path: &Path) -> Result<Self, FileError> {
        let file = File::open(path).map_err(|source| unreadable(path, source))?;
        Ok(Self(Some(file)))
    }

    /// Returns the next piece; empty at the end.
    async fn next(&mut self, path: &Path) -> Result<Bytes, FileError> {
        let Some(file) = self.0.take() else {
            return Ok(Bytes::new());
        };
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = Vec::with_capacity(PIECE);
            let mut limited = file.take(PIECE as u64);
            limited.read_to_end(&mut piece)?;
            Ok((limited.into_inner(), Bytes::from(piece)))
        });
        let (file, piece) = read
            .await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
            .map_err(|source| unreadable(path, source))?;
        self.0 = Some(file);
        Ok(piece)
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> FileError {
    FileError::Read {
        path: path.display().to_string(),
        source,
    }
}

/// A file is first written under its name, followed by `#` and a number.
fn remove_unfinished(directory: &Path) -> std::io::Result<()> {
    let mut folders = BTreeSet::from([directory.to_owned()]);
    while let Some(folder) = folders.pop_first() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.insert(entry.path());
            } else if entry.file_name().to_string_lossy().contains('#') {
                std::fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

/// Returns the SHA-256 of `content`, in lower-case hex.
fn digest(content: &[u8]) -> String {
    base16ct::lower::encode_string(&Sha256::digest(content))
}

/// Returns the path of a file: in one of 256 directories, so that none becomes too large.
pub(crate) fn location(sha256: &str) -> Result<object_store::path::Path, FileError> {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if sha256.len() != 64 || !sha256.bytes().all(hex) {
        return Err(FileError::Name);
    }
    let (directory, name) = place(sha256);
    Ok(object_store::path::Path::from_iter([directory, name]))
}

/// Returns the folder and the name of the file with this SHA-256 in the file store: a single folder
/// for all files would be slow.
pub(crate) fn place(sha256: &str) -> (&str, &str) {
    sha256.split_at(2)
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
