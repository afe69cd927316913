//! The memory of files on their way to the bucket, which has a limit however many are deployed at the
//! same time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many bytes of files are in memory at the same time: two parts.
const MOST: u32 = 16 * 1024 * 1024;

/// The memory that is free.
#[derive(Debug)]
pub(super) struct UploadMemory(Arc<Semaphore>);

/// Some memory, until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it gives the memory to others"]
pub(super) struct Reserved {
    /// `None` never happens: nobody closes the semaphore.
    _bytes: Option<OwnedSemaphorePermit>,
}

impl UploadMemory {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MOST as usize)))
    }

    /// Waits for the memory of one part. Whoever has some must not wait for more, because others
    /// could do the same.
    pub(super) async fn reserve(&self, bytes: usize) -> Reserved {
        let bytes = u32::try_from(bytes).unwrap_or(MOST).min(MOST);
        let bytes = Arc::clone(&self.0).acquire_many_owned(bytes).await;
        Reserved { _bytes: bytes.ok() }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn what_is_more_than_the_memory_waits_in_its_turn() {
        let memory = UploadMemory::new();
        let part = MOST as usize / 2;
        let first = memory.reserve(part).now_or_never().unwrap();
        let second = memory.reserve(part).now_or_never().unwrap();
        assert!(memory.reserve(1).now_or_never().is_none());
        drop(first);
        let small = memory.reserve(1).now_or_never().unwrap();
        assert!(memory.reserve(part).now_or_never().is_none());
        drop((small, second));
        // More than there is takes all of it.
        assert!(memory.reserve(usize::MAX).now_or_never().is_some());
    }
}
