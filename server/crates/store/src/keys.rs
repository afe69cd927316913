//! Signing keys: the part of the store that keeps them.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::key::{Revocation, StoredKey};

use super::StoreError;

/// Operations on signing keys. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait KeyStore: Send + Sync {
    /// Returns every stored signing key, oldest first.
    async fn list_keys(&self) -> Result<Vec<StoredKey>, StoreError>;

    /// Adds `key` if the newest key is still `after` (`None`: if there is no
    /// key), so that only one of several nodes that rotate at once succeeds.
    /// Returns whether the key was added.
    async fn add_key(
        &self,
        key: StoredKey,
        after: Option<&str>,
        by: By,
    ) -> Result<bool, StoreError>;

    /// Removes keys by their `kid`: those that have left the key set for good.
    async fn remove_keys(&self, kids: &[String]) -> Result<(), StoreError>;

    /// Removes the key `kid` if the newest key is still `after`, and adds `successor` in the same
    /// transaction, so that the platform is never without a signing key. Both are recorded as
    /// events, at `at`.
    async fn revoke_key(
        &self,
        kid: &str,
        successor: Option<StoredKey>,
        after: Option<&str>,
        at: Millis,
        by: By,
    ) -> Result<Revocation, StoreError>;

    /// Replaces private keys, by their `kid`, with their sealed form, and
    /// overwrites the old form. Keys that were removed meanwhile stay removed.
    async fn reseal_keys(&self, keys: Vec<(String, Vec<u8>)>) -> Result<(), StoreError>;

    /// Raises the stored token lifetime of every key to `millis`, where it is
    /// shorter.
    async fn raise_token_life(&self, millis: Millis) -> Result<(), StoreError>;

    /// Returns the secret `name`, which is the same for every server that uses the store.
    /// `proposed` becomes it if there is none.
    async fn shared_secret(&self, name: &str, proposed: [u8; 32]) -> Result<[u8; 32], StoreError>;
}
