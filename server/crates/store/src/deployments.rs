//! Deployments: the part of the store that knows an environment's current and earlier deployments.

use std::collections::BTreeMap;

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::project::{Deployment, DeploymentSummary, FileEntry, Inspection};
use platform_protocol::names::Environment;
use uuid::Uuid;

use super::StoreError;

/// Operations on deployments. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait DeploymentStore: Send + Sync {
    /// Records a deployment and makes it the environment's current one, in one transaction.
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

    /// Returns the deployment of this id without its files, of which there may be many.
    async fn describe_deployment(&self, id: Uuid) -> Result<Option<Deployment>, StoreError>;

    /// Returns those files of a deployment that are at one of these paths.
    async fn find_files(
        &self,
        deployment: Uuid,
        paths: Vec<String>,
    ) -> Result<BTreeMap<String, FileEntry>, StoreError>;

    /// Returns the deployments of an environment that are kept, newest first.
    async fn list_deployments(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Vec<DeploymentSummary>, StoreError>;

    /// Makes an earlier deployment the environment's current one. Returns whether another one was
    /// current before; if not, nothing is written.
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

    /// Returns the file at this path in the environment's kept deployments; `None` if it differs
    /// between two of them.
    async fn find_kept_file(
        &self,
        slug: &str,
        environment: Environment,
        path: &str,
    ) -> Result<Option<FileEntry>, StoreError>;

    /// Returns the file at this path in one deployment of the environment.
    async fn find_file_of(
        &self,
        slug: &str,
        environment: Environment,
        deployment: Uuid,
        path: &str,
    ) -> Result<Option<FileEntry>, StoreError>;

    /// Returns the paths at which two deployments of the environment differ.
    async fn list_changed_paths(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Vec<String>, StoreError>;

    /// Sets the inspections of deployments that have none, because an older version of the
    /// program made them. An inspection that is set stays as it is; an unknown deployment is
    /// ignored.
    async fn set_inspections(&self, found: Vec<(Uuid, Inspection)>) -> Result<(), StoreError>;

    /// Removes the deployments of an environment except its current one and the newest `keep`.
    /// Returns how many were removed.
    async fn sweep_deployments(
        &self,
        slug: &str,
        environment: Environment,
        keep: usize,
    ) -> Result<usize, StoreError>;

    /// Returns those of `files` (names in the file store) that no deployment uses.
    async fn list_unreferenced_files(&self, files: Vec<String>) -> Result<Vec<String>, StoreError>;
}
