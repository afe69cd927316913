//! The storage of deployments: the part of the store that measures it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use platform_domain::project::FileEntry;
use platform_domain::room::Measured;

use super::StoreError;

/// Operations on the storage of deployments. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait RoomStore: Send + Sync {
    /// Returns the storage that a project needs with one more deployment of these files, and what
    /// its owner's other projects used at their last measurement.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn measure_room(
        &self,
        slug: &str,
        files: BTreeMap<String, FileEntry>,
    ) -> Result<Measured, StoreError>;

    /// Measures the storage that a project uses, stores the number and returns it.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn count_room(&self, slug: &str) -> Result<u64, StoreError>;

    /// Returns the storage that a project used at its last measurement.
    async fn find_room(&self, slug: &str) -> Result<u64, StoreError>;

    /// Returns the storage that all projects used at their last measurements.
    async fn total_room(&self) -> Result<u64, StoreError>;

    /// Returns the projects whose storage was never measured.
    async fn list_uncounted_projects(&self) -> Result<Vec<String>, StoreError>;

    /// Removes the oldest deployment of a project that is not current in any environment. Returns
    /// whether there was one.
    async fn remove_oldest_deployment(&self, slug: &str) -> Result<bool, StoreError>;
}
