//! The current players of each game.

use async_trait::async_trait;
use platform_protocol::limits::PLAYING_SECONDS;
use uuid::Uuid;

use crate::clock::Millis;
use crate::domain::page::PageId;
use crate::web::api_error::ApiError;

/// The maximum age of a page's last heartbeat for its player to count as playing.
pub const PLAYING_MILLIS: Millis = PLAYING_SECONDS as Millis * 1_000;

/// Why presence could not be recorded or read. In memory this never happens.
#[derive(Debug, thiserror::Error)]
#[error("presence is not available: {0}")]
pub struct LiveError(pub String);

/// The exact last heartbeat of every page of every player, by audience (`game:<slug>`,
/// `game:dev-<slug>`).
///
/// A player counts as playing while one of their pages has a heartbeat that is at most
/// [`PLAYING_MILLIS`] old; a player with three pages counts once.
#[async_trait]
pub trait Presence: Send + Sync + std::fmt::Debug {
    /// Records that `page` shows the game to `player` now. If it showed the game to another player
    /// before, it counts for that player no longer.
    async fn beat(
        &self,
        audience: &str,
        player: Uuid,
        page: PageId,
        now: Millis,
    ) -> Result<(), LiveError>;

    /// Records that `page` was closed, whoever its player was. Returns whether it was known.
    async fn leave(&self, audience: &str, page: PageId) -> Result<bool, LiveError>;

    /// Returns the number of current players.
    async fn playing(&self, audience: &str, now: Millis) -> Result<usize, LiveError>;

    /// Removes pages that no longer count. It must be called from time to time.
    async fn sweep(&self, now: Millis);
}

impl From<LiveError> for ApiError {
    fn from(error: LiveError) -> Self {
        Self::unavailable(&error)
    }
}
