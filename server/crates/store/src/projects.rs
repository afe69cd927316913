//! Projects, their deployments and environments: the part of the store that knows
//! the games.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::project::{
    BackendSettings, Deployment, DeploymentSummary, EnvironmentRecord, FileEntry, Frames, Project,
};
use platform_protocol::names::Environment;
use uuid::Uuid;

use super::StoreError;

/// Operations on projects. [`Store`](super::Store)'s documentation says
/// what every one promises.
#[async_trait]
pub trait ProjectStore: Send + Sync {
    /// Adds a project.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] on `slug` if it is taken.
    async fn add_project(&self, project: Project) -> Result<(), StoreError>;

    /// Adds a project for its owner, who may own `most` at one time.
    ///
    /// # Errors
    /// Those of [`ProjectStore::add_project`]; [`StoreError::ProjectCap`].
    async fn add_project_within(
        &self,
        project: Project,
        most: u32,
        by: By,
    ) -> Result<(), StoreError>;

    /// Every project, by slug.
    async fn list_projects(&self) -> Result<Vec<Project>, StoreError>;

    /// The project of this slug.
    async fn find_project(&self, slug: &str) -> Result<Option<Project>, StoreError>;

    /// Records a deployment and makes it the environment's current one, in one.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn add_deployment(&self, deployment: Deployment, by: By) -> Result<(), StoreError>;

    /// The current deployment of an environment.
    async fn find_current_deployment(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Option<Deployment>, StoreError>;

    /// The projects of this owner, by slug.
    async fn list_projects_of(&self, owner: Uuid) -> Result<Vec<Project>, StoreError>;

    /// What is set for every environment there is: two for each project.
    async fn list_environments(&self) -> Result<Vec<EnvironmentRecord>, StoreError>;

    /// What is set for one environment.
    async fn find_environment(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Option<EnvironmentRecord>, StoreError>;

    /// The deployment of this id.
    async fn find_deployment(&self, id: Uuid) -> Result<Option<Deployment>, StoreError>;

    /// The deployments of an environment that are kept, newest first.
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
    /// newest `keep`. Answers how many.
    async fn sweep_deployments(
        &self,
        slug: &str,
        environment: Environment,
        keep: usize,
    ) -> Result<usize, StoreError>;

    /// Those of `files`, names of the file store, that no deployment has.
    async fn list_unreferenced_files(&self, files: Vec<String>) -> Result<Vec<String>, StoreError>;

    /// Sets an environment's backend, or takes it away. Returns whether that is a
    /// change; if not, nothing is written, here and below.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn set_backend(
        &self,
        slug: &str,
        environment: Environment,
        backend: Option<BackendSettings>,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Sets whether an environment's pages are isolated from other origins.
    /// Returns whether that is a change.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn set_isolated(
        &self,
        slug: &str,
        environment: Environment,
        isolated: bool,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Sets who may show an environment's pages in a frame. Returns whether that
    /// is a change.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn set_frames(
        &self,
        slug: &str,
        environment: Environment,
        frames: Frames,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// The id of a project's test user, or test guest, for whom somebody is given
    /// a token. It is `fresh` if it was never asked for. The event of it is written
    /// once an hour for each test player and each who acts.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project, on
    /// `deployments` if nothing was ever deployed there.
    async fn ensure_test_player(
        &self,
        slug: &str,
        guest: bool,
        number: u8,
        fresh: Uuid,
        by: By,
        now: Millis,
    ) -> Result<Uuid, StoreError>;
}
