//! Files in an S3 bucket, which any number of nodes share, with a cache on the disk of each.
//!
//! A file is fetched as a whole and checked against its name before any of it is served. Concurrent
//! requests for one file share one fetch.

use std::collections::HashMap;
use std::path::Path as FilePath;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, Shared};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use object_store::path::Path;
use platform_checks::limits::MAX_BYTES;
use tokio::time::{Instant, MissedTickBehavior};

use super::bucket::Bucket;
use super::disk_cache::{DiskCache, Unfinished};
use super::turns::FetchTurns;
use super::{FileError, OpenFile, SweepError, location, name_at};
use crate::clock::Clock;
use crate::config::{Config, S3Settings};
use crate::domain::errors::chain;
use crate::domain::project::FileEntry;
use crate::platform::disk::FreeSpace;
use crate::store::Store;

/// The number of bytes per read of an object.
pub(super) const PIECE: u64 = 4 * 1024 * 1024;
/// How many pieces of one file are read ahead.
const AHEAD: usize = 2;
/// The name of the object that is always there, for asking whether the bucket answers.
pub(super) const MARKER: &str = "platform-files.txt";
/// Its content.
pub(super) const MARKED: &[u8] = b"Deployed files of a game platform, each named by its SHA-256.\n";
/// How long a file that the bucket does not have, or has damaged, is not asked for again.
const FAULTY: Duration = Duration::from_secs(10);
/// How often a deploy looks whether a sweep has ended, and for how many times.
const LOOK_AGAIN: (Duration, usize) = (Duration::from_millis(250), 40);
/// How many files a sweep claims at a time.
const BATCH: usize = 200;
/// How many of them it removes at the same time.
const REMOVALS: usize = 8;
/// How long a sweep removes what it has claimed: far shorter than its claim holds.
const SWEEPING: Duration = Duration::from_secs(30);

/// A fetch that several callers wait for.
type Fetch = Shared<BoxFuture<'static, Result<OpenFile, FileError>>>;

/// The files of the bucket.
#[derive(Debug)]
pub(super) struct SharedFiles {
    bucket: Arc<Bucket>,
    cache: Arc<DiskCache>,
    clock: Arc<dyn Clock>,
    fetches: Mutex<HashMap<String, Fetch>>,
    turns: FetchTurns,
    /// Files that could not be fetched, although the bucket answered, and when.
    faulty: Mutex<HashMap<String, (Instant, FileError)>>,
}

impl SharedFiles {
    /// Opens the bucket and the cache. A bucket that does not answer is only logged: the files in
    /// the cache can be served.
    pub(super) async fn open(
        settings: &S3Settings,
        config: &Config,
        clock: &Arc<dyn Clock>,
        disk: &Arc<dyn FreeSpace>,
    ) -> Result<Self, FileError> {
        let bucket = Bucket::new(settings)?;
        match bucket.prove(&Path::from(MARKER), MARKED).await {
            Ok(()) => {}
            Err(FileError::Unavailable(why)) => {
                tracing::warn!(error = why, "the server starts without its bucket");
            }
            Err(error) => return Err(error),
        }
        let (folder, capacity) = (config.data.join("cache"), config.file_disk_cache_bytes());
        let disk = (Arc::clone(disk), config.disk_floor());
        let cache = {
            let (folder, clock) = (folder.clone(), Arc::clone(clock));
            move || DiskCache::open(&folder, capacity, clock, disk)
        };
        let cache = tokio::task::spawn_blocking(cache).await;
        let cache = cache.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        let cache = cache.map_err(|source| FileError::Directory {
            path: folder.display().to_string(),
            source: Arc::new(source),
        })?;
        Ok(Self {
            bucket: Arc::new(bucket),
            cache: Arc::new(cache),
            clock: Arc::clone(clock),
            fetches: Mutex::default(),
            turns: FetchTurns::new(),
            faulty: Mutex::default(),
        })
    }

    /// Records that these files are used from now on. Waits a moment for a sweep that removes one.
    pub(super) async fn touch(
        &self,
        store: &dyn Store,
        names: Vec<String>,
    ) -> Result<(), FileError> {
        let (period, times) = LOOK_AGAIN;
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut left = names;
        for _ in 0..times {
            ticks.tick().await;
            let touched = store.touch_files(left, self.clock.now()).await;
            left = touched.map_err(|error| FileError::Record(Arc::new(error)))?;
            if left.is_empty() {
                return Ok(());
            }
        }
        Err(FileError::BeingRemoved)
    }

    /// Stores the content of the file at `from`.
    pub(super) async fn put_file(
        &self,
        from: &FilePath,
        entry: &FileEntry,
    ) -> Result<(), FileError> {
        let path = location(&entry.sha256)?;
        if self.is_there(&path, entry).await? {
            return Ok(());
        }
        self.bucket.put_file(&path, from, entry.size).await?;
        self.faulty().remove(&entry.sha256);
        Ok(())
    }

