//! The minimum speed of a transfer on which the server waits: the body of a request, or the reading
//! of a response. A client that sends one byte now and then would otherwise hold shared resources
//! for hours.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// The minimum speed. Time in which the server does not wait does not count.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// This number of bytes, or the rest,
    pub bytes: u64,
    /// must be transferred within this waiting time.
    pub within: Duration,
}

impl Default for Pace {
    /// The speed of the slowest mobile networks.
    fn default() -> Self {
        Self {
            bytes: 64 * 1024,
            within: Duration::from_secs(30),
        }
    }
}

/// The waiting time since the last `bytes` bytes were transferred.
#[derive(Debug)]
pub struct Waiting {
    pace: Pace,
    bytes: u64,
    /// The remaining time, without the current wait.
    left: Duration,
    /// When the current wait began.
    since: Option<Instant>,
    end: Option<Pin<Box<Sleep>>>,
}

impl Waiting {
    /// Creates it in the state without a current wait.
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

    /// Starts or continues to wait. Ready if it has taken too long.
    pub fn poll_over(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let is_new = self.since.is_none();
        let end = *self.since.get_or_insert_with(Instant::now) + self.left;
        // This measures real time, even if tests use another clock.
        let sleep = self
            .end
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        if is_new {
            sleep.as_mut().reset(end);
        }
        sleep.as_mut().poll(context)
    }

    /// Records that bytes were transferred. Returns whether these were the last ones of `bytes` bytes, so that
    /// the time begins anew.
    pub fn moved(&mut self, bytes: u64) -> bool {
        if let Some(since) = self.since.take() {
            self.left = self.left.saturating_sub(since.elapsed());
        }
        self.bytes = self.bytes.saturating_add(bytes);
        let is_over = self.bytes >= self.pace.bytes;
        if is_over {
            self.bytes = 0;
            self.left = self.pace.within;
        }
        is_over
    }
}
