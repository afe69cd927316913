//! How fast something has to move that is waited for: the body of a request, or
//! the reading of an answer. One byte now and then would hold for hours what all
//! share.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// How fast it has to move. Time in which nobody waits for it does not count.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// So many bytes, or the rest,
    pub bytes: u64,
    /// may be waited for this long.
    pub within: Duration,
}

impl Default for Pace {
    /// What the slowest of mobile networks can do.
    fn default() -> Self {
        Self {
            bytes: 64 * 1024,
            within: Duration::from_secs(30),
        }
    }
}

/// How long it was waited for, since so many bytes moved last.
#[derive(Debug)]
pub struct Waiting {
    pace: Pace,
    bytes: u64,
    /// What is left of the time, beside what goes by now.
    left: Duration,
    /// Since when it is waited for.
    since: Option<Instant>,
    end: Option<Pin<Box<Sleep>>>,
}

impl Waiting {
    /// Nothing is waited for yet.
    #[must_use]
    pub const fn new(pace: Pace) -> Self {
        Self {
            pace,
            bytes: 0,
            left: pace.within,
            since: None,
            end: None,
        }
    }

    /// It is waited for. Ready where that has taken too long.
    pub fn poll_over(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let is_new = self.since.is_none();
        let end = *self.since.get_or_insert_with(Instant::now) + self.left;
        // A connection's silence is real time, whatever clock tests move.
        let sleep = self
            .end
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        if is_new {
            sleep.as_mut().reset(end);
        }
        sleep.as_mut().poll(context)
    }

    /// So many bytes have moved.
    pub fn moved(&mut self, bytes: u64) {
        if let Some(since) = self.since.take() {
            self.left = self.left.saturating_sub(since.elapsed());
        }
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= self.pace.bytes {
            self.bytes = 0;
            self.left = self.pace.within;
        }
    }
}
