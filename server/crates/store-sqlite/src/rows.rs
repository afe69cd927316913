//! What several tables' operations read and write alike.

use platform_store::StoreError;
use uuid::Uuid;

use super::error::Error;

/// A UUID as the store keeps it, or which row is wrong.
pub(super) fn uuid(
    bytes: &[u8],
    table: &'static str,
    column: &'static str,
    row: impl FnOnce() -> String,
) -> Result<Uuid, Error> {
    let wrong = |_| StoreError::Corrupt {
        table,
        column,
        row: row(),
    };
    Ok(Uuid::from_slice(bytes).map_err(wrong)?)
}

/// A number of rows as SQL takes it.
pub(super) fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
