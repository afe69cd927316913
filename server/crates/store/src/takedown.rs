//! Projects that are taken down: the part of the store that knows which games are not shown.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::takedown::{Change, Changed, Standing};

use super::StoreError;

/// What one call of [`TakedownStore::remove_deleted`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removed {
    /// A part of this project; the rest follows with the next call.
    Part(String),
    /// The rest of this project.
    Whole(String),
}

/// Operations on projects that are taken down. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait TakedownStore: Send + Sync {
    /// Changes a project's state, and records that in the log of events.
    /// [`Actor::Own`](platform_domain::audit::Actor::Own) is the project's owner.
    async fn change_standing(
        &self,
        slug: &str,
        change: Change,
        by: By,
        now: Millis,
    ) -> Result<Changed, StoreError>;

    /// Returns a project's state; `None` if the project does not exist.
    async fn find_standing(&self, slug: &str) -> Result<Option<Standing>, StoreError>;

    /// Returns the state of every project that is not shown, or that was ever transferred or taken
    /// down, including removed projects.
    async fn list_standings(&self) -> Result<Vec<(String, Standing)>, StoreError>;

    /// Removes a bounded part of a project that was deleted at `deleted_before`
    /// or earlier: one deployment with the list of its files, and finally
    /// everything but its slug. Returns what was removed; `None` if there is no
    /// such project.
    async fn remove_deleted(
        &self,
        deleted_before: Millis,
        now: Millis,
    ) -> Result<Option<Removed>, StoreError>;
}
