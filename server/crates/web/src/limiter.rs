//! Rate limits: a number of events per period, with a burst after a quiet time.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, header};
use governor::clock::Clock as GovernorClock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use platform_protocol::problem::ProblemCode;

use super::api_error::ApiError;
use platform_domain::clock::Clock;

/// How many events are allowed per period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The number of events per period.
    pub count: NonZeroU32,
    /// The period.
    pub period: Period,
    /// The number of events that may happen at once after a quiet time.
    pub burst: NonZeroU32,
}

impl Rate {
    /// Creates a default rate; zero counts as one.
    #[must_use]
    pub const fn new(count: u32, period: Period, burst: u32) -> Self {
        const fn at_least_one(number: u32) -> NonZeroU32 {
            match NonZeroU32::new(number) {
                Some(number) => number,
                None => NonZeroU32::MIN,
            }
        }
        Self {
            count: at_least_one(count),
            period,
            burst: at_least_one(burst),
        }
    }
}

impl Rate {
    /// Returns the time between two events at this rate.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.period.duration() / self.count.get()
    }
}

/// The period of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// `/s`
    Second,
    /// `/m`
    Minute,
    /// `/h`
    Hour,
}

impl Period {
    /// Returns how long it is.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_secs(match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 60 * 60,
        })
    }
}

/// Our clock, as the limiter reads it. It cannot use the time of day: if that were set back by an
/// hour, recent clients would be locked out for an hour.
#[derive(Clone, Debug)]
struct LimiterClock(Arc<dyn Clock>);

impl GovernorClock for LimiterClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Counts events by key: a network, a game.
#[derive(Debug)]
pub struct Limiter<K: Hash + Eq + Clone> {
    limiter: RateLimiter<K, HashMapStateStore<K>, LimiterClock, NoOpMiddleware<Duration>>,
    clock: LimiterClock,
}

impl<K: Hash + Eq + Clone> Limiter<K> {
    /// Creates a limiter with this rate.
    #[must_use]
    pub fn new(rate: &Rate, clock: Arc<dyn Clock>) -> Self {
        let quota = match rate.period {
            Period::Second => Quota::per_second(rate.count),
            Period::Minute => Quota::per_minute(rate.count),
            Period::Hour => Quota::per_hour(rate.count),
        };
        let clock = LimiterClock(clock);
        let limiter = RateLimiter::new(
            quota.allow_burst(rate.burst),
            HashMapStateStore::default(),
            clock.clone(),
        );
        Self { limiter, clock }
    }

    /// Counts one event.
    ///
    /// # Errors
    /// How long to wait, if the limit is reached.
    pub fn count(&self, key: &K) -> Result<(), Duration> {
        self.count_many(key, NonZeroU32::MIN)
    }

    /// Counts `many` events at once: all of them, or none. A number larger than the burst counts as
    /// the burst.
    ///
    /// # Errors
    /// How long to wait, if the limit is reached.
    pub fn count_many(&self, key: &K, many: NonZeroU32) -> Result<(), Duration> {
        let counted = match self.limiter.check_key_n(key, many) {
            Ok(counted) => counted,
            Err(at_once) => match NonZeroU32::new(at_once.0) {
                Some(burst) => self.limiter.check_key_n(key, burst).unwrap_or(Ok(())),
                None => Ok(()),
            },
        };
        counted.map_err(|until| until.wait_time_from(self.clock.now()))
    }

    /// Removes keys that have been quiet for long enough.
    pub fn sweep(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }
}

/// Returns the value of `Retry-After` (RFC 9110 §10.2.3): whole seconds, at least one.
#[must_use]
pub fn retry_after(wait: Duration) -> HeaderValue {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    HeaderValue::from(seconds.max(1))
}

/// Returns a 429 with the waiting time.
#[must_use]
pub fn too_many_requests(wait: Duration) -> ApiError {
    ApiError::new(ProblemCode::TooManyRequests).with_header(header::RETRY_AFTER, retry_after(wait))
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform_domain::clock::ManualClock;

    fn limiter(burst: u32) -> (Limiter<&'static str>, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(1_000_000));
        let rate = Rate {
            count: NonZeroU32::new(60).unwrap(),
            period: Period::Minute,
            burst: NonZeroU32::new(burst).unwrap(),
        };
        (Limiter::new(&rate, clock.clone()), clock)
    }

    #[test]
    fn a_burst_passes_and_then_one_a_second() {
        let (limiter, clock) = limiter(3);
        for _ in 0..3 {
            assert_eq!(limiter.count(&"here"), Ok(()));
        }
        assert_eq!(limiter.count(&"here"), Err(Duration::from_secs(1)));
        assert_eq!(limiter.count(&"there"), Ok(()));
        clock.advance(1_000);
        assert_eq!(limiter.count(&"here"), Ok(()));
        assert!(limiter.count(&"here").is_err());
        limiter.sweep();
        assert!(
            limiter.count(&"here").is_err(),
            "a sweep forgets nobody who is over the limit"
        );
    }

    #[test]
    fn a_clock_that_is_set_back_locks_nobody_out() {
        let (limiter, clock) = limiter(3);
        clock.advance(7_200_000);
        for _ in 0..3 {
            assert_eq!(limiter.count(&"here"), Ok(()));
        }
        clock.advance(-3_600_000);
        assert_eq!(limiter.count(&"here"), Err(Duration::from_secs(1)));
        clock.advance(1_000);
        assert_eq!(limiter.count(&"here"), Ok(()));
    }

    #[test]
    fn many_pass_together_or_not_at_all() {
        let (limiter, clock) = limiter(10);
        let many = |count| limiter.count_many(&"here", NonZeroU32::new(count).unwrap());
        assert_eq!(many(8), Ok(()));
        assert_eq!(many(4), Err(Duration::from_secs(2)));
        assert_eq!(many(2), Ok(()));
        // A number larger than the burst counts as the burst.
        assert!(many(50).is_err());
        clock.advance(10_000);
        assert_eq!(many(50), Ok(()));
        assert!(many(1).is_err());
    }

    #[test]
    fn a_wait_is_told_in_whole_seconds() {
        for (millis, seconds) in [(0, "1"), (1, "1"), (1_000, "1"), (1_001, "2")] {
            assert_eq!(retry_after(Duration::from_millis(millis)), seconds);
        }
    }
}
