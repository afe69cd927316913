//! Helpers for the rows of several tables.

use platform_store::StoreError;
use uuid::Uuid;

use super::error::Error;

/// Reads a stored UUID, or returns an error that names the row.
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

/// A number of rows as SQL needs it.
pub(super) fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
