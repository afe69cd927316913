//! The cache within its size, after a restart, after a kill, and on a disk that is almost full.

use super::*;
use crate::clock::ManualClock;
use crate::platform::disk::{ManualDisk, SystemDisk};

/// When the tests begin.
const NOW: Millis = 1_800_000_000_000;

struct Place {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            clock: Arc::new(ManualClock::new(NOW)),
        }
    }

    fn open(&self, capacity: u64) -> Arc<DiskCache> {
        self.open_on(capacity, (Arc::new(SystemDisk), 0))
    }

    fn open_on(&self, capacity: u64, disk: (Arc<dyn FreeSpace>, u64)) -> Arc<DiskCache> {
        let cache = DiskCache::open(self.folder.path(), capacity, self.clock.clone(), disk);
        Arc::new(cache.unwrap())
    }

    /// The number of files below the folder.
    fn files(&self) -> usize {
        let folders = std::fs::read_dir(self.folder.path()).unwrap();
        let count = |folder: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_dir(folder.unwrap().path()).unwrap().count()
        };
        folders.map(count).sum()
    }
}

fn name(content: &[u8]) -> String {
    base16ct::lower::encode_string(&Sha256::digest(content))
}

async fn keep(cache: &Arc<DiskCache>, content: &'static [u8]) -> OpenFile {
    let reserved = cache.reserve(content.len() as u64).await.unwrap();
    let mut file = reserved.begin().unwrap();
    file.write(&Bytes::from_static(content)).unwrap();
    file.keep(&name(content)).unwrap().unwrap()
}

async fn read(cache: &DiskCache, content: &[u8]) -> Option<Bytes> {
    let file = cache.lookup(&name(content)).unwrap()?;
    Some(file.read_all().await.unwrap())
}

#[tokio::test]
async fn a_kept_file_is_read_back_also_after_a_restart() {
    let place = Place::new();
    let cache = place.open(1_000);
    assert_eq!(read(&cache, b"one").await, None);
    let file = keep(&cache, b"one").await;
    assert_eq!(file.read(1..2).await.unwrap(), "n");
    assert_eq!(file.read(1..200).await.unwrap(), "ne");
    assert_eq!(file.read(7..9).await.unwrap(), "");
    assert_eq!(read(&cache, b"one").await.unwrap(), "one");
    let again = place.open(1_000);
    assert_eq!(read(&again, b"one").await.unwrap(), "one");
    assert_eq!(again.files().bytes(), 3);
}

#[tokio::test]
async fn other_bytes_are_not_kept_and_leave_nothing_behind() {
    let place = Place::new();
    let cache = place.open(1_000);
    let mut file = cache.reserve(5).await.unwrap().begin().unwrap();
    file.write(&Bytes::from_static(b"other")).unwrap();
    assert!(file.keep(&name(b"right")).unwrap().is_none());
    let given_up = cache.reserve(5).await.unwrap().begin().unwrap();
    drop(given_up);
    assert_eq!((place.files(), cache.files().bytes()), (0, 0));
}

#[tokio::test]
async fn the_cache_is_never_larger_than_it_may_be() {
    let place = Place::new();
    let cache = place.open(10);
    keep(&cache, b"aaaa").await;
    keep(&cache, b"bbbb").await;
    assert_eq!(read(&cache, b"aaaa").await.unwrap(), "aaaa");
    let open = cache.lookup(&name(b"bbbb")).unwrap().unwrap();
    read(&cache, b"aaaa").await.unwrap();
    keep(&cache, b"cccc").await;
    assert_eq!(cache.files().bytes(), 8);
    assert_eq!(read(&cache, b"bbbb").await, None);
    assert_eq!(open.read_all().await.unwrap(), "bbbb", "it is still read");
    assert_eq!(read(&cache, b"aaaa").await.unwrap(), "aaaa");
    // A file that does not fit is alone.
    keep(&cache, b"dddddddddddddddd").await;
    assert_eq!(read(&cache, b"aaaa").await, None);
    keep(&cache, b"e").await;
    assert_eq!(cache.files().bytes(), 1);
    assert_eq!(place.files(), 1);
}

#[tokio::test]
async fn the_order_of_use_outlives_a_restart() {
    let place = Place::new();
    let cache = place.open(100);
    for content in [&b"aaaa"[..], b"bbbb", b"cccc"] {
        keep(&cache, content).await;
        place.clock.advance(1);
    }
    place.clock.advance(3_600_000);
    read(&cache, b"aaaa").await.unwrap();
    // It is also smaller than before.
    let smaller = place.open(8);
    assert_eq!(read(&smaller, b"bbbb").await, None);
    assert_eq!(read(&smaller, b"aaaa").await.unwrap(), "aaaa");
    assert_eq!(read(&smaller, b"cccc").await.unwrap(), "cccc");
}

#[tokio::test]
async fn what_a_killed_process_left_behind_is_removed() {
    let place = Place::new();
    let cache = place.open(100);
    keep(&cache, b"aaaa").await;
    let mut half = cache.reserve(8).await.unwrap().begin().unwrap();
    half.write(&Bytes::from_static(b"half")).unwrap();
    std::mem::forget(half);
    assert_eq!(place.files(), 2);
    let again = place.open(100);
    assert_eq!(place.files(), 1);
    assert_eq!(again.files().bytes(), 4);
}

#[tokio::test]
async fn a_file_that_was_removed_or_cut_off_is_fetched_again() {
    let place = Place::new();
    let cache = place.open(100);
    keep(&cache, b"aaaa").await;
    keep(&cache, b"bbbb").await;
    std::fs::write(cache.path(&name(b"aaaa")), "aa").unwrap();
    assert_eq!(read(&cache, b"aaaa").await, None);
    std::fs::remove_dir_all(place.folder.path()).unwrap();
    assert_eq!(read(&cache, b"bbbb").await, None);
    assert_eq!(cache.files().bytes(), 0);
    keep(&cache, b"aaaa").await;
    assert_eq!(read(&cache, b"aaaa").await.unwrap(), "aaaa");
}

#[tokio::test]
async fn files_that_are_fetched_at_the_same_time_fit_as_well() {
    let place = Place::new();
    let cache = place.open(3 * BLOCK);
    let first = cache.reserve(2 * BLOCK).await.unwrap();
    let second = tokio::spawn({
        let cache = Arc::clone(&cache);
        async move { cache.reserve(2 * BLOCK).await.unwrap() }
    });
    tokio::task::yield_now().await;
    assert!(!second.is_finished());
    drop(first);
    drop(second.await.unwrap());
    assert_eq!(cache.files().bytes(), 0);
}

#[tokio::test]
async fn a_disk_that_is_almost_full_makes_the_cache_smaller() {
    let place = Place::new();
    let disk = Arc::new(ManualDisk::new(1_000));
    let cache = place.open_on(100, (disk.clone(), 500));
    keep(&cache, b"aaaa").await;
    keep(&cache, b"bbbb").await;
    disk.set(503);
    keep(&cache, b"cccc").await;
    assert_eq!(read(&cache, b"aaaa").await, None);
    assert_eq!(read(&cache, b"bbbb").await, None);
    assert_eq!(read(&cache, b"cccc").await.unwrap(), "cccc");
}
