//! The bytes of deployed files. A file is addressed by its content, so a cached file is never
//! stale; it is only evicted to free memory.

use std::fmt;
use std::io::Write as _;
use std::ops::Range;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream;
use moka::future::Cache;
use tokio::sync::Semaphore;

use crate::domain::project::FileEntry;
use crate::games::files::{FileError, FileStore, OpenFile};
use crate::web::encoding::Coding;

/// The maximum size of a cached file in bytes.
const KEPT: u64 = 1024 * 1024;
/// The number of bytes per read of a file that is not cached.
const PIECE: u64 = 256 * 1024;
/// The size of files that are compressed here, in bytes: below, headers weigh more; above, the
/// game's build should have compressed it.
const COMPRESSED: Range<u64> = 512..32 * 1024 * 1024;
/// Players wait for the compression, so speed counts as well as size.
const BROTLI_QUALITY: u8 = 5;
/// Brotli's window, 4 MiB.
const BROTLI_WINDOW: u8 = 22;
/// One file may use this part of the memory, so that it does not evict all others.
const PART: u64 = 4;
/// The memory of an entry in addition to its bytes.
const OVERHEAD: u32 = 256;

/// The key of cached bytes: a file, uncompressed or in a coding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    sha256: String,
    coding: Coding,
}

/// A cache entry for a file in a coding.
#[derive(Clone, Debug)]
enum Kept {
    Bytes(Bytes),
    /// Compressing it does not make it smaller, or the result is too large for the cache.
    NotWorthIt,
}

impl Kept {
    /// Returns the memory that it uses.
    fn weight(&self) -> u32 {
        let bytes = match self {
            Kept::Bytes(bytes) => bytes.len(),
            Kept::NotWorthIt => 0,
        };
        u32::try_from(bytes)
            .unwrap_or(u32::MAX)
            .saturating_add(OVERHEAD)
    }
}

/// The contents of deployed files, with a cache for those in use.
#[derive(Clone)]
pub struct Contents {
    files: Arc<FileStore>,
    memory: Cache<Key, Kept>,
    /// The maximum size of a cached file in bytes.
    largest: u64,
    /// Only one file is compressed at a time: responses have priority.
    compressing: Arc<Semaphore>,
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contents")
            .field("files", &self.memory.entry_count())
            .field("bytes", &self.memory.weighted_size())
            .finish_non_exhaustive()
    }
}

impl Contents {
    /// Creates the contents of `files`, with a cache of at most `capacity` bytes.
    #[must_use]
    pub fn new(files: Arc<FileStore>, capacity: u64) -> Self {
        let memory = Cache::builder()
            .max_capacity(capacity)
            .weigher(|_, kept: &Kept| kept.weight())
            .build();
        Self {
            files,
            memory,
            largest: capacity / PART,
            compressing: Arc::new(Semaphore::new(1)),
        }
    }

    /// Returns some bytes of a file as the body of a response of `game`. A large file is never in
    /// memory as a whole.
    ///
    /// # Errors
    /// Those of [`FileStore::read`]. If reading a large file fails later, the body ends with an
    /// error.
    pub async fn body(
        &self,
        game: &str,
        entry: &FileEntry,
        span: Range<u64>,
    ) -> Result<Body, Arc<FileError>> {
        if entry.size > KEPT.min(self.largest) {
            // Before the response begins, so that a file that is out of reach is an error.
            let file = Box::pin(self.files.open_file(entry, game)).await?;
            return Ok(stream(file, span));
        }
        let whole = self.read(game, entry).await?;
        let start = usize::try_from(span.start).unwrap_or(usize::MAX);
        let end = usize::try_from(span.end).unwrap_or(usize::MAX);
        if end > whole.len() || start > end {
            // A part of the file is missing in the file store.
            return Err(Arc::new(FileError::Missing(entry.sha256.clone())));
        }
        Ok(Body::from(whole.slice(start..end)))
    }

    /// Returns a whole file, from the cache if possible. Concurrent requests for one file share one
    /// read.
    async fn read(&self, game: &str, entry: &FileEntry) -> Result<Bytes, Arc<FileError>> {
        let key = Key {
            sha256: entry.sha256.clone(),
            coding: Coding::Identity,
        };
        if let Some(Kept::Bytes(bytes)) = self.memory.get(&key).await {
            return Ok(bytes);
        }
        let read = async {
            let bytes = self.files.read(entry, game).await?;
            Ok::<_, FileError>(Kept::Bytes(bytes))
        };
        // This future is rarely needed, and would be a part of that of every request.
        match Box::pin(self.memory.try_get_with(key, read)).await? {
            Kept::Bytes(bytes) => Ok(bytes),
            Kept::NotWorthIt => Ok(self.files.read(entry, game).await?),
        }
    }

    /// Returns the file of `game` in this coding, if it has been compressed already. Otherwise starts to
    /// compress it, and returns `None`, so that the uncompressed file is sent.
    pub async fn compressed(&self, game: &str, entry: &FileEntry, coding: Coding) -> Option<Bytes> {
        if coding == Coding::Identity || self.largest == 0 || !COMPRESSED.contains(&entry.size) {
            return None;
        }
        let key = Key {
            sha256: entry.sha256.clone(),
            coding,
        };
        match self.memory.get(&key).await {
            Some(Kept::Bytes(bytes)) => Some(bytes),
            Some(Kept::NotWorthIt) => None,
            None => {
                self.begin_to_compress(game, entry, coding);
                None
            }
        }
    }

