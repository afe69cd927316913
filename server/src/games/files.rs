//! Deployed files, addressed by their content: in a folder, or in a bucket that several nodes share.
//!
//! | module | contents |
//! |---|---|
//! | `error` | why files could not be written, read or swept |
//! | `folder` | files in a folder of this machine |
//! | `shared` | files in an S3 bucket, with a cache on the disk |
//! | `bucket` | requests to the bucket: their time limits, and whether it answers |
//! | `transport` | the HTTP client of the bucket |
//! | `archives` | backups in a bucket |
//! | `copies` | files on their way between a folder and a bucket |
//! | `disk_cache` | files of the bucket on the disk, up to a size |
//! | `lru` | which of them were used last |
//! | `open_file` | a file that is being read |
//! | `pieces` | a file that is read in pieces to be stored |
//! | `turns` | whose file is fetched from the bucket next |
//! | `upload_memory` | the memory of files on their way to the bucket |

#[cfg(feature = "cluster")]
pub mod archives;
#[cfg(feature = "cluster")]
mod bucket;
#[cfg(feature = "cluster")]
pub mod copies;
#[cfg(feature = "cluster")]
mod disk_cache;
mod error;
mod folder;
#[cfg(feature = "cluster")]
mod lru;
mod open_file;
mod pieces;
#[cfg(feature = "cluster")]
mod shared;
#[cfg(feature = "cluster")]
mod transport;
#[cfg(feature = "cluster")]
mod turns;
#[cfg(feature = "cluster")]
mod upload_memory;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::OwnedRwLockReadGuard;

pub use self::error::{FileError, SweepError};
use self::folder::Folder;
pub use self::open_file::OpenFile;
use crate::clock::{Clock, Millis};
use crate::config::Config;
use crate::domain::project::FileEntry;
use crate::domain::stored_file::{folder_and_name, is_sha256};
use crate::platform::disk::FreeSpace;
use crate::store::Store;

/// The files of all deployments. A file is written once, completely, and never changed; equal files
/// are stored once.
#[derive(Clone, Debug)]
pub struct FileStore(Place);

#[derive(Clone, Debug)]
enum Place {
    Folder(Folder),
    #[cfg(feature = "cluster")]
    Shared(Arc<shared::SharedFiles>),
}

/// While it exists, no file is removed: its holder may store files first and refer to them later.
/// Files in a bucket need no guard, because the store knows when they were touched.
#[derive(Debug)]
#[must_use = "dropping it lets files be removed that nothing refers to yet"]
pub struct GcGuard {
    _gate: Option<OwnedRwLockReadGuard<()>>,
}

