//! Rows of frontend log records, and of their environments.

use platform_domain::log::{LogEntry, LogId, StoredLogRecord};
use platform_domain::page::PageId;
use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use platform_store::StoreError;
use rusqlite::{Connection, OptionalExtension as _, Row};
use uuid::Uuid;

use super::error::Error;

/// The selected columns, in the order of [`record`].
pub(super) const COLUMNS: &str = "id, level, source, deployment, player, page, time, message,
     stack, url, line, \"column\", metadata, count";
/// The indices of the texts in a row: message, stack, url and metadata.
pub(super) const TEXTS: [usize; 4] = [7, 8, 9, 12];

/// Reads a record from a row with these columns.
pub(super) fn record(row: &Row<'_>, level: LogLevel) -> Result<StoredLogRecord, Error> {
    let id: i64 = row.get(0)?;
    let corrupt = |column| StoreError::Corrupt {
        table: "log_records",
        column,
        row: id.to_string(),
    };
    let source: String = row.get(2)?;
    let source = LogSource::ALL
        .into_iter()
        .find(|known| known.as_str() == source);
    let optional_id = |index, column| -> Result<Option<Uuid>, Error> {
        let bytes: Option<[u8; 16]> = row.get(index).map_err(|_| corrupt(column))?;
        Ok(bytes.map(Uuid::from_bytes))
    };
    Ok(StoredLogRecord {
        id: LogId(id),
        deployment: optional_id(3, "deployment")?,
        player: optional_id(4, "player")?,
        page: PageId(row.get(5).map_err(|_| corrupt("page"))?),
        entry: LogEntry {
            time: row.get(6)?,
            level,
            source: source.ok_or_else(|| corrupt("source"))?,
            message: row.get(7)?,
            stack: row.get(8)?,
            url: row.get(9)?,
            line: row.get(10)?,
            column: row.get(11)?,
            metadata: row.get(12)?,
            count: row.get(13)?,
        },
    })
}

/// The number of an environment that has had records.
pub(super) fn find_environment(
    connection: &Connection,
    slug: &str,
    environment: Environment,
) -> Result<Option<i64>, Error> {
    Ok(connection
        .prepare_cached("SELECT id FROM log_environments WHERE project = ?1 AND environment = ?2")?
        .query_row([slug, environment.as_str()], |row| row.get(0))
        .optional()?)
}