    /// Stores `content`, whose name and size are in `entry`.
    pub(super) async fn put(&self, content: Bytes, entry: &FileEntry) -> Result<(), FileError> {
        let path = location(&entry.sha256)?;
        if !self.is_there(&path, entry).await? {
            self.bucket.put(&path, content).await?;
            self.faulty().remove(&entry.sha256);
        }
        Ok(())
    }

    /// Whether the bucket has the file. A damaged one is stored again.
    async fn is_there(&self, path: &Path, entry: &FileEntry) -> Result<bool, FileError> {
        if self.faulty().contains_key(&entry.sha256) {
            return Ok(false);
        }
        Ok(self.bucket.length(path).await? == Some(entry.size))
    }

    /// Returns the names of all files.
    pub(super) async fn list(&self) -> Result<Vec<String>, FileError> {
        let listed = self.bucket.list().await?;
        Ok(listed.iter().filter_map(name_at).collect())
    }

    /// Opens a file for `game`: of the cache, or of the bucket.
    pub(super) async fn open_file(
        self: &Arc<Self>,
        entry: &FileEntry,
        game: &str,
    ) -> Result<OpenFile, FileError> {
        let sha256 = entry.sha256.as_str();
        location(sha256)?;
        loop {
            let (cache, name) = (Arc::clone(&self.cache), sha256.to_owned());
            // Only a file of the cache needs the disk.
            if cache.has(sha256) {
                let found = tokio::task::spawn_blocking(move || cache.lookup(&name)).await;
                let found = found.unwrap_or_else(|error| Err(std::io::Error::other(error)));
                match found {
                    Ok(Some(file)) => return Ok(file),
                    Ok(None) => {}
                    Err(error) => return Err(FileError::of_disk(error)),
                }
            }
            if let Some(fetch) = self.fetch_once(entry, game)? {
                return fetch.await;
            }
        }
    }

    /// Returns the fetch of a file, which begins if there is none; `None` if it has just ended.
    fn fetch_once(
        self: &Arc<Self>,
        entry: &FileEntry,
        game: &str,
    ) -> Result<Option<Fetch>, FileError> {
        let sha256 = entry.sha256.as_str();
        let mut fetches = self.fetches();
        if let Some(fetch) = fetches.get(sha256) {
            return Ok(Some(fetch.clone()));
        }
        if self.cache.has(sha256) {
            return Ok(None);
        }
        if let Some((_, error)) = self.faulty().get(sha256).filter(|(at, _)| is_recent(*at)) {
            return Err(error.clone());
        }
        // Once it has its turn, it goes on if those who wait for it leave, since others may come.
        let (this, entry, game) = (Arc::clone(self), entry.clone(), game.to_owned());
        let fetching = tokio::spawn(async move {
            let _turn = this.turns.wait(&game, entry.size > PIECE).await;
            let name = entry.sha256.clone();
            if this.is_left(&name) {
                return Err(FileError::Unavailable("nobody waits for it".to_owned()));
            }
            let fetched = this.fetch(&entry).await;
            if let Err(error @ (FileError::Absent(_) | FileError::Damaged(_))) = &fetched {
                tracing::error!(%error, "a deployed file cannot be served");
                let mut faulty = this.faulty();
                faulty.retain(|_, (at, _)| is_recent(*at));
                faulty.insert(name.clone(), (Instant::now(), error.clone()));
            }
            this.fetches().remove(&name);
            fetched
        });
        let fetch = fetching.map(|ended| {
            ended.unwrap_or_else(|error| Err(FileError::of_disk(std::io::Error::other(error))))
        });
        let fetch = fetch.boxed().shared();
        fetches.insert(sha256.to_owned(), fetch.clone());
        Ok(Some(fetch))
    }

    /// Whether nobody waits for the fetch of this file any more. It is then forgotten, so that the
    /// next request begins another one.
    fn is_left(&self, sha256: &str) -> bool {
        let mut fetches = self.fetches();
        // The map itself holds one reference. Nobody can take another one meanwhile.
        let waits = |fetch: &Fetch| fetch.strong_count().is_none_or(|count| count > 1);
        let left = !fetches.get(sha256).is_some_and(waits);
        if left {
            fetches.remove(sha256);
        }
        left
    }