impl FileStore {
    /// Opens the file store of the settings. A folder is created if it does not exist; a bucket
    /// must exist, and must accept a file, unless it does not answer at all.
    ///
    /// # Errors
    /// [`FileError`]; its sentence is for the operator.
    #[cfg_attr(
        not(feature = "cluster"),
        expect(unused_variables, reason = "a folder needs neither")
    )]
    pub async fn open(
        config: &Config,
        clock: &Arc<dyn Clock>,
        disk: &Arc<dyn FreeSpace>,
    ) -> Result<Self, FileError> {
        #[cfg(feature = "cluster")]
        if let Some(settings) = &config.s3 {
            let files = shared::SharedFiles::open(settings, config, clock, disk).await?;
            return Ok(Self(Place::Shared(Arc::new(files))));
        }
        if config.s3.is_some() {
            return Err(FileError::Unsupported("S3"));
        }
        let path = config.files_path();
        tokio::task::spawn_blocking(move || Self::local(&path))
            .await
            .unwrap_or_else(|error| Err(FileError::of_disk(std::io::Error::other(error))))
    }

    /// Opens the file store in a directory, which is created for its owner only if it does not
    /// exist. This function blocks.
    ///
    /// # Errors
    /// [`FileError::Directory`], [`FileError::Backend`].
    pub fn local(directory: &Path) -> Result<Self, FileError> {
        Ok(Self(Place::Folder(Folder::open(directory)?)))
    }

    /// Prevents the removal of `names`, and of all files in a folder, as long as the returned guard
    /// exists. In a bucket they stay for a day.
    ///
    /// # Errors
    /// [`FileError::Record`]; [`FileError::BeingRemoved`] if a sweep of another node is removing
    /// one of them.
    #[cfg_attr(
        not(feature = "cluster"),
        expect(unused_variables, reason = "a folder needs no names")
    )]
    pub async fn keep(&self, store: &dyn Store, names: Vec<String>) -> Result<GcGuard, FileError> {
        match &self.0 {
            Place::Folder(folder) => Ok(GcGuard {
                _gate: Some(folder.keep().await),
            }),
            #[cfg(feature = "cluster")]
            Place::Shared(shared) => {
                shared.touch(store, names).await?;
                Ok(GcGuard { _gate: None })
            }
        }
    }

    /// Stores the content of the file at `from`, whose SHA-256 and length are known. A large file
    /// is never in memory as a whole.
    ///
    /// # Errors
    /// [`FileError`]; the file is then not stored.
    pub async fn put_file(&self, from: &Path, entry: &FileEntry) -> Result<(), FileError> {
        match &self.0 {
            Place::Folder(folder) => folder.put_file(from, entry).await,
            #[cfg(feature = "cluster")]
            Place::Shared(shared) => shared.put_file(from, entry).await,
        }
    }

    /// Stores `content`, and returns its name. When it returns, the file survives a power failure.
    ///
    /// # Errors
    /// [`FileError::Backend`], [`FileError::Unavailable`].
    pub async fn put(&self, content: Bytes) -> Result<FileEntry, FileError> {
        let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
        let sha256 = sha256(&content);
        let entry = FileEntry { sha256, size };
        match &self.0 {
            Place::Folder(folder) => folder.put(content, &entry).await?,
            #[cfg(feature = "cluster")]
            Place::Shared(shared) => shared.put(content, &entry).await?,
        }
        Ok(entry)
    }

    /// Returns the names of all files.
    ///
    /// # Errors
    /// [`FileError::Backend`], [`FileError::Unavailable`].
    pub async fn list(&self) -> Result<Vec<String>, FileError> {
        match &self.0 {
            Place::Folder(folder) => folder.list().await,
            #[cfg(feature = "cluster")]
            Place::Shared(shared) => shared.list().await,
        }
    }

    /// Removes files to which `store` does not refer, and returns their number. In a folder, it
    /// waits for deploys in progress, and they wait for it. In a bucket, files stay for a day.
    ///
    /// # Errors
    /// [`FileError`], or errors of the store.
    pub async fn sweep(&self, store: &dyn Store) -> Result<usize, SweepError> {
        match &self.0 {
            Place::Folder(folder) => folder.sweep(store).await,
            #[cfg(feature = "cluster")]
            Place::Shared(shared) => shared.sweep(store).await,
        }
    }

    /// Removes unfinished files of a killed process: all, if no other process can be writing, or
    /// those that were last written before a time. This function blocks.
    ///
    /// # Errors
    /// [`FileError::Directory`].
    pub fn remove_unfinished(&self, before: Option<Millis>) -> Result<(), FileError> {
        match &self.0 {
            Place::Folder(folder) => folder.remove_unfinished(before),
            // The cache did so when it was opened.
            #[cfg(feature = "cluster")]
            Place::Shared(_) => Ok(()),
        }
    }

    /// Opens a file for `game`. From then on it can be read even if the bucket does not answer. One
    /// game may fetch only some files from the bucket at the same time, and few large ones.
    ///
    /// # Errors
    /// As [`FileStore::read`]. A missing file in a folder is only noticed when it is read.
    #[cfg_attr(
        not(feature = "cluster"),
        expect(unused_variables, reason = "a folder has no turns")
    )]
    pub async fn open_file(&self, entry: &FileEntry, game: &str) -> Result<OpenFile, FileError> {
        match &self.0 {
            Place::Folder(folder) => folder.open_file(&entry.sha256),
            #[cfg(feature = "cluster")]
            Place::Shared(shared) => shared.open_file(entry, game).await,
        }
    }

    /// Returns the whole content of a file, for `game`.
    ///
    /// # Errors
    /// [`FileError::Missing`], [`FileError::Name`], [`FileError::Backend`]; for files in a bucket
    /// [`FileError::Unavailable`], [`FileError::Absent`], [`FileError::Damaged`].
    #[cfg_attr(
        not(feature = "cluster"),
        expect(unused_variables, reason = "a folder has no turns")
    )]
    pub async fn read(&self, entry: &FileEntry, game: &str) -> Result<Bytes, FileError> {
        match &self.0 {
            Place::Folder(folder) => folder.read(&entry.sha256).await,
            #[cfg(feature = "cluster")]
            Place::Shared(shared) => shared.open_file(entry, game).await?.read_all().await,
        }
    }

    /// Returns some bytes of a file, for `game`: from `range.start` up to, but not including,
    /// `range.end`.
    ///
    /// # Errors
    /// As [`FileStore::read`].
    pub async fn read_range(
        &self,
        entry: &FileEntry,
        range: Range<u64>,
        game: &str,
    ) -> Result<Bytes, FileError> {
        self.open_file(entry, game).await?.read(range).await
    }

    /// Whether files are shared with other nodes, so that they may be out of reach.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        !matches!(self.0, Place::Folder(_))
    }

    /// Whether the last request to the bucket failed. Files in the cache are served, and no other.
    #[must_use]
    pub fn is_out_of_reach(&self) -> bool {
        match &self.0 {
            Place::Folder(_) => false,
            #[cfg(feature = "cluster")]
            Place::Shared(shared) => shared.is_out_of_reach(),
        }
    }

    /// Asks the bucket for a file that is always there.
    ///
    /// # Errors
    /// [`FileError::Unavailable`]
    pub async fn check(&self) -> Result<(), FileError> {
        match &self.0 {
            Place::Folder(_) => Ok(()),
            #[cfg(feature = "cluster")]
            Place::Shared(shared) => shared.check().await,
        }
    }
}

