//! Deleting players: the part of the store that knows who asked for it, exports what is known of a
//! player, and removes it.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::deletion::{AskDeletion, Deletion, DeletionAsked, DueDeletion};
use uuid::Uuid;

use super::StoreError;
use super::exports::ExportedSection;

/// Operations on deletions. [`Store`](super::Store) documents what every method guarantees.
#[async_trait]
pub trait DeletionStore: Send + Sync {
    /// Returns everything that the store has of a player, by section
    /// ([`SECTIONS`](super::exports::SECTIONS)); `None` if there is no such player.
    async fn export_player(&self, player: Uuid)
    -> Result<Option<Vec<ExportedSection>>, StoreError>;

    /// Records that a player is to be removed, and ends the player's sessions and devices. A player
    /// who owns a project that is not deleted is refused.
    async fn ask_for_deletion(&self, ask: AskDeletion) -> Result<DeletionAsked, StoreError>;

    /// Takes a deletion back. Returns whether there was one.
    async fn take_deletion_back(
        &self,
        player: Uuid,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Returns the deletion that was asked for.
    async fn find_deletion(&self, player: Uuid) -> Result<Option<Deletion>, StoreError>;

    /// Returns players who are to be removed by now, at most `limit`. Those who were suspended after
    /// it was asked for stay, and so do those who own a project that is not deleted.
    async fn list_due_deletions(
        &self,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<DueDeletion>, StoreError>;

    /// Removes the frontend log records of these players, at most `limit` of them. Returns how
    /// many.
    async fn forget_log_records(
        &self,
        players: Vec<Uuid>,
        limit: usize,
    ) -> Result<usize, StoreError>;

    /// Removes a player who is still due, with the guests that were merged into it, from everything
    /// but log records. Events and what belongs to projects stay without the player. Returns
    /// whether there was one.
    async fn delete_player(&self, player: Uuid, now: Millis) -> Result<bool, StoreError>;

    /// Overwrites what was removed where the back end would otherwise keep it for a while. Returns
    /// whether all of it was; otherwise it must be called again.
    async fn overwrite_removed(&self) -> Result<bool, StoreError>;
}
