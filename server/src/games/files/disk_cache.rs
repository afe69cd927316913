//! Files of the bucket on the disk of this node, up to a size: the least recently used ones go
//! first. Losing the cache costs time, and nothing else.
//!
//! A file is written under a temporary name, synced and renamed, so a file under its own name is
//! complete even after a power failure. Its SHA-256 was checked before.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::lru::Lru;
use super::{OpenFile, location};
use crate::clock::{Clock, Millis};
use crate::domain::stored_file::folder_and_name;
use crate::platform::disk::FreeSpace;
use crate::store::make_private_directory;

/// The folder of files that are being fetched.
const UNFINISHED: &str = "unfinished";
/// The unit in which space is reserved, in bytes.
const BLOCK: u64 = 64 * 1024;

/// The cache. Functions that are not `async` block.
#[derive(Debug)]
pub(super) struct DiskCache {
    folder: PathBuf,
    /// Its maximum size in bytes.
    capacity: u64,
    /// Held while files get their names or are removed, so that it agrees with the disk.
    files: Mutex<Lru>,
    /// The capacity in blocks: files that are being fetched never take more.
    room: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
    disk: Arc<dyn FreeSpace>,
    /// The space that stays free on the disk, in bytes.
    floor: u64,
}

/// Space for a file that is being fetched. It is given back if the file is not kept.
#[derive(Debug)]
pub(super) struct Reservation {
    cache: Arc<DiskCache>,
    bytes: u64,
    _room: OwnedSemaphorePermit,
}

/// A file that is being fetched. Dropped, it is removed.
pub(super) struct Unfinished {
    file: NamedTempFile,
    hash: Sha256,
    reservation: Reservation,
}

impl DiskCache {
    /// Opens the cache in `folder`, which is created if it does not exist, removes what a killed
    /// process left behind, and what is too much.
    pub(super) fn open(
        folder: &Path,
        capacity: u64,
        clock: Arc<dyn Clock>,
        (disk, floor): (Arc<dyn FreeSpace>, u64),
    ) -> std::io::Result<Self> {
        make_private_directory(folder)?;
        match std::fs::remove_dir_all(folder.join(UNFINISHED)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        make_private_directory(&folder.join(UNFINISHED))?;
        let mut files = Lru::default();
        for ((noted, name), size) in found(folder)? {
            files.reserve(size);
            files.add(&name, size, noted);
        }
        let cache = Self {
            folder: folder.to_owned(),
            capacity,
            files: Mutex::new(files),
            room: Arc::new(Semaphore::new(blocks(capacity) as usize)),
            clock,
            disk,
            floor,
        };
        cache.evict(&mut cache.files(), 0);
        Ok(cache)
    }

    fn files(&self) -> MutexGuard<'_, Lru> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the cache has this file, as far as is known without asking the disk.
    pub(super) fn has(&self, sha256: &str) -> bool {
        self.files().has(sha256)
    }

    /// Opens a file of the cache. One that cannot be read is no longer in the cache, so that it is
    /// fetched again.
    ///
    /// # Errors
    /// The process has too many open files.
    pub(super) fn lookup(&self, sha256: &str) -> std::io::Result<Option<OpenFile>> {
        let now = self.clock.now();
        let Some((size, tell)) = self.files().touch(sha256, now) else {
            return Ok(None);
        };
        let opened = File::open(self.path(sha256)).and_then(|file| {
            let length = file.metadata()?.len();
            Ok((file, length))
        });
        match opened {
            Ok((file, length)) if length == size => {
                if tell {
                    // Only the order after the next start depends on it.
                    let _ = file.set_modified(time(now));
                }
                Ok(Some(OpenFile::on_disk(file, size)))
            }
            // Somebody changed it, or removed it with the cache.
            Ok(_) => {
                self.forget(sha256);
                Ok(None)
            }
            // The file is as good as before once others are closed.
            Err(error) if is_out_of_descriptors(&error) => Err(error),
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    tracing::warn!(sha256, %error, "a cached file cannot be read");
                }
                self.forget(sha256);
                Ok(None)
            }
        }
    }

    /// Forgets and removes a file.
    fn forget(&self, sha256: &str) {
        let mut files = self.files();
        files.remove(sha256);
        self.remove(sha256);
    }

    /// Makes room for a file of `bytes`; waits while other files that are being fetched take it.
    pub(super) async fn reserve(self: &Arc<Self>, bytes: u64) -> std::io::Result<Reservation> {
        let wanted = blocks(bytes).clamp(1, blocks(self.capacity).max(1));
        let room = Arc::clone(&self.room).acquire_many_owned(wanted).await;
        let room = room.map_err(std::io::Error::other)?;
        let cache = Arc::clone(self);
        let reserved = tokio::task::spawn_blocking(move || {
            let mut files = cache.files();
            files.reserve(bytes);
            cache.evict(&mut files, bytes);
            drop(files);
            Reservation {
                cache,
                bytes,
                _room: room,
            }
        });
        reserved.await.map_err(std::io::Error::other)
    }

    /// Removes files until all fit, and until `more` bytes leave enough of the disk free.
    fn evict(&self, files: &mut Lru, more: u64) {
        while files.bytes() > self.capacity || self.disk_is_low(more) {
            let Some(oldest) = files.remove_oldest() else {
                return;
            };
            self.remove(&oldest);
        }
    }

    /// Whether the disk would have less free space than it must. Unknown space is enough.
    fn disk_is_low(&self, more: u64) -> bool {
        let free = self.disk.free(&self.folder);
        self.floor > 0 && free.is_ok_and(|free| free < self.floor.saturating_add(more))
    }

    fn remove(&self, sha256: &str) {
        match std::fs::remove_file(self.path(sha256)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(sha256, %error, "a cached file cannot be removed");
            }
            _ => {}
        }
    }

    fn path(&self, sha256: &str) -> PathBuf {
        let (directory, name) = folder_and_name(sha256);
        self.folder.join(directory).join(name)
    }
}

