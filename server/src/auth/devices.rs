//! Rate limits for devices that sign in, and for people who type codes.
//!
//! A code that a person can type can be guessed (RFC 8628 §5.1): it has 34 bits and is valid for 15
//! minutes. An account that types ten codes a minute finds one of a thousand waiting codes once in
//! five years.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::clock::Clock;
use crate::platform::shared_limits::{SharedLimiter, SharedLimits};
use crate::web::client_address::Network;
use crate::web::limiter::{Period, Rate};

/// How many sign-ins devices of one network may start. A whole school may share one address.
const BEGIN: Rate = Rate::new(30, Period::Minute, 30);
/// How many requests devices of one network may send, such as a classroom of waiting devices.
const ASK: Rate = Rate::new(20, Period::Second, 200);
/// How many codes one account may look up.
const CODES: Rate = Rate::new(10, Period::Minute, 20);
/// How many codes all accounts in one network may look up together.
const CODES_OF_NETWORK: Rate = Rate::new(60, Period::Minute, 120);

/// The limits.
#[derive(Debug)]
pub struct DeviceLimits {
    begin: SharedLimiter<Network>,
    ask: SharedLimiter<Network>,
    codes: SharedLimiter<Uuid>,
    codes_of_network: SharedLimiter<Network>,
}

impl DeviceLimits {
    /// Creates the limits with this clock.
    #[must_use]
    pub fn new(clock: &Arc<dyn Clock>, shared: &SharedLimits) -> Self {
        Self {
            begin: shared.limiter("device-sign-ins", &BEGIN, clock),
            ask: shared.limiter("device-requests", &ASK, clock),
            codes: shared.limiter("device-codes-of-account", &CODES, clock),
            codes_of_network: shared.limiter("device-codes", &CODES_OF_NETWORK, clock),
        }
    }

    /// Counts a sign-in that a device starts.
    ///
    /// # Errors
    /// How long to wait, if the limit is reached.
    pub async fn begin(&self, network: &Network) -> Result<(), Duration> {
        self.begin.count(network).await
    }

    /// Counts a request of a device for a token, or to end its sign-in.
    ///
    /// # Errors
    /// How long to wait, if the limit is reached.
    pub async fn ask(&self, network: &Network) -> Result<(), Duration> {
        self.ask.count(network).await
    }

    /// Counts a code that a person typed.
    ///
    /// # Errors
    /// How long to wait, if a limit is reached.
    pub async fn look_at_code(&self, player: &Uuid, network: &Network) -> Result<(), Duration> {
        self.codes.count(player).await?;
        self.codes_of_network.count(network).await
    }

    /// Removes keys that have been quiet for long enough.
    pub fn sweep(&self) {
        self.begin.sweep();
        self.ask.sweep();
        self.codes.sweep();
        self.codes_of_network.sweep();
    }
}
