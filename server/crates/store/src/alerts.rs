//! Alerts about groups of errors: the part of the store that knows which are still to be sent.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::error_alert::WaitingAlert;

use super::StoreError;

/// Operations on alerts. They lie beside the groups of errors, whose
/// [`add_to_error_groups`](super::ErrorGroupStore::add_to_error_groups) adds them.
/// [`Store`](super::Store) documents what every method guarantees.
#[async_trait]
pub trait AlertStore: Send + Sync {
    /// Returns alerts that are to be sent by `now`, at most `limit` of them and at most
    /// `per_environment` of each environment: those that are due for longest first.
    async fn list_due_alerts(
        &self,
        now: Millis,
        per_environment: usize,
        limit: usize,
    ) -> Result<Vec<WaitingAlert>, StoreError>;

    /// Notes that sending an alert has failed so often, and when to try again. An alert that was
    /// removed stays so.
    async fn postpone_alert(&self, id: i64, tries: u16, next_at: Millis) -> Result<(), StoreError>;

    /// Removes an alert that was sent or given up.
    async fn remove_alert(&self, id: i64) -> Result<(), StoreError>;

    /// Removes all alerts of a project, which nobody wants any more.
    async fn remove_alerts(&self, slug: &str) -> Result<(), StoreError>;
}
