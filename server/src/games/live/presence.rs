//! Who is playing, and where.

use async_trait::async_trait;
use platform_protocol::limits::PLAYING_SECONDS;
use uuid::Uuid;

use crate::clock::Millis;
use crate::domain::page::PageId;
use crate::web::api_error::ApiError;

/// How old the last beat of a page may be for its player to count as playing.
pub const PLAYING_MILLIS: Millis = PLAYING_SECONDS as Millis * 1_000;

/// Why presence could not be noted or read. In memory it always can.
#[derive(Debug, thiserror::Error)]
#[error("presence is not available: {0}")]
pub struct LiveError(pub String);

/// Exact last-seen for every page of every player, by audience
/// (`game:<slug>`, `game:dev-<slug>`).
///
/// A player counts as playing while one of their pages has a beat that is at
/// most [`PLAYING_MILLIS`] old: three pages of one player are one.
#[async_trait]
pub trait Presence: Send + Sync + std::fmt::Debug {
    /// Notes that `page` shows the game to `player` now. A page that showed it
    /// to another player before shows it to that one no longer.
    async fn beat(
        &self,
        audience: &str,
        player: Uuid,
        page: PageId,
        now: Millis,
    ) -> Result<(), LiveError>;

    /// Notes that `page` has gone away, whoever it showed the game to. Answers
    /// whether it was known.
    async fn leave(&self, audience: &str, page: PageId) -> Result<bool, LiveError>;

    /// How many players are playing.
    async fn playing(&self, audience: &str, now: Millis) -> Result<usize, LiveError>;

    /// Forgets pages that no longer count. To be called now and then.
    async fn sweep(&self, now: Millis);
}

impl From<LiveError> for ApiError {
    fn from(error: LiveError) -> Self {
        Self::unavailable(&error)
    }
}
