//! Helpers for the rows of several tables.

use platform_store::StoreError;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::error::Error;

/// Reads a column of a row.
pub(super) fn get<'row, T: FromSql<'row>>(row: &'row Row, index: usize) -> Result<T, Error> {
    Ok(row.try_get(index)?)
}

/// Reads a hash, or returns an error that names the table and the column.
pub(super) fn bytes<const LENGTH: usize>(
    row: &Row,
    index: usize,
    table: &'static str,
    column: &'static str,
) -> Result<[u8; LENGTH], Error> {
    let bytes: &[u8] = get(row, index)?;
    bytes.try_into().map_err(|_| {
        StoreError::Corrupt {
            table,
            column,
            row: String::new(),
        }
        .into()
    })
}

/// Reads a hash that may be null, or returns an error that names the table and the column.
pub(super) fn optional_bytes<const LENGTH: usize>(
    row: &Row,
    index: usize,
    table: &'static str,
    column: &'static str,
) -> Result<Option<[u8; LENGTH]>, Error> {
    let found: Option<&[u8]> = get(row, index)?;
    match found {
        None => Ok(None),
        Some(_) => bytes(row, index, table, column).map(Some),
    }
}

/// Converts a number of rows to the type that SQL needs.
pub(super) fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Converts a number of rows that PostgreSQL returned.
pub(super) fn number(rows: u64) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}