    /// Fetches a file from the bucket, and checks it.
    async fn fetch(&self, entry: &FileEntry) -> Result<OpenFile, FileError> {
        let sha256 = entry.sha256.as_str();
        if sha256 == super::sha256(&[]) {
            return Ok(OpenFile::in_memory(Bytes::new()));
        }
        let path = location(sha256)?;
        let damaged = || FileError::Damaged(sha256.to_owned());
        let Some((first, size)) = self.bucket.get(&path, 0..PIECE).await? else {
            return Err(FileError::Absent(sha256.to_owned()));
        };
        // Another size is another content, and may need another turn.
        let is_whole = size == entry.size && first.len() as u64 == size.min(PIECE);
        if size > MAX_BYTES || !is_whole {
            return Err(damaged());
        }
        if size <= PIECE {
            return self.keep_small(sha256, first).await?.ok_or_else(damaged);
        }
        let reserved = self.cache.reserve(size).await.map_err(FileError::of_disk)?;
        let mut file = on_disk(move || {
            let mut file = reserved.begin()?;
            file.write(&first)?;
            Ok(file)
        })
        .await?;
        let starts = (PIECE..size).step_by(usize::try_from(PIECE).unwrap_or(usize::MAX));
        let mut pieces = stream::iter(starts)
            .map(|start| self.piece(&path, start, size))
            .buffered(AHEAD);
        while let Some(piece) = pieces.next().await {
            file = append(file, piece?).await?;
        }
        let name = sha256.to_owned();
        let kept = on_disk(move || file.keep(&name)).await?;
        kept.ok_or_else(damaged)
    }

    /// Reads one piece of an object of `size` bytes.
    async fn piece(&self, path: &Path, start: u64, size: u64) -> Result<Bytes, FileError> {
        let end = size.min(start + PIECE);
        match self.bucket.get(path, start..end).await? {
            Some((piece, _)) if piece.len() as u64 == end - start => Ok(piece),
            // It was replaced or removed meanwhile.
            _ => Err(FileError::Unavailable(
                "an object changed while it was read".to_owned(),
            )),
        }
    }

    /// Checks a file that is in memory as a whole, and keeps it. It is served even if the cache
    /// cannot be written. Returns `None` if it is damaged.
    async fn keep_small(
        &self,
        sha256: &str,
        content: Bytes,
    ) -> Result<Option<OpenFile>, FileError> {
        let (hashed, name) = (content.clone(), sha256.to_owned());
        if !on_disk(move || Ok(super::sha256(&hashed) == name)).await? {
            return Ok(None);
        }
        let reserved = self.cache.reserve(content.len() as u64).await;
        let (written, name) = (content.clone(), sha256.to_owned());
        let kept = on_disk(move || {
            let mut file = reserved?.begin()?;
            file.write(&written)?;
            file.keep(&name)
        });
        match kept.await {
            Ok(Some(file)) => Ok(Some(file)),
            Ok(None) => Ok(None),
            Err(error) => {
                let error = chain(&error);
                tracing::warn!(sha256, error, "a file is served without the cache");
                Ok(Some(OpenFile::in_memory(content)))
            }
        }
    }

    /// Removes files that no deployment has and that were not touched for a day.
    pub(super) async fn sweep(&self, store: &dyn Store) -> Result<usize, SweepError> {
        store.adopt_files(self.clock.now()).await?;
        let mut removed = 0;
        loop {
            // Nothing is claimed that cannot be removed.
            self.check().await?;
            let (begun, now) = (Instant::now(), self.clock.now());
            let claimed = store.claim_unused_files(BATCH, now).await?;
            if claimed.is_empty() {
                return Ok(removed);
            }
            let mut failed = None;
            let mut gone = Vec::with_capacity(claimed.len());
            let mut removals = stream::iter(claimed)
                .map(|name| async move { (self.remove(&name, begun).await, name) })
                .buffer_unordered(REMOVALS);
            while let Some((done, name)) = removals.next().await {
                match done {
                    Ok(()) => gone.push(name),
                    Err(error) => failed = Some(error),
                }
            }
            drop(removals);
            removed += gone.len();
            store.forget_files(gone, now).await?;
            if let Some(error) = failed {
                // What was not removed is claimed again later.
                return Err(error.into());
            }
        }
    }

    async fn remove(&self, sha256: &str, begun: Instant) -> Result<(), FileError> {
        if begun.elapsed() > SWEEPING {
            return Err(FileError::Unavailable("removing takes too long".to_owned()));
        }
        self.bucket.remove(&location(sha256)?).await
    }

    /// Whether the last request to the bucket failed.
    pub(super) fn is_out_of_reach(&self) -> bool {
        self.bucket.is_out_of_reach()
    }

    /// Asks the bucket for the object that is always there.
    pub(super) async fn check(&self) -> Result<(), FileError> {
        let marker = Path::from(MARKER);
        self.bucket.length(&marker).await.map(drop)
    }

    fn fetches(&self) -> MutexGuard<'_, HashMap<String, Fetch>> {
        self.fetches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faulty(&self) -> MutexGuard<'_, HashMap<String, (Instant, FileError)>> {
        self.faulty.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_recent(at: Instant) -> bool {
    at.elapsed() < FAULTY
}

async fn append(mut file: Unfinished, piece: Bytes) -> Result<Unfinished, FileError> {
    on_disk(move || {
        file.write(&piece)?;
        Ok(file)
    })
    .await
}

/// Runs what blocks outside of the threads that handle requests.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, FileError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(std::io::Error::other(error)))
        .map_err(FileError::of_disk)
}
