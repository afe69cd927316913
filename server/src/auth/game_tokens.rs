//! Signs game tokens, and verifies them with the rules of the verifier for games, against the
//! currently published keys.
//!
//! A page sends the same token with every request for minutes, so verified tokens are cached: a
//! token is verified once, and not at every request. A token that this process has signed itself is
//! cached at once, since verifying a signature takes three times as long as making one. It is cached
//! as long as the key set stays the same. After a key was revoked, its tokens are rejected, and all
//! others are verified once more.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use platform_protocol::claims::{ConsoleTokenClaims, GameTokenClaims};
use platform_protocol::limits::CLOCK_LEEWAY_SECONDS;
use platform_protocol::names::CONSOLE_AUDIENCE;
use platform_verifier::{Credentials, Expected, KeySet, VerifyError, bearer, check};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::auth::keys::{KeyError, KeyRing};
use crate::clock::{Clock, Millis};
use crate::domain::console_token::{Hold, may_administer};
use crate::domain::token_id;

/// A verified token: only the claims that are needed, since as many are cached as there are players.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedToken {
    /// The player, `sub`.
    pub player: Uuid,
    /// The player's name, `username`.
    pub username: Box<str>,
    /// Whether the player is a guest, `is_anon`.
    pub is_guest: bool,
    /// For whom it is, `aud`.
    pub audience: Arc<str>,
    /// Whether heartbeats with it count, as its id says.
    pub counts: bool,
    /// When it was issued, `iat`, in Unix seconds.
    pub issued_at: u64,
    /// When it expires, `exp`, in Unix seconds.
    pub expires_at: u64,
    /// The additional claims of a console token; `None` for a game's.
    pub console: Option<ConsoleRights>,
}

impl VerifiedToken {
    /// Keeps what is needed of a token's claims.
    fn new(player: Uuid, audience: Arc<str>, claims: GameTokenClaims) -> Self {
        Self {
            player,
            username: claims.username.into(),
            is_guest: claims.is_anon,
            audience,
            counts: token_id::counts(&claims.jti),
            issued_at: claims.iat,
            expires_at: claims.exp,
            console: None,
        }
    }
}

/// The additional claims of a console token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsoleRights {
    /// The session or device that it depends on.
    pub hold: Hold,
    /// Whether it allows administration, if its player is an administrator.
    pub may_administer: bool,
}

impl ConsoleRights {
    /// Reads the rights from a token whose signature and claims are valid.
    fn of(token: &str) -> Result<Self, VerifyError> {
        let payload = token.split('.').nth(1).unwrap_or_default();
        let claims: Option<ConsoleTokenClaims> = URL_SAFE_NO_PAD
            .decode(payload)
            .ok()
            .and_then(|payload| serde_json::from_slice(&payload).ok());
        let claims = claims.ok_or(VerifyError::Claim("scope"))?;
        Ok(Self {
            hold: Hold::of(&claims).ok_or(VerifyError::Claim("sid"))?,
            may_administer: may_administer(&claims),
        })
    }
}

/// A parsed key set, and the document from which it was parsed.
#[derive(Debug)]
struct Published {
    document: Arc<str>,
    keys: KeySet,
}

/// Signs and verifies game tokens of this platform.
#[derive(Debug)]
pub struct GameTokens {
    ring: Arc<KeyRing>,
    clock: Arc<dyn Clock>,
    issuer: String,
    published: ArcSwapOption<Published>,
    /// The keys are the tokens' SHA-256, so that reading the memory reveals no token.
    verified: Cache<[u8; 32], Remembered>,
}

/// A verified token, and the key set with which it was verified: a key may have been revoked since.
#[derive(Clone, Debug)]
struct Remembered {
    document: Arc<str>,
    token: Arc<VerifiedToken>,
}

/// Returns when the oldest token that may still be valid was issued, if each is valid for
/// `token_seconds`.
#[must_use]
pub fn oldest(token_seconds: u64, now: Millis) -> Millis {
    let life = token_seconds.saturating_add(CLOCK_LEEWAY_SECONDS);
    now - Millis::try_from(life).unwrap_or(Millis::MAX / 1_000) * 1_000
}

