//! Trying again, later each time.
//!
//! The runtime already sends a call a second time where that is certain to help: with a new token after
//! a 401, and after the time that the platform named when it makes too many guests. This is for what is
//! left: a network that is gone for a moment, a backend that starts.

use std::time::Duration;

use crate::PlatformError;
use crate::place;

/// How often to try again, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How often to try altogether.
    pub attempts: u32,
    /// The pause after the first attempt. Each pause is twice as long as the one before.
    pub first_pause: Duration,
    /// No pause is longer than this.
    pub longest_pause: Duration,
}

impl Default for Retry {
    /// Five attempts within about eight seconds.
    fn default() -> Self {
        Self {
            attempts: 5,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(10),
        }
    }
}

impl Retry {
    /// The pause after this attempt, counted from 1; `None` after the last one.
    fn pause_after(&self, attempt: u32) -> Option<Duration> {
        if attempt >= self.attempts {
            return None;
        }
        let times = 2_u32.saturating_pow(attempt.saturating_sub(1));
        Some(
            self.first_pause
                .saturating_mul(times)
                .min(self.longest_pause),
        )
    }
}

/// Calls `call` until it succeeds, fails for good, or was tried often enough.
///
/// A call of which no answer arrived may have had an effect: use this only for what may happen twice.
///
/// # Errors
/// The error of the last attempt.
pub async fn retry<T, F>(how: Retry, mut call: impl FnMut() -> F) -> Result<T, PlatformError>
where
    F: Future<Output = Result<T, PlatformError>>,
{
    for attempt in 1.. {
        match (call().await, how.pause_after(attempt)) {
            (Err(error), Some(pause)) if error.is_temporary() => place::pause(pause).await,
            (outcome, _) => return outcome,
        }
    }
    // More attempts than can be counted.
    call().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest_one() {
        let retry = Retry {
            attempts: 6,
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(5),
        };
        let pauses: Vec<_> = (1..=6).map(|attempt| retry.pause_after(attempt)).collect();
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(
            pauses,
            [
                seconds(1),
                seconds(2),
                seconds(4),
                seconds(5),
                seconds(5),
                None
            ]
        );
        let endless = Retry {
            attempts: u32::MAX,
            ..retry
        };
        assert_eq!(endless.pause_after(1_000), seconds(5));
    }
}
