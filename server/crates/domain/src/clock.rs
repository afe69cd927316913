//! The time, which callers pass in.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Milliseconds since the Unix epoch.
pub type Millis = i64;

/// How far the clock of a server may be off the store's. Beyond that, the server is not ready.
pub const CLOCK_LIMIT: Millis = 30_000;
/// How far the clocks of two servers that are ready may differ. A time that another server wrote may
/// lie so far in the future.
pub const CLOCKS_DIFFER: Millis = 2 * CLOCK_LIMIT;

/// Tells the time. Handlers and jobs get one as an argument; they never read the system's clock.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Now, in milliseconds since the Unix epoch.
    fn now(&self) -> Millis;

    /// The time since a fixed moment in the past. It never decreases, even if the time of day is
    /// set.
    fn elapsed(&self) -> Duration;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the one place that reads the clock"
        )]
        let now = std::time::SystemTime::now();
        now.duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| {
                i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
            })
    }

    fn elapsed(&self) -> Duration {
        static FIRST: OnceLock<Instant> = OnceLock::new();
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the one place that reads the clock"
        )]
        let now = Instant::now();
        now.saturating_duration_since(*FIRST.get_or_init(|| now))
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock {
    now: AtomicI64,
    elapsed: AtomicU64,
}

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub const fn new(now: Millis) -> Self {
        Self {
            now: AtomicI64::new(now),
            elapsed: AtomicU64::new(0),
        }
    }

    /// Moves the clock by `by` milliseconds. A negative value sets the time of day back, and no
    /// time passes.
    pub fn advance(&self, by: Millis) {
        self.now.fetch_add(by, Ordering::SeqCst);
        let passed = u64::try_from(by).unwrap_or(0);
        self.elapsed.fetch_add(passed, Ordering::SeqCst);
    }

    /// Sets the time of day by `by` milliseconds ahead, or back if it is negative, as somebody does who
    /// sets a clock: no time passes.
    pub fn jump(&self, by: Millis) {
        self.now.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        self.now.load(Ordering::SeqCst)
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.elapsed.load(Ordering::SeqCst))
    }
}