/// Returns the SHA-256 of `content`, in lower-case hex.
fn sha256(content: &[u8]) -> String {
    base16ct::lower::encode_string(&Sha256::digest(content))
}

/// Returns the path of a file: in one of 256 directories, so that none becomes too large.
pub(crate) fn location(sha256: &str) -> Result<object_store::path::Path, FileError> {
    if !is_sha256(sha256) {
        return Err(FileError::Name);
    }
    let (directory, name) = folder_and_name(sha256);
    Ok(object_store::path::Path::from_iter([directory, name]))
}

/// Returns the name of the file at this path; `None` if it is the path of something else.
fn name_at(path: &object_store::path::Path) -> Option<String> {
    let name: String = path.parts().map(|part| part.as_ref().to_owned()).collect();
    location(&name).is_ok_and(|at| at == *path).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn named(sha256: &str) -> FileEntry {
        FileEntry {
            sha256: sha256.to_owned(),
            size: 3,
        }
    }

    fn abc() -> FileEntry {
        named(ABC)
    }

    #[tokio::test]
    async fn a_file_is_read_back_under_the_name_of_its_content() {
        let directory = tempfile::tempdir().unwrap();
        let files = FileStore::local(directory.path()).unwrap();
        let entry = files.put(Bytes::from_static(b"abc")).await.unwrap();
        assert_eq!(entry, abc());
        assert_eq!(files.put(Bytes::from_static(b"abc")).await.unwrap(), entry);
        assert_eq!(files.read(&abc(), "game").await.unwrap().as_ref(), b"abc");
        assert_eq!(
            files
                .read_range(&abc(), 1..3, "game")
                .await
                .unwrap()
                .as_ref(),
            b"bc"
        );
        let reopened = FileStore::local(directory.path()).unwrap();
        assert_eq!(
            reopened.read(&abc(), "game").await.unwrap().as_ref(),
            b"abc"
        );
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
    async fn a_start_leaves_files_alone_that_another_node_is_writing() {
        let directory = tempfile::tempdir().unwrap();
        let files = FileStore::local(directory.path()).unwrap();
        std::fs::create_dir(directory.path().join("ba")).unwrap();
        let unfinished = directory.path().join("ba").join(format!("{}#1", &ABC[2..]));
        std::fs::write(&unfinished, "ab").unwrap();
        let written = std::fs::metadata(&unfinished).unwrap().modified().unwrap();
        let written = written.duration_since(std::time::UNIX_EPOCH).unwrap();
        let written = Millis::try_from(written.as_millis()).unwrap();
        files.remove_unfinished(Some(written)).unwrap();
        assert!(unfinished.exists());
        files.remove_unfinished(Some(written + 1)).unwrap();
        assert!(!unfinished.exists());
        std::fs::write(&unfinished, "ab").unwrap();
        files.remove_unfinished(None).unwrap();
        assert!(!unfinished.exists());
    }

    #[tokio::test]
    async fn a_missing_file_and_a_bad_name_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let files = FileStore::local(directory.path()).unwrap();
        assert!(
            matches!(files.read(&abc(), "game").await, Err(FileError::Missing(name)) if name == ABC)
        );
        for name in ["", "..", "../../etc/passwd", &ABC.to_uppercase(), &ABC[1..]] {
            assert!(
                matches!(files.read(&named(name), "game").await, Err(FileError::Name)),
                "{name}"
            );
        }
    }

    #[tokio::test]
    async fn the_store_is_where_the_settings_say() {
        use crate::clock::ManualClock;
        use crate::platform::disk::SystemDisk;
        let directory = tempfile::tempdir().unwrap();
        let config = Config {
            files: Some(directory.path().join("files")),
            ..Config::default()
        };
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(0));
        let disk: Arc<dyn FreeSpace> = Arc::new(SystemDisk);
        let files = FileStore::open(&config, &clock, &disk).await.unwrap();
        assert!(directory.path().join("files").is_dir());
        assert!(!files.is_shared() && !files.is_out_of_reach());
        files.check().await.unwrap();
    }

    #[cfg(not(feature = "cluster"))]
    #[tokio::test]
    async fn a_program_without_s3_says_how_to_get_one() {
        use crate::clock::ManualClock;
        use crate::platform::disk::SystemDisk;
        let config = Config {
            s3: Some(crate::config::S3Settings::default()),
            ..Config::default()
        };
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(0));
        let disk: Arc<dyn FreeSpace> = Arc::new(SystemDisk);
        let refused = FileStore::open(&config, &clock, &disk).await.unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains("--features platform-server/cluster"),
            "{said}"
        );
    }
}
