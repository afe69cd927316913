//! Guests that were signed out: the part of the store that lets their browser
//! come back to them.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::left_guest::{LeftGuest, LeftHash, Restore, Restored, SignedOut};
use platform_domain::session::SessionHash;

use super::StoreError;

/// Operations on guests that were signed out. [`Store`](super::Store)'s
/// documentation says what every one promises.
#[async_trait]
pub trait LeftGuestStore: Send + Sync {
    /// Ends a session because its browser signs out. A guest is held by no
    /// address from then on; it keeps its name, and `browser` can come back to
    /// it for [`LEFT_MILLIS`](platform_domain::left_guest::LEFT_MILLIS).
    async fn sign_out(
        &self,
        session: &SessionHash,
        browser: &LeftHash,
        by: By,
        now: Millis,
    ) -> Result<SignedOut, StoreError>;

    /// The guests that this browser can come back to at `now`, those first that
    /// were guests for the longest time, at most `limit`.
    async fn list_left_guests(
        &self,
        browser: &LeftHash,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<LeftGuest>, StoreError>;

    /// Makes a guest that was signed out the player of its browser again, with
    /// a new session. A guest whom the browser has meanwhile is signed out.
    async fn restore_guest(&self, restore: Restore) -> Result<Restored, StoreError>;
}
