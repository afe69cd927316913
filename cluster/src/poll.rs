//! Waiting for a condition, with a time limit.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How long a program may take to be ready: busy machines are slow.
const BOUND: Duration = Duration::from_secs(60);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks at a condition until it holds, for at most a minute. An error ends it at once.
///
/// # Errors
/// The condition's error, or that it did not hold in time, with `what` in the sentence.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the polling that everything else uses"
)]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while !holds()? {
        if start.elapsed() > BOUND {
            bail!("waited {} s in vain for {what}", BOUND.as_secs());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
