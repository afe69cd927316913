//! A player: a guest at first, an account once an identity is linked.

use uuid::Uuid;

use crate::clock::Millis;

/// A player as the store knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Player {
    /// The player's id, the `sub` of every token.
    pub id: Uuid,
    /// The current display name.
    pub username: String,
    /// Guest, account, merged away or suspended.
    pub state: PlayerState,
    /// When the player was made.
    pub created_at: Millis,
    /// When the player was last here. Kept up to date for guests alone, and
    /// not to the minute: see [`Player::wants_to_be_seen`].
    pub seen_at: Millis,
}

/// What a player is at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlayerState {
    /// No external identity is linked.
    Guest,
    /// At least one external identity is linked.
    Account,
    /// This guest went into another account and can never mint again.
    Merged {
        /// The account that it went into.
        into: Uuid,
    },
    /// The platform suspended this player, guest or account.
    Suspended {
        /// What the player may be told, a sentence.
        reason: Option<String>,
        /// Whether an external identity is linked.
        linked: bool,
    },
}

impl Player {
    /// Whether this use at `now` is worth a write: a guest counts as held by
    /// an address for `idle` after its last use, and that is kept to a 24th.
    #[must_use]
    pub const fn wants_to_be_seen(&self, now: Millis, idle: Millis) -> bool {
        matches!(self.state, PlayerState::Guest) && now - self.seen_at >= idle / 24
    }

    /// The claim `is_anon`: true until an external identity is linked.
    #[must_use]
    pub const fn is_anonymous(&self) -> bool {
        matches!(
            self.state,
            PlayerState::Guest | PlayerState::Suspended { linked: false, .. }
        )
    }
}
