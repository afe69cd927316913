//! The one place that reads the clock and waits.

use std::time::{Duration, Instant, SystemTime};

/// Seconds since the epoch.
#[expect(
    clippy::disallowed_methods,
    reason = "commands read the clock here and hand it on"
)]
pub(crate) fn now() -> i64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .ok()
        .and_then(|since| since.as_secs().try_into().ok())
        .unwrap_or_default()
}

/// Waits before the next request, for as long as a server or a limit demands.
#[expect(
    clippy::disallowed_methods,
    reason = "the device flow (RFC 8628 §3.5) and following logs are made of waiting"
)]
pub(crate) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Measures how long something takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[expect(
        clippy::disallowed_methods,
        reason = "looking at a folder takes the longer pauses the longer it takes"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since then.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
