//! Copies of the whole store.

use std::sync::Arc;

use async_trait::async_trait;
use platform_domain::administration::StoreCopy;
use tempfile::TempDir;

use super::StoreError;

/// Operations on copies. [`Store`](super::Store)'s documentation says what every one
/// promises.
#[async_trait]
pub trait BackupStore: Send + Sync {
    /// Writes a copy of the whole store into `folder`, which is there and has
    /// none: everything that was answered before, while others go on writing.
    /// The folder is held as long as something is written, also for a caller
    /// who does not wait for it any more.
    async fn copy_into(&self, folder: Arc<TempDir>) -> Result<StoreCopy, StoreError>;
}
