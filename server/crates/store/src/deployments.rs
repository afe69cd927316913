//! Deployments: the part of the store that knows what an environment shows, and what it showed.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::project::{Deployment, DeploymentSummary, FileEntry};
use platform_protocol::names::Environment;
use uuid::Uuid;

use super::StoreError;

/// Operations on deployments. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait DeploymentStore: Send + Sync {
    /// Records a deployment and makes it the environment's current one, in one.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn add_deployment(&self, deployment: Deployment, by: By) -> Result<(), StoreError>;

    /// Returns the current deployment of an environment.
    async fn find_current_deployment(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Option<Deployment>, StoreError>;

    /// Returns the deployment of this id.
    async fn find_deployment(&self, id: Uuid) -> Result<Option<Deployment>, StoreError>;

    /// Returns the deployments of an environment that are kept, newest first.
    async fn list_deployments(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Vec<DeploymentSummary>, StoreError>;

    /// Makes an earlier deployment the environment's current one. Returns whether
    /// it was another one before; if not, nothing is written.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `deployments` if the environment has no such
    /// deployment.
    async fn set_current_deployment(
        &self,
        slug: &str,
        environment: Environment,
        deployment: Uuid,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// The file at this path that deployments of the environment have; none where
    /// two of them differ in it.
    async fn find_kept_file(
        &self,
        slug: &str,
        environment: Environment,
        path: &str,
    ) -> Result<Option<FileEntry>, StoreError>;

    /// The file at this path of one deployment of the environment.
    async fn find_file_of(
        &self,
        slug: &str,
        environment: Environment,
        deployment: Uuid,
        path: &str,
    ) -> Result<Option<FileEntry>, StoreError>;

    /// The paths at which two deployments of the environment differ.
    async fn list_changed_paths(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Vec<String>, StoreError>;

    /// Forgets the deployments of an environment but its current one and the
    /// newest `keep`. Returns how many.
    async fn sweep_deployments(
        &self,
        slug: &str,
        environment: Environment,
        keep: usize,
    ) -> Result<usize, StoreError>;

    /// Those of `files`, names of the file store, that no deployment has.
    async fn list_unreferenced_files(&self, files: Vec<String>) -> Result<Vec<String>, StoreError>;
}
