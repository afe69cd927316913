//! Suspended players: the part of the store that keeps them out.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::player::SuspendedPlayer;
use uuid::Uuid;

use super::StoreError;

/// Operations on suspensions. [`Store`](super::Store)'s documentation says what every one
/// promises.
#[async_trait]
pub trait SuspensionStore: Send + Sync {
    /// Suspends a player, or changes the reason. Answers whether there is such
    /// a player, and one that was not merged away.
    async fn suspend_player(
        &self,
        player: Uuid,
        reason: Option<&str>,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Lifts a suspension. Answers whether there was one.
    async fn unsuspend_player(&self, player: Uuid, by: By, now: Millis)
    -> Result<bool, StoreError>;

    /// Who is suspended, and has been only since `since`.
    async fn list_suspended_players(
        &self,
        since: Millis,
    ) -> Result<Vec<SuspendedPlayer>, StoreError>;
}
