//! Sessions: the part of the store that knows which browser is whose.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::console_token::{Hold, Holder};
use platform_domain::session::{Session, SessionHash, SessionSummary};
use uuid::Uuid;

use super::StoreError;

/// Operations on sessions. [`Store`](super::Store)'s documentation says what every one
/// promises.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// The session of this hash with its player, whether it has ended or not.
    async fn lookup_session(&self, hash: &SessionHash) -> Result<Option<Session>, StoreError>;

    /// Who holds what a token hangs on, if it has not ended at `now`.
    async fn find_holder(&self, hold: &Hold, now: Millis) -> Result<Option<Holder>, StoreError>;

    /// Moves a session's time of renewal forward to `now`.
    async fn renew_session(&self, hash: &SessionHash, now: Millis) -> Result<(), StoreError>;

    /// Ends a session for good, by its browser. Ending an unknown or ended one
    /// changes nothing. A guest without a session is held by no address any
    /// more.
    async fn end_session(&self, hash: &SessionHash, by: By, now: Millis) -> Result<(), StoreError>;

    /// Keeps in which browser a session is, in our own words.
    async fn note_browser(&self, hash: &SessionHash, browser: &str) -> Result<(), StoreError>;

    /// Ends one session of the player's. Answers whether it was theirs and had
    /// not ended.
    async fn end_session_of(
        &self,
        player: Uuid,
        hash: &SessionHash,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Ends the player's sessions but `kept`, and signs out every device of
    /// theirs. Answers how many of both.
    async fn end_other_sessions(
        &self,
        player: Uuid,
        kept: Option<&SessionHash>,
        by: By,
        now: Millis,
    ) -> Result<usize, StoreError>;

    /// The player's sessions that have not ended at `now`, newest use first.
    async fn list_sessions(
        &self,
        player: Uuid,
        now: Millis,
    ) -> Result<Vec<SessionSummary>, StoreError>;

    /// Whose sessions ended at `since` or later, and when the last one of each
    /// player did.
    async fn list_ended_sessions(&self, since: Millis) -> Result<Vec<(Uuid, Millis)>, StoreError>;

    /// Removes the rows of sessions, sign-ins and devices that mean nothing any
    /// more, and of guests whose cookie did not come back, at most `limit` of
    /// each. Answers how many.
    async fn sweep_sessions(&self, now: Millis, limit: usize) -> Result<usize, StoreError>;
}
