//! Deleting a player: how long it can be taken back, and what stays in the player's place.

use uuid::Uuid;

use crate::audit::By;
use crate::clock::Millis;
use crate::session::SessionHash;

/// How long a player can take a deletion back: 14 days.
pub const REGRET_MILLIS: Millis = 14 * 24 * 60 * 60 * 1_000;
/// How long after the operator's command a player is removed: longer than any token of the player
/// can live, so that nothing about the player arrives afterwards.
pub const OPERATORS_MILLIS: Millis = 60 * 60 * 1_000;

/// The id that stands in events for a player who was deleted. No player has it.
pub const DELETED_PLAYER: Uuid = Uuid::nil();

/// A deletion that is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// When it was asked for.
    pub asked_at: Millis,
    /// When the player is removed, unless the deletion is taken back.
    pub at: Millis,
}

/// A request to delete a player.
#[derive(Clone, Debug)]
pub struct AskDeletion {
    /// The player.
    pub player: Uuid,
    /// The session of the browser in which the player asks, and the one that follows it; all others
    /// end. `None` ends all sessions.
    pub browser: Option<(SessionHash, SessionHash)>,
    /// When to remove the player.
    pub at: Millis,
    /// Who asks.
    pub by: By,
    /// Now.
    pub now: Millis,
}

/// What came of a request to delete a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeletionAsked {
    /// The player will be removed. If it was asked for before, the earlier time counts.
    At(Millis),
    /// Nothing was changed: the player owns these projects, which are not deleted.
    Owns(Vec<String>),
    /// There is no such player, or it was merged into an account.
    Unknown,
}

/// A player whose time has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueDeletion {
    /// The player.
    pub player: Uuid,
    /// The guests that were merged into it.
    pub guests: Vec<Uuid>,
}

impl DueDeletion {
    /// Returns every id that the player has or had.
    #[must_use]
    pub fn ids(&self) -> Vec<Uuid> {
        let mut ids = vec![self.player];
        ids.extend(&self.guests);
        ids
    }
}
