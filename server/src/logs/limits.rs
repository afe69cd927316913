//! The rate limits on received records, per network address and per environment of a project.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::clock::Clock;
use crate::config::Config;
use crate::store::LOG_WRITES;
use crate::web::client_address::Network;
use crate::web::fair_shares::Shares;
use crate::web::limiter::{Limiter, Rate};

/// Players and strangers.
const BOTH: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);

/// The rate limits on records and bytes. Records with a player's token are counted separately from
/// those of strangers, of which anybody can send any number: they must not use up the players'
/// limits.
#[derive(Debug)]
pub struct LogLimits {
    /// For requests with a player's token.
    pub players: LogRates,
    /// For all other requests.
    pub strangers: LogRates,
    /// Requests by network address, before it is known whether they have a token: verifying it
    /// costs something, too.
    pub requests_by_address: Limiter<Network>,
    /// The number of requests per environment (by audience) that wait for the store.
    pub waiting: Shares<Arc<str>>,
}

/// The maximum number of requests of one environment that may wait for the store: an eighth of all,
/// so that no game blocks the others.
pub const WAITING: usize = LOG_WRITES / 8;

/// The rate limits on records and bytes, by sender.
#[derive(Debug)]
pub struct LogRates {
    /// By network address.
    pub by_address: Limiter<Network>,
    /// By environment of a project, as its audience.
    pub by_game: Limiter<Arc<str>>,
    /// Bytes by network address: a hundred records may have 1 kB or 64 kB.
    pub bytes_by_address: Limiter<Network>,
    /// Bytes by environment of a project, as its audience.
    pub bytes_by_game: Limiter<Arc<str>>,
}

impl LogLimits {
    /// Creates the limits of the settings.
    #[must_use]
    pub fn new(config: &Config, clock: &Arc<dyn Clock>) -> Self {
        let rates = || LogRates {
            by_address: Limiter::new(&config.log_rate, Arc::clone(clock)),
            by_game: Limiter::new(&config.log_rate_game, Arc::clone(clock)),
            bytes_by_address: Limiter::new(&config.log_bytes_rate, Arc::clone(clock)),
            bytes_by_game: Limiter::new(&config.log_bytes_rate_game, Arc::clone(clock)),
        };
        // As many requests as both limits allow together, with one record each.
        let requests = Rate {
            count: config.log_rate.count.saturating_mul(BOTH),
            burst: config.log_rate.burst.saturating_mul(BOTH),
            ..config.log_rate
        };
        Self {
            players: rates(),
            strangers: rates(),
            requests_by_address: Limiter::new(&requests, Arc::clone(clock)),
            waiting: Shares::default(),
        }
    }

    /// Removes keys that have been quiet for long enough.
    pub fn sweep(&self) {
        self.requests_by_address.sweep();
        for rates in [&self.players, &self.strangers] {
            rates.by_address.sweep();
            rates.by_game.sweep();
            rates.bytes_by_address.sweep();
            rates.bytes_by_game.sweep();
        }
    }
}
