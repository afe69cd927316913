//! The rate limits on guest creation. How many guests an address may have is `Config::guest_cap`.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::platform::shared_limits::{SharedLimiter, SharedLimits};
use crate::web::client_address::Network;
use crate::web::limiter::Rate;

/// The number of games whose limits one network may use in total.
const GAMES: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);

/// How fast guests may be created. Each game has a separate limit per network, so that a game that
/// requests players in a loop does not block other games.
#[derive(Debug)]
pub struct GuestLimits {
    games: SharedLimiter<(Network, Arc<str>)>,
    networks: SharedLimiter<Network>,
}

impl GuestLimits {
    /// Creates the limits; `rate` is that of one network and one game.
    #[must_use]
    pub fn new(rate: &Rate, clock: &Arc<dyn Clock>, shared: &SharedLimits) -> Self {
        let all = Rate {
            count: rate.count.saturating_mul(GAMES),
            burst: rate.burst.saturating_mul(GAMES),
            ..*rate
        };
        Self {
            games: shared.limiter("guests-of-game", rate, clock),
            networks: shared.limiter("guests", &all, clock),
        }
    }

    /// Counts one guest of this network, for the game with this audience.
    ///
    /// # Errors
    /// How long to wait, if a limit is reached.
    pub async fn count(&self, network: Network, audience: &str) -> Result<(), Duration> {
        self.games.count(&(network, audience.into())).await?;
        self.networks.count(&network).await
    }

    /// Removes keys that have been quiet for long enough.
    pub fn sweep(&self) {
        self.games.sweep();
        self.networks.sweep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::web::limiter::Period;

    #[tokio::test]
    async fn a_game_that_asks_in_a_loop_takes_a_tenth_of_its_network() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(1_000_000));
        let limits = GuestLimits::new(
            &Rate::new(60, Period::Minute, 3),
            &clock,
            &SharedLimits::default(),
        );
        let network = Network::of("192.0.2.1".parse().unwrap());
        let made = async |game: &str| {
            let mut made = 0;
            for _ in 0..100 {
                made += usize::from(limits.count(network, game).await.is_ok());
            }
            made
        };
        assert_eq!((made("game:loop").await, made("game:other").await), (3, 3));
        let mut rest = 0;
        for game in 0..20 {
            rest += made(&format!("game:{game}")).await;
        }
        assert_eq!(rest, 24, "all games of a network have a limit too");
        let elsewhere = Network::of("192.0.2.2".parse().unwrap());
        assert!(limits.count(elsewhere, "game:loop").await.is_ok());
    }
}
