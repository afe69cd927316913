//! Waiting for a condition, with a time limit.

use std::time::Duration;

/// How long any step of a test may take before the test fails. A passing test never waits this
/// long, so it can be long enough for a busy machine.
pub const BOUND: Duration = Duration::from_secs(45);

/// The first and the longest pause between two polls. Each poll of a page keeps a browser and its
/// driver busy, so slow conditions are polled less often.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(80);

/// Polls `probe` until it returns a value, for at most [`BOUND`]. Returns `None` after that time.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the polling that everything else uses"
)]
pub async fn comes<T>(mut probe: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let asking = async {
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(found) = probe().await {
                return found;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        }
    };
    tokio::time::timeout(BOUND, asking).await.ok()
}

/// Polls `probe` until it returns a value, for at most [`BOUND`].
///
/// # Panics
/// Panics with `what` in the message after that time.
pub async fn until<T>(what: &str, probe: impl AsyncFnMut() -> Option<T>) -> T {
    match comes(probe).await {
        Some(found) => found,
        None => panic!("waited {} s in vain until {what}", BOUND.as_secs()),
    }
}

/// Waits for `future`, for at most [`BOUND`].
///
/// # Panics
/// Panics with `what` in the message after that time.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(BOUND, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {} s in vain for {what}", BOUND.as_secs()),
    }
}
