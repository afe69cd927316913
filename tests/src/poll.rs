//! Waiting for a condition, with a bound.

use std::time::Duration;

/// How long anything in a test may take before the test fails. Nothing that works
/// waits for it, so it is long enough for a machine that does much else.
pub const BOUND: Duration = Duration::from_secs(45);

/// The pause after the first question, and the longest one. Each question to a
/// page keeps a browser and its driver busy, so what takes long is asked less
/// often.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(80);

/// Asks `probe` until it gives a value, at most for [`BOUND`]. Nothing when the
/// time is over.
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

/// Asks `probe` until it gives a value, at most for [`BOUND`].
///
/// # Panics
/// With `what` in the message when the time is over.
pub async fn until<T>(what: &str, probe: impl AsyncFnMut() -> Option<T>) -> T {
    match comes(probe).await {
        Some(found) => found,
        None => panic!("waited {} s in vain until {what}", BOUND.as_secs()),
    }
}

/// Waits for `future`, at most for [`BOUND`].
///
/// # Panics
/// With `what` in the message when the time is over.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(BOUND, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {} s in vain for {what}", BOUND.as_secs()),
    }
}
