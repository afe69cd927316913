//! The limit on deploy tokens that are not valid: each costs a read of the store, and anyone can
//! send them. Tokens that were valid when they were last sent do not count, so that pipelines
//! behind the address of somebody who sends others go on.

use std::sync::Arc;

use moka::sync::Cache;

use crate::clock::Clock;
use crate::domain::device::TokenHash;
use crate::web::api_error::ApiError;
use crate::web::limiter::{Limiter, Period, Rate, too_many_requests};

/// Tokens of a network that are not known to be valid. Each valid one counts once.
const OF_NETWORK: Rate = Rate::new(60, Period::Minute, 120);
/// How many valid tokens are known. Of others, any use counts.
const KNOWN: u64 = 10_000;

/// Limits the look-ups of deploy tokens, on this node.
#[derive(Debug)]
pub struct UnknownTokens {
    of_network: Limiter<String>,
    /// The tokens that were valid when they were last looked up.
    known: Cache<TokenHash, ()>,
}

impl UnknownTokens {
    /// Creates the limit with this clock.
    #[must_use]
    pub fn new(clock: &Arc<dyn Clock>) -> Self {
        Self {
            of_network: Limiter::new(&OF_NETWORK, Arc::clone(clock)),
            known: Cache::new(KNOWN),
        }
    }

    /// Counts a token that a network sent, unless it is known to be valid.
    ///
    /// # Errors
    /// `too-many-requests`
    pub(super) fn count(&self, token: &TokenHash, network: &str) -> Result<(), ApiError> {
        if self.known.contains_key(token) {
            return Ok(());
        }
        let counted = self.of_network.count(&network.to_owned());
        counted.map_err(too_many_requests)
    }

    /// Keeps whether a token was valid.
    pub(super) fn keep(&self, token: TokenHash, is_valid: bool) {
        if is_valid {
            self.known.insert(token, ());
        } else {
            self.known.invalidate(&token);
        }
    }

    /// Removes networks that have been quiet for long enough.
    pub fn sweep(&self) {
        self.of_network.sweep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn a_network_sends_few_unknown_tokens_and_any_number_of_valid_ones() {
        let clock = Arc::new(ManualClock::new(0));
        let unknown = UnknownTokens::new(&(clock.clone() as Arc<dyn Clock>));
        let good = TokenHash([1; 32]);
        let sent = |first: u8, network: &str| {
            let token =
                |second| TokenHash([first, second].repeat(16).try_into().unwrap_or([0; 32]));
            let each = 0..=u8::MAX;
            each.filter(|second| unknown.count(&token(*second), network).is_ok())
                .count()
        };
        assert!(unknown.count(&good, "192.0.2.1").is_ok());
        unknown.keep(good, true);
        assert_eq!(sent(2, "192.0.2.1"), 119);
        assert_eq!(sent(3, "192.0.2.2"), 120);
        assert!(unknown.count(&good, "192.0.2.1").is_ok());
        clock.advance(2_000);
        assert_eq!(sent(4, "192.0.2.1"), 2);
        // A revoked token is one of many.
        unknown.keep(good, false);
        assert!(unknown.count(&good, "192.0.2.1").is_err());
    }
}
