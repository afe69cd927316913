//! Read-only connections: in write-ahead mode they wait neither for the writer nor for each other.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use platform_store::StoreError;
use rusqlite::{Connection, OpenFlags};

use super::connection::prepare;
use super::error::Error;

/// KiB of pages that one reading connection caches at most. The operating system caches the rest
/// for all of them.
const CACHE_KIB: i32 = 2_048;

/// A few reading connections.
#[derive(Debug)]
pub(super) struct Readers {
    /// `None` after the store was closed.
    connections: Vec<Mutex<Option<Connection>>>,
    /// The one to wait for when all are busy.
    next: AtomicUsize,
}

impl Readers {
    /// Opens `count` connections to the database at `path`, which must exist.
    pub(super) fn open(path: &Path, count: usize) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connections = (0..count.max(1))
            .map(|_| {
                let connection = Connection::open_with_flags(path, flags)?;
                prepare(&connection, CACHE_KIB)?;
                Ok(Mutex::new(Some(connection)))
            })
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self {
            connections,
            next: AtomicUsize::new(0),
        })
    }

    /// Runs `work` on an idle connection, on the caller's thread.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, StoreError> {
        match self.take().as_ref() {
            Some(connection) => Ok(work(connection)?),
            None => Err(StoreError::Unavailable("the store is closed".into())),
        }
    }

    fn take(&self) -> MutexGuard<'_, Option<Connection>> {
        // Always from the first one on: few connections then have the pages that are read most, and
        // they are in the processor's cache.
        for connection in &self.connections {
            match connection.try_lock() {
                Ok(guard) => return guard,
                // A read that panicked has left no partial state.
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.connections[next % self.connections.len()])
    }

    /// Closes every connection, so that the writer's is the last one.
    pub(super) fn close(&self) {
        for connection in &self.connections {
            lock(connection).take();
        }
    }
}

fn lock(connection: &Mutex<Option<Connection>>) -> MutexGuard<'_, Option<Connection>> {
    connection
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
