//! The room that deployments take: the part of the store that counts it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use platform_domain::project::FileEntry;
use platform_domain::room::Measured;

use super::StoreError;

/// Operations on the room that deployments take. [`Store`](super::Store)'s
/// documentation says what every one promises.
#[async_trait]
pub trait RoomStore: Send + Sync {
    /// What a project takes with one more deployment of these files, and what
    /// its owner's other projects took when they were last counted.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn measure_room(
        &self,
        slug: &str,
        files: BTreeMap<String, FileEntry>,
    ) -> Result<Measured, StoreError>;

    /// Counts what a project takes and keeps the number; it is answered.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn count_room(&self, slug: &str) -> Result<u64, StoreError>;

    /// What a project took when it was last counted.
    async fn find_room(&self, slug: &str) -> Result<u64, StoreError>;

    /// The projects whose room was never counted.
    async fn list_uncounted_projects(&self) -> Result<Vec<String>, StoreError>;

    /// Forgets the oldest deployment of a project that no environment shows.
    /// Answers whether there was one.
    async fn remove_oldest_deployment(&self, slug: &str) -> Result<bool, StoreError>;
}
