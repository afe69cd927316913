//! Deploy tokens: the part of the store that knows which programs may deploy a project or read its
//! logs.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::deploy_token::{
    AddedDeployToken, DeployToken, FoundDeployToken, NewDeployToken,
};
use uuid::Uuid;

use super::StoreError;

/// Operations on deploy tokens. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait DeployTokenStore: Send + Sync {
    /// Adds a token to a project, and removes the oldest of its ended tokens beyond
    /// [`ENDED_KEPT`](platform_domain::deploy_token::ENDED_KEPT).
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn add_deploy_token(
        &self,
        slug: &str,
        new: NewDeployToken,
        by: By,
    ) -> Result<AddedDeployToken, StoreError>;

    /// Returns the tokens of a project that were not revoked, newest first.
    async fn list_deploy_tokens(&self, slug: &str) -> Result<Vec<DeployToken>, StoreError>;

    /// Returns the token with this id, unless its project was removed.
    async fn find_deploy_token(&self, id: Uuid) -> Result<Option<FoundDeployToken>, StoreError>;

    /// Records the day on which a token was used; an earlier day than the recorded one changes
    /// nothing.
    async fn note_deploy_token_use(&self, id: Uuid, day: Millis) -> Result<(), StoreError>;

    /// Revokes a token of this project. Returns it as it is now; `None` if the project has no such
    /// token, or it was revoked before.
    async fn revoke_deploy_token(
        &self,
        slug: &str,
        id: Uuid,
        by: By,
        now: Millis,
    ) -> Result<Option<DeployToken>, StoreError>;
}
