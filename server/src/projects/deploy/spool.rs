//! The limits for archives that are being uploaded: their number, their bytes, and which one is
//! cancelled if a limit is reached.
//!
//! Archives do not queue while they arrive: they are queued for unpacking when they are complete.
//! If the space is used up, the slowest upload is cancelled, so that many slow uploads cannot
//! prevent others from deploying.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The limits for all uploads together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// The maximum number of concurrent uploads.
    pub(super) arriving: usize,
    /// The maximum number of bytes of all uploads on the disk.
    pub(super) bytes: u64,
    /// The speed of an upload is measured by the time for this number of bytes.
    pub(super) step: u64,
    /// An upload that takes less time for a step is too fast to be cancelled.
    pub(super) slow: Duration,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            arriving: 256,
            bytes: 16 * 1024 * 1024 * 1024,
            step: 64 * 1024,
            slow: Duration::from_secs(2),
        }
    }
}

/// All uploads.
#[derive(Clone, Debug)]
pub(super) struct Spool {
    room: Room,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    bytes: u64,
    /// The bytes of each counted archive: one that is arriving or complete.
    held: HashMap<u64, u64>,
    arriving: HashMap<u64, Arriving>,
}

/// An archive that is not complete yet.
#[derive(Debug)]
struct Arriving {
    give_way: CancellationToken,
    /// When the current step began.
    since: Instant,
    bytes: u64,
    /// How long the previous step took.
    before: Duration,
}

impl Arriving {
    fn pace(&self) -> Duration {
        self.before.max(self.since.elapsed())
    }
}

impl Spool {
    pub(super) fn new(room: Room) -> Self {
        Self {
            room,
            table: Arc::default(),
        }
    }

    /// Returns a slot for another upload. If there is none, the slowest upload is cancelled; if
    /// none is slow, returns `None`.
    pub(super) fn enter(&self) -> Option<Spooled> {
        let mut table = self.table();
        if table.arriving.len() >= self.room.arriving {
            table.give_up_slowest(self.room.slow)?;
        }
        let number = table.next;
        table.next += 1;
        table.held.insert(number, 0);
        let give_way = CancellationToken::new();
        table.arriving.insert(
            number,
            Arriving {
                give_way: give_way.clone(),
                since: Instant::now(),
                bytes: 0,
                before: Duration::ZERO,
            },
        );
        Some(Spooled {
            spool: self.clone(),
            number,
            give_way,
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn give_up_slowest(&mut self, slow: Duration) -> Option<()> {
        let paces = self
            .arriving
            .iter()
            .map(|(number, one)| (one.pace(), *number));
        let (_, number) = paces.max().filter(|(pace, _)| *pace >= slow)?;
        self.give_up(number);
        Some(())
    }

    /// Cancels an upload. Its bytes are not counted from now on, although its task takes a moment
    /// to notice; otherwise others would have to free the same space again.
    fn give_up(&mut self, number: u64) {
        if let Some(arriving) = self.arriving.remove(&number) {
            arriving.give_way.cancel();
            self.forget(number);
        }
    }

    fn forget(&mut self, number: u64) {
        let bytes = self.held.remove(&number).unwrap_or_default();
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// One upload's part of the space. Dropping it frees the space.
#[derive(Debug)]
pub(super) struct Spooled {
    spool: Spool,
    number: u64,
    give_way: CancellationToken,
}

impl Spooled {
    /// Counts further bytes. If they exceed the limit, the slowest uploads are cancelled until they
    /// fit, or this one.
    pub(super) fn grow(&self, bytes: u64) {
        let room = self.spool.room;
        let mut table = self.spool.table();
        let Some(held) = table.held.get_mut(&self.number) else {
            return;
        };
        *held += bytes;
        table.bytes += bytes;
        if let Some(arriving) = table.arriving.get_mut(&self.number) {
            arriving.bytes += bytes;
            if arriving.bytes >= room.step {
                arriving.before = arriving.since.elapsed();
                arriving.since = Instant::now();
                arriving.bytes = 0;
            }
        }
        while table.bytes > room.bytes {
            if table.give_up_slowest(room.slow).is_none() {
                table.give_up(self.number);
                return;
            }
        }
    }

    /// Marks the archive as complete: it is not cancelled any more.
    pub(super) fn whole(&self) {
        self.spool.table().arriving.remove(&self.number);
    }

    /// Waits until the upload is cancelled.
    pub(super) async fn given_up(&self) {
        self.give_way.cancelled().await;
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        let mut table = self.spool.table();
        table.arriving.remove(&self.number);
        table.forget(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room {
        arriving: 3,
        bytes: 100,
        step: 10,
        slow: Duration::from_secs(2),
    };

    fn is_given_up(one: &Spooled) -> bool {
        one.give_way.is_cancelled()
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_slowest_gives_its_place_to_a_newcomer() {
        let spool = Spool::new(ROOM);
        let [quick, stalled, slow] = [(); 3].map(|()| spool.enter().unwrap());
        assert!(spool.enter().is_none(), "nobody is slow yet");
        // An upload that was fast at first and then stalls is slow.
        stalled.grow(30);
        for _ in 0..5 {
            pass(1).await;
            quick.grow(10);
        }
        pass(1).await;
        slow.grow(10);
        let newcomer = spool.enter().unwrap();
        assert!(is_given_up(&stalled) != is_given_up(&slow));
        assert!(!is_given_up(&quick) && !is_given_up(&newcomer));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_whole_is_given_up_no_more_and_makes_place() {
        let spool = Spool::new(ROOM);
        let whole = spool.enter().unwrap();
        whole.grow(50);
        whole.whole();
        let others = [(); 3].map(|()| spool.enter().unwrap());
        pass(5).await;
        assert!(spool.enter().is_some());
        assert!(!is_given_up(&whole));
        drop((whole, others));
        let table = spool.table();
        assert_eq!((table.bytes, table.arriving.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn where_the_bytes_do_not_fit_the_slowest_or_the_last_gives_way() {
        let spool = Spool::new(ROOM);
        let slow = spool.enter().unwrap();
        slow.grow(50);
        pass(5).await;
        let quick = spool.enter().unwrap();
        quick.grow(60);
        assert!(is_given_up(&slow) && !is_given_up(&quick));
        drop(slow);
        let last = spool.enter().unwrap();
        last.grow(60);
        assert!(is_given_up(&last) && !is_given_up(&quick));
    }

    #[tokio::test(start_paused = true)]
    async fn one_slow_archive_that_makes_enough_room_is_the_only_one_given_up() {
        let spool = Spool::new(ROOM);
        let [slowest, slow] = [40, 30].map(|bytes| {
            let one = spool.enter().unwrap();
            one.grow(bytes);
            one
        });
        pass(3).await;
        slow.grow(10);
        pass(3).await;
        let quick = spool.enter().unwrap();
        // The task of the slowest upload has not noticed yet while more data arrives.
        for _ in 0..4 {
            quick.grow(10);
        }
        assert!(is_given_up(&slowest));
        assert!(!is_given_up(&slow) && !is_given_up(&quick));
        assert_eq!(spool.table().bytes, 80);
        // Its later data does not count.
        slowest.grow(50);
        drop(slowest);
        assert_eq!(spool.table().bytes, 80);
        drop((slow, quick));
        let table = spool.table();
        assert_eq!((table.bytes, table.held.len()), (0, 0));
    }
}
