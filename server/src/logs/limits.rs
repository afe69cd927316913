//! The rate limits on received records, per network address and per environment of a project. All
//! nodes share them.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::clock::Clock;
use crate::config::Config;
use crate::platform::credit_limits::CreditLimiter;
use crate::platform::shared_limits::SharedLimits;
use crate::store::LOG_WRITES;
use crate::web::client_address::Network;
use crate::web::fair_shares::Shares;
use crate::web::limiter::Rate;

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
    pub requests_by_address: CreditLimiter<Network>,
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
    pub by_address: CreditLimiter<Network>,
    /// By environment of a project, as its audience.
    pub by_game: CreditLimiter<Arc<str>>,
    /// Bytes by network address: a hundred records may have 1 kB or 64 kB.
    pub bytes_by_address: CreditLimiter<Network>,
    /// Bytes by environment of a project, as its audience.
    pub bytes_by_game: CreditLimiter<Arc<str>>,
}

/// The names of the limits of one kind of sender: no two limits have the same.
struct Names {
    by_address: &'static str,
    by_game: &'static str,
    bytes_by_address: &'static str,
    bytes_by_game: &'static str,
}

const OF_PLAYERS: Names = Names {
    by_address: "log-records-player-address",
    by_game: "log-records-player-game",
    bytes_by_address: "log-bytes-player-address",
    bytes_by_game: "log-bytes-player-game",
};
const OF_STRANGERS: Names = Names {
    by_address: "log-records-stranger-address",
    by_game: "log-records-stranger-game",
    bytes_by_address: "log-bytes-stranger-address",
    bytes_by_game: "log-bytes-stranger-game",
};

impl LogLimits {
    /// Creates the limits of the settings.
    #[must_use]
    pub fn new(config: &Config, clock: &Arc<dyn Clock>, shared: &SharedLimits) -> Self {
        let rates = |names: &Names| LogRates {
            by_address: CreditLimiter::new(shared, names.by_address, &config.log_rate, clock),
            by_game: CreditLimiter::new(shared, names.by_game, &config.log_rate_game, clock),
            bytes_by_address: CreditLimiter::new(
                shared,
                names.bytes_by_address,
                &config.log_bytes_rate,
                clock,
            ),
            bytes_by_game: CreditLimiter::new(
                shared,
                names.bytes_by_game,
                &config.log_bytes_rate_game,
                clock,
            ),
        };
        // As many requests as both limits allow together, with one record each.
        let requests = Rate {
            count: config.log_rate.count.saturating_mul(BOTH),
            burst: config.log_rate.burst.saturating_mul(BOTH),
            ..config.log_rate
        };
        Self {
            players: rates(&OF_PLAYERS),
            strangers: rates(&OF_STRANGERS),
            requests_by_address: CreditLimiter::new(
                shared,
                "log-requests-address",
                &requests,
                clock,
            ),
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
