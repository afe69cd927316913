//! Copies of the whole store.

use std::sync::Arc;

use async_trait::async_trait;
use platform_domain::administration::StoreCopy;
use tempfile::TempDir;

use super::StoreError;

/// Operations on copies. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait BackupStore: Send + Sync {
    /// Writes a copy of the whole store into `folder`, which exists and has no
    /// copy yet: everything that was written before the call, while other
    /// writes continue. The folder is kept until the copy is finished, even if
    /// the caller no longer waits for it.
    async fn copy_into(&self, folder: Arc<TempDir>) -> Result<StoreCopy, StoreError>;
}