impl Reservation {
    /// Begins the file.
    pub(super) fn begin(self) -> std::io::Result<Unfinished> {
        let folder = self.cache.folder.join(UNFINISHED);
        let file = match NamedTempFile::new_in(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // Somebody removed the cache.
                make_private_directory(&folder)?;
                NamedTempFile::new_in(&folder)?
            }
            file => file?,
        };
        Ok(Unfinished {
            file,
            hash: Sha256::new(),
            reservation: self,
        })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.cache.files().release(self.bytes);
    }
}

impl Unfinished {
    /// Appends bytes.
    pub(super) fn write(&mut self, piece: &Bytes) -> std::io::Result<()> {
        self.hash.update(piece);
        self.file.write_all(piece)
    }

    /// Keeps the file if this is its SHA-256, and returns it; `None` if it is another one.
    pub(super) fn keep(mut self, sha256: &str) -> std::io::Result<Option<OpenFile>> {
        if base16ct::lower::encode_string(&self.hash.finalize()) != sha256 {
            return Ok(None);
        }
        self.file.as_file().sync_data()?;
        let cache = Arc::clone(&self.reservation.cache);
        let path = cache.path(sha256);
        if let Some(folder) = path.parent() {
            make_private_directory(folder)?;
        }
        let now = cache.clock.now();
        let _ = self.file.as_file().set_modified(time(now));
        let mut files = cache.files();
        let file = self.file.persist(path).map_err(|error| error.error)?;
        let size = std::mem::take(&mut self.reservation.bytes);
        files.add(sha256, size, now);
        Ok(Some(OpenFile::on_disk(file, size)))
    }
}

/// Returns the files in the folder by the time of their last use. Everything else is removed.
fn found(folder: &Path) -> std::io::Result<BTreeMap<(Millis, String), u64>> {
    let mut found = BTreeMap::new();
    for directory in std::fs::read_dir(folder)? {
        let directory = directory?;
        let start = directory.file_name();
        if start == UNFINISHED || !directory.file_type()?.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(directory.path())? {
            let file = file?;
            let name = [&start, &file.file_name()].map(|part| part.to_string_lossy().into_owned());
            let name = name.concat();
            let about = file.metadata()?;
            if location(&name).is_ok() && about.is_file() {
                found.insert((millis(about.modified()?), name), about.len());
            }
        }
    }
    Ok(found)
}

/// Returns how many blocks hold so many bytes.
fn blocks(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(BLOCK)).unwrap_or(u32::MAX / 2)
}

/// Whether this process, or the machine, has as many open files as it may have.
fn is_out_of_descriptors(error: &std::io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        matches!(
            Errno::from_io_error(error),
            Some(Errno::MFILE | Errno::NFILE)
        )
    }
    #[cfg(not(unix))]
    {
        let _ = error;
        false
    }
}

fn time(at: Millis) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(at.unsigned_abs())
}

fn millis(at: SystemTime) -> Millis {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}

#[cfg(test)]
mod tests;
