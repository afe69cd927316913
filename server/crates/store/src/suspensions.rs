//! Suspended players: the part of the store that records suspensions.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::player::SuspendedPlayer;
use uuid::Uuid;

use super::StoreError;

/// Operations on suspensions. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait SuspensionStore: Send + Sync {
    /// Suspends a player, or changes the reason of a suspension. Returns
    /// whether the player exists and was not merged into another.
    async fn suspend_player(
        &self,
        player: Uuid,
        reason: Option<&str>,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Lifts a suspension. Returns whether there was one.
    async fn unsuspend_player(&self, player: Uuid, by: By, now: Millis)
    -> Result<bool, StoreError>;

    /// Returns the players who were suspended at `since` or later and still
    /// are, with the guests that were merged into them.
    async fn list_suspended_players(
        &self,
        since: Millis,
    ) -> Result<Vec<SuspendedPlayer>, StoreError>;
}