    fn begin_to_compress(&self, game: &str, entry: &FileEntry, coding: Coding) {
        let Ok(turn) = Arc::clone(&self.compressing).try_acquire_owned() else {
            return;
        };
        let (contents, game, entry) = (self.clone(), game.to_owned(), entry.clone());
        tokio::spawn(async move {
            let _turn = turn;
            let bytes = match contents.files.read(&entry, &game).await {
                Ok(bytes) => bytes,
                Err(error) => {
                    tracing::error!(sha256 = entry.sha256, %error, "a deployed file cannot be read");
                    return;
                }
            };
            let before = bytes.len();
            let done = tokio::task::spawn_blocking(move || compress(&bytes, coding)).await;
            // Compressing must save at least a tenth.
            let worth = |after: &Bytes| {
                after.len() < before / 10 * 9 && after.len() as u64 <= contents.largest
            };
            let kept = match done {
                Ok(Ok(after)) if worth(&after) => Kept::Bytes(after),
                _ => Kept::NotWorthIt,
            };
            let key = Key {
                sha256: entry.sha256,
                coding,
            };
            contents.memory.insert(key, kept).await;
        });
    }
}

/// Streams the bytes in pieces.
fn stream(file: OpenFile, span: Range<u64>) -> Body {
    let pieces = stream::try_unfold((file, span), |(file, span)| async move {
        if span.is_empty() {
            return Ok::<_, FileError>(None);
        }
        let end = span.end.min(span.start + PIECE);
        let piece: Bytes = file.read(span.start..end).await?;
        Ok(Some((piece, (file, end..span.end))))
    });
    Body::from_stream(pieces)
}

fn compress(bytes: &[u8], coding: Coding) -> std::io::Result<Bytes> {
    let smaller = match coding {
        Coding::Identity => bytes.to_vec(),
        Coding::Gzip => {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
            gzip.write_all(bytes)?;
            gzip.finish()?
        }
        Coding::Brotli => platform_compression::brotli(bytes, BROTLI_QUALITY, BROTLI_WINDOW)?,
    };
    Ok(smaller.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest as _, Sha256};
    use std::io::Read as _;

    async fn with(
        content: &'static [u8],
        capacity: u64,
    ) -> (tempfile::TempDir, Contents, FileEntry) {
        let folder = tempfile::tempdir().unwrap();
        let files = FileStore::local(folder.path()).unwrap();
        let entry = files.put(Bytes::from_static(content)).await.unwrap();
        (folder, Contents::new(Arc::new(files), capacity), entry)
    }

    async fn bytes(body: Body) -> Bytes {
        axum::body::to_bytes(body, usize::MAX).await.unwrap()
    }

    /// Waits until no file is being compressed.
    async fn settled(contents: &Contents) {
        let turn = contents.compressing.acquire().await.unwrap();
        drop(turn);
    }

    #[tokio::test]
    async fn a_file_in_use_is_read_once() {
        let (folder, contents, entry) = with(b"0123456789", 1 << 20).await;
        assert_eq!(
            bytes(contents.body("game", &entry, 0..10).await.unwrap()).await,
            "0123456789"
        );
        std::fs::remove_dir_all(folder.path()).unwrap();
        assert_eq!(
            bytes(contents.body("game", &entry, 2..4).await.unwrap()).await,
            "23"
        );
    }

    #[tokio::test]
    async fn without_room_every_answer_is_read() {
        let (folder, contents, entry) = with(b"0123456789", 0).await;
        assert_eq!(
            bytes(contents.body("game", &entry, 0..10).await.unwrap()).await,
            "0123456789"
        );
        std::fs::remove_dir_all(folder.path()).unwrap();
        let body = contents.body("game", &entry, 0..10).await.unwrap();
        assert!(axum::body::to_bytes(body, usize::MAX).await.is_err());
        assert_eq!(
            contents.compressed("game", &entry, Coding::Brotli).await,
            None
        );
    }

    #[tokio::test]
    async fn the_second_who_asks_gets_it_compressed() {
        static TEXT: [u8; 20_000] = [b'a'; 20_000];
        let (_folder, contents, entry) = with(&TEXT, 1 << 20).await;
        assert_eq!(
            contents.compressed("game", &entry, Coding::Brotli).await,
            None
        );
        settled(&contents).await;
        let brotli = contents
            .compressed("game", &entry, Coding::Brotli)
            .await
            .unwrap();
        let mut plain = Vec::new();
        brotli::Decompressor::new(&*brotli, 4_096)
            .read_to_end(&mut plain)
            .unwrap();
        assert_eq!(plain, TEXT);
        assert_eq!(
            contents.compressed("game", &entry, Coding::Gzip).await,
            None
        );
        settled(&contents).await;
        let gzip = contents
            .compressed("game", &entry, Coding::Gzip)
            .await
            .unwrap();
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&*gzip)
            .read_to_end(&mut plain)
            .unwrap();
        assert_eq!(plain, TEXT);
    }

    #[tokio::test]
    async fn what_does_not_get_smaller_is_tried_once() {
        let noise: Vec<u8> = (0..640_u32)
            .flat_map(|number| Sha256::digest(number.to_le_bytes()))
            .collect();
        let (folder, contents, entry) = with(noise.leak(), 1 << 20).await;
        assert_eq!(
            contents.compressed("game", &entry, Coding::Brotli).await,
            None
        );
        settled(&contents).await;
        std::fs::remove_dir_all(folder.path()).unwrap();
        assert_eq!(
            contents.compressed("game", &entry, Coding::Brotli).await,
            None
        );
        assert_eq!(contents.compressing.available_permits(), 1, "nothing began");
    }
}
