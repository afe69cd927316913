//! Guests that were signed out in a browser, and the way back to them. Any game
//! may sign its player out; what the player has must not be gone with that.

use uuid::Uuid;

use super::audit::By;
use super::player::Player;
use super::session::SessionHash;
use crate::clock::Millis;
use crate::cookie_secret::cookie_secret;

/// How long a guest that was signed out can be come back to.
pub const LEFT_MILLIS: Millis = 30 * 24 * 60 * 60 * 1_000;
/// How many of them one browser has. Beyond that those go that were guests for
/// the shortest time, so that a game which signs one guest out after the other
/// does not push out the one that counts.
pub const MOST_LEFT: usize = 200;

cookie_secret! {
    /// 256 random bits that a browser holds beside its session: who has them may go
    /// on as the guests that were signed out there.
    ///
    /// Never stored and never logged; the store has its [`LeftHash`].
    LeftSecret, LeftHash
}

/// SHA-256 of a [`LeftSecret`]: names a browser without opening anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeftHash(pub [u8; 32]);

/// What signing out has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedOut {
    /// Nothing: there is no such session, or it had ended.
    Nothing,
    /// A guest's session. The browser can come back to the guest.
    Guest,
    /// The session of an account, or of a guest that went into one.
    Account,
}

/// A guest that can be come back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftGuest {
    /// Who it is.
    pub player: Player,
    /// When it was signed out.
    pub left_at: Millis,
}

/// Going on as a guest that was signed out.
#[derive(Clone, Debug)]
pub struct Restore {
    /// The browser that asks.
    pub browser: LeftHash,
    /// Who it wants to be.
    pub guest: Uuid,
    /// The session that the browser holds. A guest of it is signed out in its
    /// turn, and can be come back to as well.
    pub held: Option<SessionHash>,
    /// The session that it gets.
    pub session: SessionHash,
    /// The address (IPv4, or IPv6 /64) that it asks from, which holds the guest
    /// from then on.
    pub address: String,
    /// Who does it, and from where, for the log of events.
    pub by: By,
    /// Now.
    pub now: Millis,
}

/// What became of [`Restore`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    /// The browser's session is this guest's.
    Back(Player),
    /// Nothing: the guest or the player whom the browser has now is suspended.
    Suspended {
        /// What they may be told.
        reason: Option<String>,
    },
    /// Nothing: the browser is signed in to an account.
    SignedIn,
    /// Nothing: this browser has no such guest, or not any more.
    NotThere,
}
