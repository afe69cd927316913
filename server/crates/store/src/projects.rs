//! Projects: the part of the store that knows them and their owners.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::project::Project;
use uuid::Uuid;

use super::StoreError;

/// Operations on projects. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait ProjectStore: Send + Sync {
    /// Adds a project.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] on `slug` if it is taken.
    async fn add_project(&self, project: Project) -> Result<(), StoreError>;

    /// Adds a project for its owner, who may own at most `most` at the same time.
    ///
    /// # Errors
    /// Those of [`ProjectStore::add_project`]; [`StoreError::ProjectCap`].
    async fn add_project_within(
        &self,
        project: Project,
        most: u32,
        by: By,
    ) -> Result<(), StoreError>;

    /// Returns every project, by slug.
    async fn list_projects(&self) -> Result<Vec<Project>, StoreError>;

    /// Returns the project with this slug.
    async fn find_project(&self, slug: &str) -> Result<Option<Project>, StoreError>;

    /// Returns the projects of this owner, by slug.
    async fn list_projects_of(&self, owner: Uuid) -> Result<Vec<Project>, StoreError>;
}
