//! What is kept for a time only: the part of the store that removes old events and shortens old
//! addresses.

use async_trait::async_trait;
use platform_domain::retention::Retention;

use super::StoreError;

/// A column with addresses.
#[derive(Clone, Copy, Debug)]
pub struct AddressColumn {
    /// The table.
    pub table: &'static str,
    /// The column that identifies a row.
    pub key: &'static str,
    /// The column with the time from which the address is.
    pub since: &'static str,
}

/// The tables whose column `network` is shortened.
pub const ADDRESS_COLUMNS: &[AddressColumn] = &[
    AddressColumn {
        table: "audit_events",
        key: "id",
        since: "at",
    },
    AddressColumn {
        table: "devices",
        key: "id",
        since: "signed_in_at",
    },
    AddressColumn {
        table: "deployments",
        key: "id",
        since: "created_at",
    },
];

/// Operations on what is kept for a time only. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait RetentionStore: Send + Sync {
    /// Removes and shortens what is too old, at most `limit` rows of each kind. Returns the number
    /// of changed rows.
    async fn apply_retention(
        &self,
        retention: Retention,
        limit: usize,
    ) -> Result<usize, StoreError>;
}
