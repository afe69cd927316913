//! Signing in: the part of the store that leads browsers to their accounts.

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
    /// - A known identity leads to its account. The guest, if it is still a guest, is merged into
    ///   it: its sessions end, and it never gets a token again.
    /// - A new identity is linked to the guest, which keeps its id. Without a guest, a new account
    ///   is made.
    /// - If the account is suspended, nothing changes.
    /// - A suspended guest stays as it is: another person may be signing in at its browser, so a
    ///   new identity gets an account of its own.
    ///
    /// The session that the browser held ends, and so do all of the guest's, so that a session
    /// which an attacker planted in the browser gives no access.
    async fn complete_sign_in(&self, sign_in: SignIn) -> Result<SignInOutcome, StoreError>;

    /// Returns the identities that are linked to a player, oldest first.
    async fn list_identities(&self, player: Uuid) -> Result<Vec<LinkedIdentity>, StoreError>;
}
