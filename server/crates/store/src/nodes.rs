//! Nodes, what changed, and leases: the part of the store by which several servers work as one.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::node::{Changes, Lease, Node, NodeReport, Reported};
use uuid::Uuid;

use super::StoreError;

/// Operations on nodes. [`Store`](super::Store) documents what every method guarantees.
///
/// All times are those of the store's own clock, so nodes with different clocks agree.
#[async_trait]
pub trait NodeStore: Send + Sync {
    /// Whether several servers may use the store at the same time. In a store that only one server
    /// uses, nobody reports, waits for others or holds leases; the operations work all the same.
    fn is_shared(&self) -> bool;

    /// Returns the newest version of any topic. A change that was acknowledged before has a version
    /// up to it.
    async fn newest_change(&self) -> Result<i64, StoreError>;

    /// Returns the topics with a version after `after`. Versions become visible in their order:
    /// there will never be another change up to the newest version returned here.
    async fn list_changes(&self, after: i64) -> Result<Changes, StoreError>;

    /// Records what a node says about itself, and that it is live.
    async fn report_node(&self, report: &NodeReport) -> Result<Reported, StoreError>;

    /// Returns the nodes that have reported within the last hour, in the order of their starts.
    async fn list_nodes(&self) -> Result<Vec<Node>, StoreError>;

    /// Removes a node that stops, and its leases. Without it, nothing changes.
    async fn remove_node(&self, id: Uuid) -> Result<(), StoreError>;

    /// Takes the lease `name` for `millis`, if it is free, has ended, or already belongs to
    /// `holder`. Returns whether `holder` has it.
    async fn take_lease(
        &self,
        name: &str,
        holder: Uuid,
        millis: Millis,
    ) -> Result<bool, StoreError>;

    /// Extends all leases of `holder` that nobody else has taken, to `millis` from now. Returns
    /// their names.
    async fn renew_leases(&self, holder: Uuid, millis: Millis) -> Result<Vec<String>, StoreError>;

    /// Returns all leases, also those that have ended, by name.
    async fn list_leases(&self) -> Result<Vec<Lease>, StoreError>;
}
