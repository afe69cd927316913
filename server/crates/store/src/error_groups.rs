//! Groups of errors: the part of the store that counts them.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::error_group::{
    CountedGroup, ErrorGroupFilter, ErrorGroupId, ErrorGroupPage, ErrorGroupQuery, ErrorState,
    GroupedErrors, Ungrouped,
};
use platform_protocol::names::Environment;

use super::StoreError;

/// Operations on groups of errors. They lie beside the frontend log records.
/// [`Store`](super::Store) documents what every method guarantees.
#[async_trait]
pub trait ErrorGroupStore: Send + Sync {
    /// Returns environments with errors in their logs that are not grouped yet, at most `limit` of
    /// them: those that were grouped longest ago first.
    async fn list_ungrouped(&self, limit: usize) -> Result<Vec<Ungrouped>, StoreError>;

    /// Adds errors to their groups, and notes up to which record that is done. An environment has a
    /// limited number of groups: new ones take the place of the least important, whose errors are
    /// counted in one group for all others. Returns whether they were added: if errors up to another record were grouped meanwhile, nothing is written.
    async fn add_to_error_groups(&self, errors: GroupedErrors) -> Result<bool, StoreError>;

    /// Returns groups of one environment, the one with the latest error first.
    async fn list_error_groups(&self, query: ErrorGroupQuery)
    -> Result<ErrorGroupPage, StoreError>;

    /// Returns a group of an environment, with its errors in each hour since `hours_from`.
    async fn find_error_group(
        &self,
        slug: &str,
        environment: Environment,
        id: ErrorGroupId,
        hours_from: Millis,
    ) -> Result<Option<CountedGroup>, StoreError>;

    /// Takes a developer's decision about a group. `deployed_at` is when the environment's current
    /// deployment was made. Returns whether there is such a group.
    async fn decide_error_group(
        &self,
        slug: &str,
        environment: Environment,
        id: ErrorGroupId,
        decision: (ErrorState, Option<Millis>, Millis),
    ) -> Result<bool, StoreError>;

    /// Removes groups with their counts, and returns how many. An error that happens again begins a
    /// new group.
    async fn remove_error_groups(&self, filter: ErrorGroupFilter) -> Result<usize, StoreError>;

    /// Removes groups whose last error was received before
    /// `now` − [`GROUPS_KNOWN`](platform_domain::error_group::GROUPS_KNOWN), and counts of hours before
    /// `now` − [`HOURS_KNOWN`](platform_domain::error_group::HOURS_KNOWN), at most `limit` of each.
    /// Returns how many.
    async fn sweep_error_groups(&self, now: Millis, limit: usize) -> Result<usize, StoreError>;
}
