//! The edge limit on guest creation: so many new guests from one address in a
//! time. Existing players are never counted.

use std::sync::Arc;
use std::time::Duration;

use governor::clock::Clock as GovernorClock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

use super::client_address::Network;
use crate::clock::Clock;
use crate::config::{GuestRate, Period};

/// Our clock, as the limiter reads it: time since the epoch.
#[derive(Clone, Debug)]
struct LimiterClock(Arc<dyn Clock>);

impl GovernorClock for LimiterClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.now()).unwrap_or(0))
    }
}

/// Counts new guests by network.
#[derive(Debug)]
pub struct GuestLimiter {
    limiter:
        RateLimiter<Network, DashMapStateStore<Network>, LimiterClock, NoOpMiddleware<Duration>>,
    clock: LimiterClock,
}

impl GuestLimiter {
    /// A limiter of this rate.
    #[must_use]
    pub fn new(rate: &GuestRate, clock: Arc<dyn Clock>) -> Self {
        let quota = match rate.period {
            Period::Second => Quota::per_second(rate.count),
            Period::Minute => Quota::per_minute(rate.count),
            Period::Hour => Quota::per_hour(rate.count),
        };
        let clock = LimiterClock(clock);
        let limiter = RateLimiter::new(
            quota.allow_burst(rate.burst),
            DashMapStateStore::default(),
            clock.clone(),
        );
        Self { limiter, clock }
    }

    /// Counts one new guest.
    ///
    /// # Errors
    /// How long to wait, where the limit is reached.
    pub fn count(&self, network: Network) -> Result<(), Duration> {
        self.limiter
            .check_key(&network)
            .map_err(|until| until.wait_time_from(self.clock.now()))
    }

    /// Forgets networks that have been quiet for long enough.
    pub fn sweep(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use std::num::NonZeroU32;

    #[test]
    fn a_burst_passes_and_then_one_a_second() {
        let clock = Arc::new(ManualClock::new(1_000_000));
        let rate = GuestRate {
            count: NonZeroU32::new(60).unwrap(),
            period: Period::Minute,
            burst: NonZeroU32::new(3).unwrap(),
        };
        let limiter = GuestLimiter::new(&rate, clock.clone());
        let here = Network::of("192.0.2.1".parse().unwrap());
        for _ in 0..3 {
            assert_eq!(limiter.count(here), Ok(()));
        }
        assert_eq!(limiter.count(here), Err(Duration::from_secs(1)));
        assert_eq!(
            limiter.count(Network::of("192.0.2.2".parse().unwrap())),
            Ok(())
        );
        clock.advance(1_000);
        assert_eq!(limiter.count(here), Ok(()));
        assert!(limiter.count(here).is_err());
        limiter.sweep();
        assert!(
            limiter.count(here).is_err(),
            "a sweep forgets nobody who is over the limit"
        );
    }
}
