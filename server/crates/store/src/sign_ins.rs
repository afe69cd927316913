//! Signing in: the part of the store that leads into accounts.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::identity::LinkedIdentity;
use platform_domain::sign_in::{PendingSignIn, SignIn, SignInOutcome, StateHash, TakenSignIn};
use uuid::Uuid;

use super::StoreError;

/// Operations on sign-ins. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait SignInStore: Send + Sync {
    /// Stores a sign-in that a browser has begun.
    async fn add_pending_sign_in(&self, pending: PendingSignIn) -> Result<(), StoreError>;

    /// Removes and returns a pending sign-in, if `browser` began it no more
    /// than [`SIGN_IN_MILLIS`](platform_domain::sign_in::SIGN_IN_MILLIS) before
    /// `now`.
    async fn take_pending_sign_in(
        &self,
        state: &StateHash,
        browser: &[u8; 32],
        now: Millis,
    ) -> Result<TakenSignIn, StoreError>;

    /// Signs an identity in. This is the only way into an account, and the only
    /// place where guests are linked and merged.
    ///
    /// - A known identity leads to its account. The guest, if it is one still,
    ///   is merged into it: its sessions end, and it can never mint again.
    /// - A new identity is linked to the guest, which keeps its id. Without a
    ///   guest an account is made.
    /// - A suspended account changes nothing.
    /// - A guest that is suspended stays as it is: who signs in at its browser
    ///   may be somebody else, and a new identity gets an account of its own.
    ///
    /// The session that the browser held ends, and so do all of the guest's,
    /// so that one that was planted in the browser before opens nothing.
    async fn complete_sign_in(&self, sign_in: SignIn) -> Result<SignInOutcome, StoreError>;

    /// Returns the identities that are linked to a player, oldest first.
    async fn list_identities(&self, player: Uuid) -> Result<Vec<LinkedIdentity>, StoreError>;
}
