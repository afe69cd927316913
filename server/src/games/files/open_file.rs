//! A file that is being read: in pieces, so that a large one is never in memory as a whole.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};

use super::FileError;
use super::folder::named;

/// A file that is being read.
#[derive(Clone, Debug)]
pub struct OpenFile(Source);

#[derive(Clone, Debug)]
enum Source {
    /// In a folder, which is asked for each piece.
    Store {
        files: Arc<dyn ObjectStore>,
        path: Path,
        sha256: String,
    },
    /// In the cache. It can be read even after it was removed there.
    #[cfg(feature = "cluster")]
    Disk { file: Arc<std::fs::File>, size: u64 },
    /// In memory.
    #[cfg(feature = "cluster")]
    Memory(Bytes),
}

impl OpenFile {
    /// A file of a folder.
    pub(super) fn in_store(files: Arc<dyn ObjectStore>, path: Path, sha256: &str) -> Self {
        Self(Source::Store {
            files,
            path,
            sha256: sha256.to_owned(),
        })
    }

    /// An open file of this length.
    #[cfg(feature = "cluster")]
    pub(super) fn on_disk(file: std::fs::File, size: u64) -> Self {
        let file = Arc::new(file);
        Self(Source::Disk { file, size })
    }

    /// A file whose content is known.
    #[cfg(feature = "cluster")]
    pub(super) const fn in_memory(content: Bytes) -> Self {
        Self(Source::Memory(content))
    }

    /// Returns some bytes, from `range.start` up to, but not including, `range.end`; fewer if the
    /// file is shorter.
    ///
    /// # Errors
    /// Those of [`FileStore::read`](super::FileStore::read).
    pub async fn read(&self, range: Range<u64>) -> Result<Bytes, FileError> {
        match &self.0 {
            Source::Store {
                files,
                path,
                sha256,
            } => {
                let found = files.get_range(path, range).await;
                found.map_err(|error| named(error, sha256))
            }
            #[cfg(feature = "cluster")]
            Source::Disk { file, size } => {
                let (file, end) = (Arc::clone(file), range.end.min(*size));
                let read = move || read_at(&file, range.start.min(end)..end);
                let read = tokio::task::spawn_blocking(read).await;
                read.unwrap_or_else(|error| Err(std::io::Error::other(error)))
                    .map_err(FileError::of_disk)
            }
            #[cfg(feature = "cluster")]
            Source::Memory(content) => {
                let length = content.len() as u64;
                let end = range.end.min(length);
                let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
                Ok(content.slice(at(range.start.min(end))..at(end)))
            }
        }
    }

    /// Returns the whole content.
    ///
    /// # Errors
    /// Those of [`OpenFile::read`].
    #[cfg(feature = "cluster")]
    pub(super) async fn read_all(&self) -> Result<Bytes, FileError> {
        self.read(0..u64::MAX).await
    }
}

/// Reads these bytes. Several readers share the file, so its position is not used.
#[cfg(feature = "cluster")]
fn read_at(file: &std::fs::File, range: Range<u64>) -> std::io::Result<Bytes> {
    use std::os::unix::fs::FileExt as _;
    let length = usize::try_from(range.end - range.start).map_err(std::io::Error::other)?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes.into())
}
