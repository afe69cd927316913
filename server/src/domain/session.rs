//! A session: one browser's hold on one player, behind the auth cookie.

use std::fmt;

use sha2::{Digest, Sha256};

use super::player::Player;
use crate::clock::Millis;
use crate::entropy::Entropy;

/// The cookie's value before it is encoded: 256 random bits.
///
/// Never stored and never logged; the store has its [`SessionHash`].
#[derive(Clone, PartialEq, Eq)]
pub struct SessionSecret([u8; 32]);

impl SessionSecret {
    /// A new secret.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        Self(entropy.bytes())
    }

    /// The secret that a cookie carried.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes, for the cookie alone.
    #[must_use]
    pub const fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// What the store keeps in its place.
    #[must_use]
    pub fn hash(&self) -> SessionHash {
        SessionHash(Sha256::digest(self.0).into())
    }
}

impl fmt::Debug for SessionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionSecret(hidden)")
    }
}

/// SHA-256 of a [`SessionSecret`]: names a session without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionHash(pub [u8; 32]);

/// A session with its player, as read in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Which session.
    pub hash: SessionHash,
    /// Who it belongs to.
    pub player: Player,
    /// When it began.
    pub created_at: Millis,
    /// When it was last renewed; moved at most daily.
    pub renewed_at: Millis,
    /// When it was ended: signed out, revoked, or merged away.
    pub ended_at: Option<Millis>,
}

/// A session as its player may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    /// Which session.
    pub hash: SessionHash,
    /// When it began.
    pub created_at: Millis,
    /// When it was last renewed; moved at most daily.
    pub renewed_at: Millis,
}

/// Life of a session without use, and of its cookie: 400 days, the longest
/// that browsers keep a cookie (RFC 6265bis §5.5).
pub const SESSION_MILLIS: Millis = 400 * DAY_MILLIS;
/// How often a session in use is renewed, at most.
pub const RENEW_MILLIS: Millis = DAY_MILLIS;
/// How long the row of a session is kept after its last renewal. A cookie that
/// is unknown makes a new guest, so the row of an account's session outlives
/// the cookie, whatever the browser's clock says.
pub const KEPT_MILLIS: Millis = SESSION_MILLIS + 30 * DAY_MILLIS;

const DAY_MILLIS: Millis = 24 * 60 * 60 * 1_000;

impl Session {
    /// Whether it has ended at `now`, by an act or by age.
    #[must_use]
    pub const fn has_ended(&self, now: Millis) -> bool {
        self.ended_at.is_some() || now - self.renewed_at >= SESSION_MILLIS
    }

    /// Whether its use at `now` is worth a write.
    #[must_use]
    pub const fn wants_renewal(&self, now: Millis) -> bool {
        now - self.renewed_at >= RENEW_MILLIS
    }
}
