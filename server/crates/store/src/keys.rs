//! Signing keys: the part of the store that keeps them.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::key::{Revocation, StoredKey};

use super::StoreError;

/// Operations on signing keys. [`Store`](super::Store)'s documentation says what every one
/// promises.
#[async_trait]
pub trait KeyStore: Send + Sync {
    /// Every signing key that is not forgotten yet, oldest first.
    async fn list_keys(&self) -> Result<Vec<StoredKey>, StoreError>;

    /// Adds `key` if the newest key is still `after` (`None`: if there is
    /// none), so that of several nodes that rotate at once only one does.
    /// Answers whether it was added.
    async fn add_key(
        &self,
        key: StoredKey,
        after: Option<&str>,
        by: By,
    ) -> Result<bool, StoreError>;

    /// Forgets keys by their `kid`: those that are out of the key set for good.
    async fn remove_keys(&self, kids: &[String]) -> Result<(), StoreError>;

    /// Takes the key `kid` out if the newest key is still `after`, and adds
    /// `successor` in the same moment, so that a platform without a key that
    /// signs is never seen. Both are events, at `at`.
    async fn revoke_key(
        &self,
        kid: &str,
        successor: Option<StoredKey>,
        after: Option<&str>,
        at: Millis,
        by: By,
    ) -> Result<Revocation, StoreError>;

    /// Replaces private keys, by their `kid`, with the same ones sealed. Keys
    /// that are gone by now stay gone. How they lay before is overwritten.
    async fn reseal_keys(&self, keys: Vec<(String, Vec<u8>)>) -> Result<(), StoreError>;

    /// Writes down that every key may have signed tokens that live so long,
    /// where less is written.
    async fn raise_token_life(&self, millis: Millis) -> Result<(), StoreError>;
}