impl GameTokens {
    /// Creates it for tokens that `ring` signs for `issuer`. At most `most` are cached; beyond that,
    /// those that were used least recently are verified again.
    #[must_use]
    pub fn new(ring: Arc<KeyRing>, clock: Arc<dyn Clock>, issuer: String, most: u64) -> Self {
        Self {
            ring,
            clock,
            issuer,
            published: ArcSwapOption::empty(),
            verified: Cache::builder()
                .max_capacity(most)
                // Tokens expire and are never used again, however often they were used.
                .eviction_policy(EvictionPolicy::lru())
                .build(),
        }
    }

    /// Returns a signed game token of `player` for `audience`, which is also in its claims, and caches
    /// it.
    ///
    /// # Errors
    /// As [`KeyRing::sign`].
    pub fn sign(
        &self,
        player: Uuid,
        audience: Arc<str>,
        claims: GameTokenClaims,
    ) -> Result<String, KeyError> {
        // Read before the key is chosen: if the key set changes in between, the token is verified.
        let document = self.ring.key_set();
        let token = self.ring.sign(&claims)?;
        let verified = VerifiedToken::new(player, audience, claims);
        let remembered = Remembered {
            document,
            token: Arc::new(verified),
        };
        self.verified
            .insert(Sha256::digest(&token).into(), remembered);
        Ok(token)
    }

    /// Returns the verified token of a request's `Authorization` header, if there is one for
    /// `audience`.
    #[must_use]
    pub fn of(&self, headers: &HeaderMap, audience: &str) -> Option<Arc<VerifiedToken>> {
        let Credentials::Token(token) = bearer(headers) else {
            return None;
        };
        self.verify(token, audience)
            .inspect_err(|error| tracing::debug!(%error, "refused a token"))
            .ok()
    }

    /// Whether a request has a token that is not cached, so that it must be verified, which is more
    /// expensive than most requests.
    #[must_use]
    pub fn are_new(&self, headers: &HeaderMap) -> bool {
        match bearer(headers) {
            Credentials::Token(token) => {
                let hash: [u8; 32] = Sha256::digest(token).into();
                self.remembered(&hash).is_none()
            }
            _ => false,
        }
    }

    /// Verifies a token for `audience`.
    ///
    /// # Errors
    /// The first check that failed.
    pub fn verify(&self, token: &str, audience: &str) -> Result<Arc<VerifiedToken>, VerifyError> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        let now = u64::try_from(self.clock.now()).unwrap_or(0) / 1_000;
        if let Some(known) = self.remembered(&hash) {
            // The things that may have changed since: the time, and the audience.
            return if *known.audience != *audience {
                Err(VerifyError::Audience)
            } else if now >= known.expires_at.saturating_add(CLOCK_LEEWAY_SECONDS) {
                self.verified.invalidate(&hash);
                Err(VerifyError::Expired)
            } else {
                Ok(known)
            };
        }
        let expected = Expected {
            issuer: &self.issuer,
            audience,
            now,
        };
        let published = self.published()?;
        let claims = check(token, &published.keys, expected)?;
        let player = claims.sub.parse().map_err(|_| VerifyError::Claim("sub"))?;
        let console = (audience == CONSOLE_AUDIENCE)
            .then(|| ConsoleRights::of(token))
            .transpose()?;
        let verified = Arc::new(VerifiedToken {
            console,
            ..VerifiedToken::new(player, audience.into(), claims)
        });
        let remembered = Remembered {
            document: Arc::clone(&published.document),
            token: Arc::clone(&verified),
        };
        self.verified.insert(hash, remembered);
        Ok(verified)
    }

    /// Returns the cached token with this hash, if it was verified by the keys that are published.
    fn remembered(&self, hash: &[u8; 32]) -> Option<Arc<VerifiedToken>> {
        let remembered = self.verified.get(hash)?;
        let current = Arc::ptr_eq(&remembered.document, &self.ring.key_set());
        current.then_some(remembered.token)
    }

    /// Returns the published keys, parsed once for each document.
    fn published(&self) -> Result<Arc<Published>, VerifyError> {
        let document = self.ring.key_set();
        if let Some(published) = self.published.load_full()
            && Arc::ptr_eq(&published.document, &document)
        {
            return Ok(published);
        }
        let keys = KeySet::parse(document.as_bytes()).map_err(VerifyError::KeySet)?;
        let published = Arc::new(Published { document, keys });
        self.published.store(Some(Arc::clone(&published)));
        Ok(published)
    }
}

#[cfg(test)]
mod tests;
