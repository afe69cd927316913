//! What several tables' operations read and write alike.

use platform_store::StoreError;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::error::Error;

/// A column of a row.
pub(super) fn get<'row, T: FromSql<'row>>(row: &'row Row, index: usize) -> Result<T, Error> {
    Ok(row.try_get(index)?)
}

/// A hash, or which row is wrong.
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

/// A hash that may be null, or which row is wrong.
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

/// A number of rows as SQL takes it.
pub(super) fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A number of rows as SQL answers it.
pub(super) fn number(rows: u64) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}
