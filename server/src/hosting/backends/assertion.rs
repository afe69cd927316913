//! The signed statement with which a game's backend can reject requests that did not come through
//! the platform. It is the same for all requests of one environment within a minute, since a
//! signature per request would cost more than everything else about forwarding.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderValue;
use platform_protocol::claims::{ASSERTION_AUDIENCE, ASSERTION_SECONDS, AssertionClaims};

use super::headers::authority;
use crate::auth::keys::KeyRing;
use crate::clock::{Clock, Millis};
use crate::domain::errors::chain;
use crate::games::catalogue::Game;

/// After this time a new one is signed, so that a statement is valid for at least half of its
/// lifetime when it is sent.
const KEPT: Millis = 60 * 1_000;

/// Signs the statements for all backends.
#[derive(Debug)]
pub struct Assertions {
    keys: Arc<KeyRing>,
    clock: Arc<dyn Clock>,
    issuer: String,
}

/// The last statement for one backend.
#[derive(Debug, Default)]
pub(super) struct LastAssertion(Mutex<Option<Signed>>);

#[derive(Debug)]
struct Signed {
    value: HeaderValue,
    at: Millis,
    /// The key set at that time: a key may have been revoked since.
    key_set: Arc<str>,
}

impl Assertions {
    /// Creates a signer of statements with the auth service at `issuer` as the issuer.
    #[must_use]
    pub fn new(keys: Arc<KeyRing>, clock: Arc<dyn Clock>, issuer: String) -> Self {
        Self {
            keys,
            clock,
            issuer,
        }
    }

    /// Returns the current statement for the backend of `game`, or `None` if it cannot be signed.
    /// This does not happen in practice; a backend that requires the statement then rejects the
    /// request.
    pub(super) fn of(&self, last: &LastAssertion, game: &Game) -> Option<HeaderValue> {
        let now = self.clock.now();
        let key_set = self.keys.key_set();
        // Other requests wait for a tenth of a millisecond while a statement is signed.
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
