//! Previews: the part of the store that knows a project's previews and what each one shows.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::preview::{AddedPreview, HostedPreview, NewPreview, Preview};

use super::StoreError;

/// Operations on previews. [`Store`](super::Store) documents what every method guarantees.
///
/// What a preview shows is a deployment in the dev environment that none of the operations on an
/// environment's deployments lists, shows or removes.
#[async_trait]
pub trait PreviewStore: Send + Sync {
    /// Records a deployment that the preview of this name shows from now on, and removes the one
    /// that it showed before. If there is no such preview yet, it is created.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn put_preview(&self, new: NewPreview, by: By) -> Result<AddedPreview, StoreError>;

    /// Returns the previews of a project, the most recently deployed first.
    async fn list_previews(&self, slug: &str) -> Result<Vec<Preview>, StoreError>;

    /// Returns the previews of all projects, or of one, for the catalogue of games.
    async fn list_hosted_previews(
        &self,
        slug: Option<&str>,
    ) -> Result<Vec<HostedPreview>, StoreError>;

    /// Records the day on which a preview was used; an earlier day than the recorded one changes
    /// nothing.
    async fn note_preview_use(&self, slug: &str, name: &str, day: Millis)
    -> Result<(), StoreError>;

    /// Removes a preview with its deployment. Returns whether there was one.
    async fn remove_preview(
        &self,
        slug: &str,
        name: &str,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Removes one of the previews that were last used on the day `used_at` or earlier, with its
    /// deployment. Returns its project; `None` if there is none left.
    async fn remove_unused_preview(
        &self,
        used_at: Millis,
        now: Millis,
    ) -> Result<Option<String>, StoreError>;
}
