//! Files in a file store that several nodes share: the part of the store that says which of them a
//! deploy uses and which of them a sweep removes, so that no node removes what another one deploys.
//!
//! A deploy touches its files before it stores them. A sweep claims files that no deployment has
//! and that were not touched for [`UNUSED_FILES_STAY`], removes them, and then forgets them. A
//! claimed file cannot be touched until it is forgotten or the claim has expired.

use async_trait::async_trait;
use platform_domain::clock::Millis;

use super::StoreError;

/// How long a file stays after it was last touched, in milliseconds: much longer than any deploy
/// takes, and than the clocks of two nodes differ.
pub const UNUSED_FILES_STAY: Millis = 24 * 3_600 * 1_000;

/// How long a claim holds, in milliseconds. The sweep that has it must have sent its last request
/// long before, and its clock may be slow.
pub const CLAIM_HOLDS: Millis = 120 * 1_000;

/// Operations on the files of a shared file store. [`Store`](super::Store) documents what every
/// method guarantees. Names that are no SHA-256 in hex are ignored.
#[async_trait]
pub trait StoredFileStore: Send + Sync {
    /// Records that a deploy is about to use `files`, so that no sweep claims them. Returns those
    /// that a sweep is removing at this moment: they are not recorded.
    async fn touch_files(&self, files: Vec<String>, now: Millis)
    -> Result<Vec<String>, StoreError>;

    /// Records the files of deployments that were never touched, because their deployments came
    /// from a backup or from another file store. Returns how many.
    async fn adopt_files(&self, now: Millis) -> Result<u64, StoreError>;

    /// Claims at most `limit` files that no deployment has and that may go. Returns them; no other
    /// claim has them at the same time.
    async fn claim_unused_files(
        &self,
        limit: usize,
        now: Millis,
    ) -> Result<Vec<String>, StoreError>;

    /// Forgets files that were removed from the file store, as far as the claim of `claimed_at`
    /// still holds.
    async fn forget_files(&self, files: Vec<String>, claimed_at: Millis) -> Result<(), StoreError>;
}
