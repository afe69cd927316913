//! The current players of each game.

use async_trait::async_trait;
use uuid::Uuid;

use crate::clock::Millis;
use crate::domain::page::PageId;

/// The exact last heartbeat of every page of every player, by audience (`game:<slug>`,
/// `game:dev-<slug>`), by the rules of [`crate::domain::presence`].
///
/// A player counts as playing while one of their pages has a heartbeat that still counts; a player
/// with three pages counts once.
///
/// Nothing here fails: what cannot be known now is `None`. Nothing takes long but a heartbeat that
/// nodes share: no request waits for it.
#[async_trait]
pub trait Presence: Send + Sync + std::fmt::Debug {
    /// Records that `page` shows the game to `player` now. If it showed the game to another player
    /// before, it counts for that player no longer. Returns the time since the player's previous
    /// heartbeat on any node; `None` if only those on this node are known. Only this answer says how
    /// long the player has played since, so it is waited for, for a second.
    async fn beat(&self, audience: &str, player: Uuid, page: PageId, now: Millis)
    -> Option<Millis>;

    /// Records that `page` was closed, whoever its player was. Returns whether it was known.
    async fn leave(&self, audience: &str, page: PageId) -> Option<bool>;

    /// Returns the number of current players.
    async fn playing(&self, audience: &str, now: Millis) -> Option<usize> {
        let playing = self.playing_each(&[audience], now).await;
        playing.first().copied().flatten()
    }

    /// Returns the numbers of current players of several audiences, in their order.
    async fn playing_each(&self, audiences: &[&str], now: Millis) -> Vec<Option<usize>>;

    /// Removes pages that no longer count. It must be called from time to time.
    async fn sweep(&self, now: Millis);

    /// Whether several nodes share it.
    fn is_shared(&self) -> bool;

    /// Whether it can be read now, as far as is known.
    fn is_known(&self) -> bool;
}
