//! The log of security events.

use async_trait::async_trait;
use platform_domain::audit::{AuditEvent, AuditKind, AuditQuery, By, Refused};
use platform_domain::clock::Millis;

use super::StoreError;

/// Operations on the log of security events. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait AuditStore: Send + Sync {
    /// Returns security events, newest first.
    async fn list_audit_events(&self, query: AuditQuery) -> Result<Vec<AuditEvent>, StoreError>;

    /// Records that a request was refused.
    async fn note_refusal(&self, refused: Refused, by: By, now: Millis) -> Result<(), StoreError>;

    /// Records an act on a project, with its detail. This is for what lies in another database, so
    /// that act and event cannot be one operation: the event comes first, and no act is without one.
    async fn note_project_act(
        &self,
        kind: AuditKind,
        act: (&str, &str),
        by: By,
        now: Millis,
    ) -> Result<(), StoreError>;

    /// Removes routine events that are too old, and the network and request of
    /// events that are older still, at most `limit` of each. Returns the number
    /// of changed rows.
    async fn sweep_audit_events(&self, now: Millis, limit: usize) -> Result<usize, StoreError>;
}
