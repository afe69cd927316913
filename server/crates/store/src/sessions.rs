//! Sessions: the part of the store that links browsers to players.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::console_token::{Hold, Holder};
use platform_domain::session::{Session, SessionHash, SessionSummary};
use uuid::Uuid;

use super::StoreError;

/// Operations on sessions. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Returns the session of this hash with its player, whether it has ended
    /// or not.
    async fn lookup_session(&self, hash: &SessionHash) -> Result<Option<Session>, StoreError>;

    /// Returns the player who holds the session or device that a token depends
    /// on, unless that has ended at `now`.
    async fn find_holder(&self, hold: &Hold, now: Millis) -> Result<Option<Holder>, StoreError>;

    /// Sets a session's time of renewal to `now`, if that is later.
    async fn renew_session(&self, hash: &SessionHash, now: Millis) -> Result<(), StoreError>;

    /// Ends a session at the request of its browser. An unknown or ended session stays as it is. A
    /// guest without a session no longer counts for its address.
    async fn end_session(&self, hash: &SessionHash, by: By, now: Millis) -> Result<(), StoreError>;

    /// Stores a short description of the browser that has a session.
    async fn note_browser(&self, hash: &SessionHash, browser: &str) -> Result<(), StoreError>;

    /// Ends one session of a player. Returns whether the session was the
    /// player's and had not ended.
    async fn end_session_of(
        &self,
        player: Uuid,
        hash: &SessionHash,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Ends all sessions of a player except `kept`, and signs out all devices
    /// of the player. Returns the number of sessions and devices together.
    async fn end_other_sessions(
        &self,
        player: Uuid,
        kept: Option<&SessionHash>,
        by: By,
        now: Millis,
    ) -> Result<usize, StoreError>;

    /// Returns the player's sessions that have not ended at `now`. The session
    /// with the latest use comes first.
    async fn list_sessions(
        &self,
        player: Uuid,
        now: Millis,
    ) -> Result<Vec<SessionSummary>, StoreError>;

    /// Returns the players whose sessions ended at `since` or later, each with
    /// the time of the last end.
    async fn list_ended_sessions(&self, since: Millis) -> Result<Vec<(Uuid, Millis)>, StoreError>;

    /// Removes expired sessions, sign-ins and devices, and guests whose cookie
    /// did not come back, at most `limit` of each. Returns the number of
    /// removed rows.
    async fn sweep_sessions(&self, now: Millis, limit: usize) -> Result<usize, StoreError>;
}
