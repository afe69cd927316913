//! Rate limits for devices that sign in, and for people who type codes.
//!
//! A code that a person can type can be guessed (RFC 8628 §5.1): it has 34 bits and is valid for 15
//! minutes. An account that types ten codes a minute finds one of a thousand waiting codes once in
//! five years.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::clock::Clock;
use crate::web::client_address::Network;
use crate::web::limiter::{Limiter, Period, Rate};

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
    begin: Limiter<Network>,
    ask: Limiter<Network>,
    codes: Limiter<Uuid>,
    codes_of_network: Limiter<Network>,
}

impl DeviceLimits {
    /// Creates the limits with this clock.
    #[must_use]
    pub fn new(clock: &Arc<dyn Clock>) -> Self {
        Self {
            begin: Limiter::new(&BEGIN, Arc::clone(clock)),
            ask: Limiter::new(&ASK, Arc::clone(clock)),
            codes: Limiter::new(&CODES, Arc::clone(clock)),
            codes_of_network: Limiter::new(&CODES_OF_NETWORK, Arc::clone(clock)),
        }
    }

    /// Counts a sign-in that a device starts.
    ///
    /// # Errors
    /// How long to wait, if the limit is reached.
    pub fn begin(&self, network: &Network) -> Result<(), Duration> {
        self.begin.count(network)
    }

    /// Counts a request of a device for a token, or to end its sign-in.
    ///
    /// # Errors
    /// How long to wait, if the limit is reached.
    pub fn ask(&self, network: &Network) -> Result<(), Duration> {
        self.ask.count(network)
    }

    /// Counts a code that a person typed.
    ///
    /// # Errors
    /// How long to wait, if a limit is reached.
    pub fn look_at_code(&self, player: &Uuid, network: &Network) -> Result<(), Duration> {
        self.codes.count(player)?;
        self.codes_of_network.count(network)
    }

    /// Removes keys that have been quiet for long enough.
    pub fn sweep(&self) {
        self.begin.sweep();
        self.ask.sweep();
        self.codes.sweep();
        self.codes_of_network.sweep();
    }
}
