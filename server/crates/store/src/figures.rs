//! What a store counts while it works, for those who operate it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use platform_domain::histogram::{Counted, Histogram};

/// The writes of a database. Counting is two additions for each commit, so it is always on.
#[derive(Debug, Default)]
pub struct WriteFigures {
    waiting: AtomicUsize,
    commits: Histogram,
    writes: AtomicU64,
    failed: AtomicU64,
}

/// A write that waits, until this is dropped.
#[derive(Debug)]
pub struct Waiting<'figures>(&'figures WriteFigures);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.begun(1);
    }
}

impl WriteFigures {
    /// Counts a write that waits from now on.
    pub fn waits(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a write that waits until the returned value is dropped.
    #[must_use]
    pub fn waits_until_dropped(&self) -> Waiting<'_> {
        self.waits();
        Waiting(self)
    }

    /// Counts `writes` that wait no longer.
    pub fn begun(&self, writes: usize) {
        self.waiting.fetch_sub(writes, Ordering::Relaxed);
    }

    /// Counts a commit of `writes` that took so long.
    pub fn committed(&self, writes: usize, took: Duration) {
        self.commits.count(took);
        self.writes.fetch_add(writes as u64, Ordering::Relaxed);
    }

    /// Counts a commit that failed.
    pub fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many writes wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns the commits and how long they took.
    #[must_use]
    pub fn commits(&self) -> Counted {
        self.commits.read()
    }

    /// Returns how many writes were committed.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Returns how many commits failed.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

/// The connections of a pool at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolFigures {
    /// The maximum number of connections.
    pub most: usize,
    /// Connections that nobody uses.
    pub idle: usize,
    /// Connections in use.
    pub in_use: usize,
    /// Operations that wait for a connection.
    pub waiting: usize,
    /// Writes that the server has not answered within the limit.
    pub unanswered: usize,
}

/// What a store says of one of its databases.
#[derive(Clone, Debug)]
pub struct DatabaseFigures {
    /// `main`, or `logs` for frontend log records.
    pub name: &'static str,
    /// Its writes.
    pub writes: Arc<WriteFigures>,
    /// How many writes wait, in all queues.
    pub waiting: usize,
    /// Its connections, if they are those of a server.
    pub pool: Option<PoolFigures>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_waits_until_it_begins_or_its_caller_gives_up() {
        let figures = WriteFigures::default();
        figures.waits();
        let given_up = figures.waits_until_dropped();
        assert_eq!(figures.waiting(), 2);
        drop(given_up);
        figures.begun(1);
        assert_eq!(figures.waiting(), 0);
        figures.committed(3, Duration::from_millis(2));
        figures.failed();
        let read = (
            figures.commits().count,
            figures.writes(),
            figures.failures(),
        );
        assert_eq!(read, (1, 3, 1));
    }
}
