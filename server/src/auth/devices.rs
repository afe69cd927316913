//! How often devices may ask to be signed in, and how often people may type
//! the code of one.
//!
//! A code that a person can type can be guessed (RFC 8628 §5.1): it has 34
//! bits and lives for 15 minutes. An account that types ten a minute finds one
//! of a thousand waiting codes once in five years.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::clock::Clock;
use crate::http::client_address::Network;
use crate::http::limiter::{Limiter, Period, Rate};

/// Sign-ins that devices of one network may begin. Behind one address may be a
/// whole school.
const BEGIN: Rate = Rate::new(30, Period::Minute, 30);
/// Questions of the devices of one network: a classroom that waits.
const ASK: Rate = Rate::new(20, Period::Second, 200);
/// Codes that one account may look at.
const CODES: Rate = Rate::new(10, Period::Minute, 20);
/// Codes that all accounts in one network may look at.
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
    /// Limits by this clock.
    #[must_use]
    pub fn new(clock: &Arc<dyn Clock>) -> Self {
        Self {
            begin: Limiter::new(&BEGIN, Arc::clone(clock)),
            ask: Limiter::new(&ASK, Arc::clone(clock)),
            codes: Limiter::new(&CODES, Arc::clone(clock)),
            codes_of_network: Limiter::new(&CODES_OF_NETWORK, Arc::clone(clock)),
        }
    }

    /// Counts a sign-in that a device begins.
    ///
    /// # Errors
    /// How long to wait, where the limit is reached.
    pub fn begin(&self, network: &Network) -> Result<(), Duration> {
        self.begin.count(network)
    }

    /// Counts a question of a device: for a token, or to end its sign-in.
    ///
    /// # Errors
    /// How long to wait, where the limit is reached.
    pub fn ask(&self, network: &Network) -> Result<(), Duration> {
        self.ask.count(network)
    }

    /// Counts a code that a person typed.
    ///
    /// # Errors
    /// How long to wait, where a limit is reached.
    pub fn look_at_code(&self, player: &Uuid, network: &Network) -> Result<(), Duration> {
        self.codes.count(player)?;
        self.codes_of_network.count(network)
    }

    /// Forgets those who have been quiet for long enough.
    pub fn sweep(&self) {
        self.begin.sweep();
        self.ask.sweep();
        self.codes.sweep();
        self.codes_of_network.sweep();
    }
}
