//! The time, as something that is handed in.

use std::time::Duration;

/// Tells the time. A verifier is given one, so that tests can move it.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The time since the Unix epoch.
    fn now(&self) -> Duration;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the one place that reads the clock"
        )]
        let now = std::time::SystemTime::now();
        // A clock set before 1970 counts as 1970: every token is then refused
        // as issued in the future, which is the safe side.
        now.duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default()
    }
}
