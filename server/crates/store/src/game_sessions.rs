//! Sessions of games that are apart, and the codes with which browsers get them.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::game_session::{
    GameOfSession, GameSession, GameSessionHash, HandOff, HandOffHash, Redemption,
};
use platform_domain::session::SessionHash;
use uuid::Uuid;

use super::StoreError;

/// Operations on sessions of games. [`Store`](super::Store) documents what every method guarantees.
#[async_trait]
pub trait GameSessionStore: Send + Sync {
    /// Adds a code.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if there is such a code.
    async fn add_hand_off(&self, hand_off: HandOff) -> Result<(), StoreError>;

    /// Redeems a code for a session of a game, in one transaction: the code is gone then. Returns
    /// whether there was such a code, for this game, at this address, for this browser, and made
    /// less than [`HAND_OFF_MILLIS`](platform_domain::game_session::HAND_OFF_MILLIS) ago. The least
    /// recently used sessions of this game with the same parent are removed, if there are more than
    /// [`PER_PARENT`](platform_domain::game_session::PER_PARENT).
    async fn redeem_hand_off(&self, redemption: Redemption) -> Result<bool, StoreError>;

    /// Takes a code with which a game asks to end the session from which its own comes. Returns
    /// that session, if the code is still valid.
    async fn take_sign_out(
        &self,
        code: &HandOffHash,
        now: Millis,
    ) -> Result<Option<SessionHash>, StoreError>;

    /// Returns the session of a game with this hash, and its parent.
    async fn lookup_game_session(
        &self,
        hash: &GameSessionHash,
    ) -> Result<Option<GameSession>, StoreError>;

    /// Returns the guest-to-be of a session at the auth service that is blank: codes or sessions of
    /// games come from it, and it has no player yet.
    async fn find_blank_session(&self, parent: &SessionHash) -> Result<Option<Uuid>, StoreError>;

    /// Returns the games that a player's sessions at the auth service play with a session of the
    /// game's own, each once.
    async fn list_games_of_sessions(&self, player: Uuid) -> Result<Vec<GameOfSession>, StoreError>;

    /// Records that a session of a game is used at `now`, and that its parent has a player if so.
    async fn touch_game_session(
        &self,
        hash: &GameSessionHash,
        now: Millis,
    ) -> Result<(), StoreError>;

    /// Removes all sessions of games and codes that come from a blank session. One with a player
    /// stays as it is.
    async fn end_blank_session(&self, parent: &SessionHash) -> Result<(), StoreError>;

    /// Removes a session of a game. Its parent stays as it is.
    async fn end_game_session(&self, hash: &GameSessionHash) -> Result<(), StoreError>;
}
