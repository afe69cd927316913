//! Signing in: what is kept while a browser is at the provider, and what comes
//! of it.

use std::fmt;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::audit::Source;
use super::identity::Identity;
use super::player::Player;
use super::session::SessionHash;
use crate::clock::Millis;

/// How long a browser may stay at the provider: 10 minutes.
pub const SIGN_IN_MILLIS: Millis = 10 * 60 * 1_000;

/// SHA-256 of the parameter `state` (RFC 6749 §4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateHash(pub [u8; 32]);

impl StateHash {
    /// The hash of a `state` as it is sent.
    #[must_use]
    pub fn of(state: &str) -> Self {
        Self(Sha256::digest(state).into())
    }
}

/// A sign-in that a browser has begun.
#[derive(Clone, PartialEq, Eq)]
pub struct PendingSignIn {
    /// Names it when the browser comes back.
    pub state: StateHash,
    /// SHA-256 of the secret of the browser that began it: no other may end it.
    pub browser: [u8; 32],
    /// The provider's id in the settings.
    pub provider: String,
    /// What the ID token must say (OpenID Connect Core 1.0 §3.1.2.1).
    pub nonce: String,
    /// What the code is exchanged with (RFC 7636).
    pub pkce_verifier: String,
    /// The guest that began it. Kept here, since some browsers come back
    /// without their cookies.
    pub guest: Option<Uuid>,
    /// Where the browser goes in the end.
    pub redirect: String,
    /// When it began.
    pub started_at: Millis,
    /// Whether the provider has to ask the player, whomever it remembers: for
    /// administration, which wants a fresh sign-in.
    pub again: bool,
}

impl fmt::Debug for PendingSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingSignIn")
            .field("provider", &self.provider)
            .field("guest", &self.guest)
            .field("started_at", &self.started_at)
            .finish_non_exhaustive()
    }
}

/// What became of taking a pending sign-in out of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenSignIn {
    /// It was there, and is there no more: no state is used twice.
    Taken(PendingSignIn),
    /// It is another browser's, and stays there for that one.
    OtherBrowser,
    /// There is none: never begun, used already, or too old.
    Unknown,
}

/// A sign-in whose identity the provider has vouched for.
#[derive(Clone, Debug)]
pub struct SignIn {
    /// Who signed in.
    pub identity: Identity,
    /// The guest that began it.
    pub guest: Option<Uuid>,
    /// The session that the browser came back with. It ends.
    pub held: Option<SessionHash>,
    /// The session that the browser gets.
    pub session: SessionHash,
    /// When the player proved to the provider to be it.
    pub authenticated_at: Millis,
    /// The id of the account, where one has to be made.
    pub new_player: Uuid,
    /// Names for it to try, best first.
    pub usernames: Vec<String>,
    /// Where the browser is; none in a test.
    pub source: Option<Source>,
    /// Now.
    pub now: Millis,
}

/// What a sign-in led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignInOutcome {
    /// The identity was new, and the guest became its account.
    Linked(Player),
    /// The identity has an account, and the guest went into it.
    Merged {
        /// The account.
        player: Player,
        /// The guest that can never mint again.
        guest: Uuid,
    },
    /// The identity has an account, and there was no guest to merge.
    Returned(Player),
    /// The identity was new, and so is its account: there was no guest, or one
    /// that is suspended.
    Created(Player),
    /// The account is suspended. Nothing was changed.
    Suspended {
        /// What the player may be told.
        reason: Option<String>,
    },
}

impl SignInOutcome {
    /// The account that is signed in now.
    #[must_use]
    pub const fn player(&self) -> Option<&Player> {
        match self {
            Self::Linked(player)
            | Self::Merged { player, .. }
            | Self::Returned(player)
            | Self::Created(player) => Some(player),
            Self::Suspended { .. } => None,
        }
    }
}
