//! The rate limit on guest creation. How many guests an address may have is `Config::guest_cap`.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::platform::shared_limits::{SharedLimiter, SharedLimits};
use crate::web::client_address::Network;
use crate::web::limiter::Rate;

/// The longest time to wait that a response names. The runtime waits no longer.
const LONGEST_WAIT_INTERVAL: Duration = Duration::from_secs(30);

/// How fast guests may be created, per network.
///
/// A class that opens its first game at the same moment is refused in part, and each page asks once
/// more. If all were told to wait as long, nearly all would be refused again. So each of them is told
/// to wait until it is its turn.
#[derive(Debug)]
pub struct GuestLimits {
    networks: SharedLimiter<Network>,
    shared: SharedLimits,
    clock: Arc<dyn Clock>,
    /// The time between two guests at the limit's rate.
    interval: Duration,
    /// The time that was named last for each network.
    turns: Mutex<HashMap<Network, Duration>>,
}

impl GuestLimits {
    /// Creates the limit; `rate` is that of one network.
    #[must_use]
    pub fn new(rate: &Rate, clock: &Arc<dyn Clock>, shared: &SharedLimits) -> Self {
        Self {
            networks: shared.limiter("guests", rate, clock),
            shared: shared.clone(),
            clock: Arc::clone(clock),
            interval: rate.interval(),
            turns: Mutex::default(),
        }
    }

    /// Counts one guest of this network.
    ///
    /// # Errors
    /// How long to wait, if the limit is reached.
    pub async fn count(&self, network: Network) -> Result<(), Duration> {
        let counted = self.networks.count(&network).await;
        counted.map_err(|wait| self.turn(network, wait))
    }

    /// Returns how long to wait until it is the turn of one more page of this network, if the next one
    /// must wait for `wait`.
    fn turn(&self, network: Network, wait: Duration) -> Duration {
        let now = self.clock.elapsed();
        // Each node names times of its own, and all of them share the rate.
        let nodes = 1 + self.shared.other_nodes().map_or(0, NonZeroU32::get);
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = match turns.get(&network) {
            Some(last) => (*last + self.interval * nodes).max(now + wait),
            None => now + wait,
        };
        let turn = turn.min(now + wait.max(LONGEST_WAIT_INTERVAL));
        turns.insert(network, turn);
        turn - now
    }

    /// Removes keys that have been quiet for long enough.
    pub fn sweep(&self) {
        self.networks.sweep();
        let now = self.clock.elapsed();
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| *turn > now);
        turns.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::web::limiter::Period;

    #[tokio::test]
    async fn pages_that_are_refused_together_are_let_in_one_after_the_other() {
        let manual = Arc::new(ManualClock::new(1_000_000));
        let clock: Arc<dyn Clock> = manual.clone();
        let limits = GuestLimits::new(
            &Rate::new(60, Period::Minute, 3),
            &clock,
            &SharedLimits::default(),
        );
        let network = |address: &str| Network::of(address.parse().unwrap());
        let here = network("192.0.2.1");
        let mut waits = Vec::new();
        for _ in 0..43 {
            waits.extend(limits.count(here).await.err());
        }
        assert_eq!(waits.len(), 40);
        for (turn, wait) in waits.iter().enumerate() {
            let seconds = (turn as u64 + 1).min(30);
            assert_eq!(*wait, Duration::from_secs(seconds), "turn {turn}");
        }
        assert!(limits.count(network("192.0.2.2")).await.is_ok());
        // Each of them is let in when it is its turn.
        for _ in 0..30 {
            manual.advance(1_000);
            assert_eq!(limits.count(here).await, Ok(()));
        }
        limits.sweep();
        assert!(limits.turns.lock().unwrap().is_empty());
        assert_eq!(limits.count(here).await, Err(Duration::from_secs(1)));
    }
}
