//! Guests that were signed out in a browser, and how to restore them. Any game may sign its player
//! out; the player's progress must not be lost by that.

use uuid::Uuid;

use super::audit::By;
use super::player::Player;
use super::session::SessionHash;
use crate::clock::Millis;
use crate::cookie_secret::cookie_secret;

/// How long a guest that was signed out can be restored.
pub const LEFT_MILLIS: Millis = 30 * 24 * 60 * 60 * 1_000;
/// How many such guests one browser keeps. Beyond that, those that were guests for the shortest
/// time are dropped: a game that signs out one guest after another must not push out the player's
/// real one.
pub const MOST_LEFT: usize = 200;

cookie_secret! {
    /// 256 random bits that a browser holds beside its session: its holder may restore the guests
    /// that were signed out there.
    ///
    /// Never stored and never logged; the store has its [`LeftHash`].
    LeftSecret, LeftHash
}

/// SHA-256 of a [`LeftSecret`]: identifies a browser, but gives no access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeftHash(pub [u8; 32]);

/// What signing out has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedOut {
    /// Nothing: there is no such session, or it had already ended.
    Nothing,
    /// A guest's session. The browser can restore the guest.
    Guest,
    /// The session of an account, or of a merged guest.
    Account,
}

/// A guest that can be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftGuest {
    /// The guest.
    pub player: Player,
    /// When it was signed out.
    pub left_at: Millis,
}

/// A request to restore a guest that was signed out.
#[derive(Clone, Debug)]
pub struct Restore {
    /// The browser of the request.
    pub browser: LeftHash,
    /// The guest to restore.
    pub guest: Uuid,
    /// The browser's present session. If it belongs to a guest, that guest is signed out, and can
    /// be restored as well.
    pub held: Option<SessionHash>,
    /// The new session.
    pub session: SessionHash,
    /// The address (IPv4, or IPv6 /64) of the request, for which the guest counts from then on.
    pub address: String,
    /// Who does it and from where, for the log of events.
    pub by: By,
    /// Now.
    pub now: Millis,
}

/// The result of [`Restore`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    /// The browser's session belongs to this guest again.
    Back(Player),
    /// Refused: the guest, or the browser's present player, is suspended.
    Suspended {
        /// The reason for the player.
        reason: Option<String>,
    },
    /// Refused: the browser is signed in to an account.
    SignedIn,
    /// Refused: this browser has no such guest, or no longer.
    NotThere,
}
