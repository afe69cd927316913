//! Guests that were signed out: the part of the store that lets their browser restore them.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::left_guest::{LeftGuest, LeftHash, Restore, Restored, SignedOut};
use platform_domain::session::SessionHash;

use super::StoreError;

/// Operations on guests that were signed out. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait LeftGuestStore: Send + Sync {
    /// Ends a session because its browser signs out. A guest then no longer
    /// counts for its address. It keeps its name, and `browser` can restore it
    /// for [`LEFT_MILLIS`](platform_domain::left_guest::LEFT_MILLIS).
    async fn sign_out(
        &self,
        session: &SessionHash,
        browser: &LeftHash,
        by: By,
        now: Millis,
    ) -> Result<SignedOut, StoreError>;

    /// Returns the guests that this browser can restore at `now`, at most
    /// `limit`. The guest that existed for the longest time before it signed
    /// out comes first.
    async fn list_left_guests(
        &self,
        browser: &LeftHash,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<LeftGuest>, StoreError>;

    /// Restores a guest that was signed out as the player of its browser, with
    /// a new session. Another guest that the browser has by then is signed out.
    async fn restore_guest(&self, restore: Restore) -> Result<Restored, StoreError>;
}
