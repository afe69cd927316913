//! Sessions of games that are apart: whose addresses share no site with the auth service, so that
//! its cookie never reaches it from their pages.
//!
//! Such a game has a session cookie of its own address. The session is a child of a session at the
//! auth service, its *parent*: it has the same player, and ends with it. A browser gets it by a
//! *hand-off*: the game sends the browser to the auth service, which sends it back with a code that
//! this browser alone can redeem, once and for this game.
//!
//! A parent may be *blank*: the auth service has set its cookie, but the visitor has not played yet.
//! The first token makes its guest, whose id is known from the beginning.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::session::{COOKIE_AGE, Session, SessionHash, SessionSecret};
use crate::clock::Millis;
use crate::cookie_secret::cookie_secret;

/// How long a code of a hand-off may be redeemed.
pub const HAND_OFF_MILLIS: Millis = 60_000;
/// How long a session of a game is kept whose visitor never played. Anybody can make many of them.
pub const BLANK_MILLIS: Millis = DAY_MILLIS;
/// The maximum number of sessions of one game that come from one session at the auth service: of a
/// tab, and of frames on several other sites.
pub const PER_PARENT: i64 = 16;
/// The age of a session of a game at which its browser is sent over the auth service again, so that
/// its cookie there does not age out while the player plays this game alone.
pub const HAND_OFF_AGAIN_MILLIS: Millis = COOKIE_AGE / 2;

const DAY_MILLIS: Millis = 24 * 60 * 60 * 1_000;

cookie_secret! {
    /// The value of a game's cookie before it is encoded: 256 random bits.
    ///
    /// Never stored and never logged; the store has its [`GameSessionHash`].
    GameSessionSecret, GameSessionHash
}

impl GameSessionSecret {
    /// The session of a guest who plays this game alone, because the browser brought no session from
    /// the auth service. It is derived from the game's cookie and from the game's audience, so that
    /// the cookie means nothing to another game. Scripts of the game can set that cookie, and so know
    /// the session: it must never be that of a player of other games.
    #[must_use]
    pub fn lone_session(&self, audience: &str) -> SessionSecret {
        let hash = Sha256::new()
            .chain_update(b"platform lone game session\0")
            .chain_update(audience)
            .chain_update([0])
            .chain_update(self.0)
            .finalize();
        SessionSecret::from_bytes(hash.into())
    }
}

/// SHA-256 of a [`GameSessionSecret`]: identifies a session, but gives no access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GameSessionHash(pub [u8; 32]);

cookie_secret! {
    /// 256 random bits that a browser carries from one site to the other, in an address.
    ///
    /// Never stored and never logged; the store has its [`HandOffHash`].
    HandOffCode, HandOffHash
}

/// SHA-256 of a [`HandOffCode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HandOffHash(pub [u8; 32]);

/// What a code is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The auth service gives the game a session.
    Play,
    /// The game asks the auth service to end the session from which its own comes.
    SignOut,
}

impl Purpose {
    /// The number in the store.
    #[must_use]
    pub const fn number(self) -> i16 {
        match self {
            Self::Play => 0,
            Self::SignOut => 1,
        }
    }
}

/// A code that may be redeemed.
#[derive(Clone, Debug)]
pub struct HandOff {
    /// The code's hash.
    pub code: HandOffHash,
    /// What it is for.
    pub purpose: Purpose,
    /// The player; the guest-to-be of a blank session.
    pub player: Uuid,
    /// The session at the auth service.
    pub parent: SessionHash,
    /// The audience of the game: one environment of one project.
    pub game: String,
    /// The origin of the game's address.
    pub origin: String,
    /// SHA-256 of the secret that the browser holds, which redeems the code.
    pub state: [u8; 32],
    /// When it was made.
    pub made_at: Millis,
}

/// A request to redeem a code for a session of a game.
#[derive(Clone, Debug)]
pub struct Redemption {
    /// The code's hash.
    pub code: HandOffHash,
    /// The audience of the game that redeems it.
    pub game: String,
    /// The origin of the game that redeems it.
    pub origin: String,
    /// SHA-256 of the secret that the browser holds.
    pub state: [u8; 32],
    /// The game's new session.
    pub session: GameSessionHash,
    /// Now.
    pub now: Millis,
}

/// A session of a game, with its parent, read in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameSession {
    /// The session's hash.
    pub hash: GameSessionHash,
    /// The player; the guest-to-be of a blank session.
    pub player: Uuid,
    /// The session at the auth service.
    pub parent: SessionHash,
    /// The audience of the game.
    pub game: String,
    /// When it began.
    pub created_at: Millis,
    /// When its use was last stored.
    pub used_at: Millis,
    /// That session and its player; `None` if it is blank.
    pub session: Option<Session>,
}

impl GameSession {
    /// Whether it is time for its browser to pass over the auth service again.
    #[must_use]
    pub const fn wants_hand_off(&self, now: Millis) -> bool {
        now - self.created_at >= HAND_OFF_AGAIN_MILLIS
    }
}

/// A game in which a session at the auth service has one of the game's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameOfSession {
    /// The session at the auth service.
    pub parent: SessionHash,
    /// The audience of the game.
    pub game: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_session_belongs_to_one_game_and_reveals_nothing() {
        let cookie = GameSessionSecret::from_bytes([7; 32]);
        let one = cookie.lone_session("game:one");
        assert_eq!(one, cookie.lone_session("game:one"));
        assert_ne!(one, cookie.lone_session("game:other"));
        assert_ne!(one.expose(), cookie.expose());
        assert_ne!(one.hash().0, cookie.hash().0);
        let other = GameSessionSecret::from_bytes([8; 32]);
        assert_ne!(one, other.lone_session("game:one"));
    }
}
