//! The log of security events.

use async_trait::async_trait;
use platform_domain::audit::{AuditEvent, AuditQuery, By, Refused};
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

    /// Removes routine events that are too old, and the network and request of
    /// events that are older still, at most `limit` of each. Returns the number
    /// of changed rows.
    async fn sweep_audit_events(&self, now: Millis, limit: usize) -> Result<usize, StoreError>;
}
