//! What the platform says of itself to a game's backend, so that the backend can
//! refuse whoever asks it without the platform: a signed statement, the same for
//! every request of one environment within a minute. A signature a request would
//! cost more than all the rest of forwarding it.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderValue;
use platform_protocol::claims::{ASSERTION_AUDIENCE, ASSERTION_SECONDS, AssertionClaims};

use super::headers::authority;
use crate::auth::keys::KeyRing;
use crate::clock::{Clock, Millis};
use crate::domain::errors::chain;
use crate::games::catalogue::Game;

/// After so long another one is signed: what a backend gets has at least half of
/// its life before it.
const KEPT: Millis = 60 * 1_000;

/// Signs for all backends.
#[derive(Debug)]
pub struct Assertions {
    keys: Arc<KeyRing>,
    clock: Arc<dyn Clock>,
    issuer: String,
}

/// The last assertion for one backend.
#[derive(Debug, Default)]
pub(super) struct LastAssertion(Mutex<Option<Signed>>);

#[derive(Debug)]
struct Signed {
    value: HeaderValue,
    at: Millis,
    /// The key set of that moment: a key may have been taken back since.
    key_set: Arc<str>,
}

impl Assertions {
    /// Assertions of the auth service at `issuer`.
    #[must_use]
    pub fn new(keys: Arc<KeyRing>, clock: Arc<dyn Clock>, issuer: String) -> Self {
        Self {
            keys,
            clock,
            issuer,
        }
    }

    /// The assertion for the backend of `game` now; none if it cannot be signed,
    /// which is not expected, and which a backend that asks for one refuses.
    pub(super) fn of(&self, last: &LastAssertion, game: &Game) -> Option<HeaderValue> {
        let now = self.clock.now();
        let key_set = self.keys.key_set();
        // Whoever comes while another one is being signed waits for a tenth of a
        // millisecond, and signs none.
        let mut last = last.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(signed) = &*last
            && (0..KEPT).contains(&(now - signed.at))
            && Arc::ptr_eq(&signed.key_set, &key_set)
        {
            return Some(signed.value.clone());
        }
        let iat = u64::try_from(now / 1_000).unwrap_or(0);
        let claims = AssertionClaims {
            iss: self.issuer.clone(),
            aud: format!("{ASSERTION_AUDIENCE}{}", game.audience),
            host: authority(game).to_owned(),
            exp: iat.saturating_add(ASSERTION_SECONDS),
            iat,
        };
        let signed = self.keys.sign_assertion(&claims);
        let signed =
            signed.inspect_err(|error| tracing::error!(error = chain(error), "not signed"));
        let value = HeaderValue::try_from(signed.ok()?).ok()?;
        *last = Some(Signed {
            value: value.clone(),
            at: now,
            key_set,
        });
        Some(value)
    }
}
