//! Signing in: what is stored while a browser is at the provider, and the possible results. Which
//! player a browser has afterwards is decided in `SignInStore::complete_sign_in`.

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
    /// The hash of the `state` parameter.
    #[must_use]
    pub fn of(state: &str) -> Self {
        Self(Sha256::digest(state).into())
    }
}

/// A sign-in that a browser has begun.
#[derive(Clone, PartialEq, Eq)]
pub struct PendingSignIn {
    /// The hash by which it is found when the browser comes back.
    pub state: StateHash,
    /// SHA-256 of the secret of the browser that began it: no other may complete it.
    pub browser: [u8; 32],
    /// The provider's id in the settings.
    pub provider: String,
    /// The nonce that the ID token must contain (OpenID Connect Core 1.0 §3.1.2.1).
    pub nonce: String,
    /// The PKCE code verifier (RFC 7636).
    pub pkce_verifier: String,
    /// The guest that began it. Stored here, because some browsers come back without their cookies.
    pub guest: Option<Uuid>,
    /// The address to which the browser returns.
    pub redirect: String,
    /// When it began.
    pub started_at: Millis,
    /// Whether the provider must ask the player again even if it remembers them: administration
    /// needs a fresh sign-in.
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

/// The result of taking a pending sign-in from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenSignIn {
    /// It was there and was removed: no state is used twice.
    Taken(PendingSignIn),
    /// It belongs to another browser, and stays for that one.
    OtherBrowser,
    /// There is none: it never began, was used already, or is too old.
    Unknown,
}

/// A sign-in whose identity the provider has confirmed.
#[derive(Clone, Debug)]
pub struct SignIn {
    /// The identity.
    pub identity: Identity,
    /// The guest that began it.
    pub guest: Option<Uuid>,
    /// The browser's present session, which ends.
    pub held: Option<SessionHash>,
    /// The browser's new session.
    pub session: SessionHash,
    /// When the player last signed in at the provider.
    pub authenticated_at: Millis,
    /// The id for a new account, if one is made.
    pub new_player: Uuid,
    /// Generated names for it to try, best first.
    pub usernames: Vec<String>,
    /// A valid name that the identity asks for. A new account gets it if it is free, in place of a
    /// generated name.
    pub wished_username: Option<String>,
    /// The origin of the request; `None` in tests.
    pub source: Option<Source>,
    /// Now.
    pub now: Millis,
}

impl SignIn {
    /// The names to try for a new account, best first.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let names = self.wished_username.iter().chain(&self.usernames);
        names.cloned().collect()
    }
}

/// The result of a sign-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignInOutcome {
    /// The identity was new, and the guest became its account.
    Linked(Player),
    /// The identity has an account, and the guest was merged into it.
    Merged {
        /// The account.
        player: Player,
        /// The merged guest, which never gets a token again.
        guest: Uuid,
    },
    /// The identity has an account, and there was no guest to merge.
    Returned(Player),
    /// The identity was new, and got a new account: there was no guest, or a suspended one.
    Created(Player),
    /// The account is suspended. Nothing was changed.
    Suspended {
        /// The reason for the player.
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
