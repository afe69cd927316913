//! Frontend log records.

use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use crate::clock::Millis;
use crate::domain::log::{LogEntry, LogId, LogQuery, NewLogRecords, StoredLogRecord};
use crate::domain::page::PageId;
use crate::store::StoreError;

/// Adds the records of one request, in their order.
pub(super) fn add_log_records(
    connection: &Connection,
    new: &NewLogRecords,
) -> Result<(), StoreError> {
    if new.entries.is_empty() {
        return Ok(());
    }
    let environment = environment_id(connection, &new.slug, new.environment)?;
    let first = next_id(connection, new)?;
    let deployment = new.deployment.as_ref().map(Uuid::as_bytes);
    let player = new.player.as_ref().map(Uuid::as_bytes);
    let mut add = connection.prepare_cached(
        "INSERT INTO log_records (id, environment, level, source, deployment, player, page,
             time, message, stack, url, line, \"column\", metadata, count)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?;
    for (id, entry) in (first..).zip(&new.entries) {
        add.execute(params![
            id,
            environment,
            entry.level as i64,
            entry.source.as_str(),
            deployment,
            player,
            new.page.0,
            entry.time,
            entry.message,
            entry.stack,
            entry.url,
            entry.line,
            entry.column,
            entry.metadata,
            entry.count
        ])?;
    }
    Ok(())
}

/// The first id for the records of `new`: after those of the same millisecond.
fn next_id(connection: &Connection, new: &NewLogRecords) -> Result<i64, StoreError> {
    let first = LogId::first_of(new.received_at);
    let last = LogId::last_of(new.received_at);
    let taken: Option<i64> = connection
        .prepare_cached("SELECT max(id) FROM log_records WHERE id BETWEEN ?1 AND ?2")?
        .query_row([first.0, last.0], |row| row.get(0))?;
    let next = taken.map_or(first.0, |taken| taken + 1);
    let count = i64::try_from(new.entries.len()).unwrap_or(i64::MAX);
    if next.saturating_add(count) > last.0 {
        // A million in one millisecond: the clock stands still.
        return Err(StoreError::Busy);
    }
    Ok(next)
}

fn environment_id(
    connection: &Connection,
    slug: &str,
    environment: Environment,
) -> Result<i64, StoreError> {
    if let Some(id) = find_environment(connection, slug, environment)? {
        return Ok(id);
    }
    connection
        .prepare_cached("INSERT INTO log_environments (project, environment) VALUES (?1, ?2)")?
        .execute([slug, environment.as_str()])?;
    Ok(connection.last_insert_rowid())
}

fn find_environment(
    connection: &Connection,
    slug: &str,
    environment: Environment,
) -> Result<Option<i64>, StoreError> {
    Ok(connection
        .prepare_cached("SELECT id FROM log_environments WHERE project = ?1 AND environment = ?2")?
        .query_row([slug, environment.as_str()], |row| row.get(0))
        .optional()?)
}

/// Records of one environment, newest first.
pub(super) fn list_log_records(
    connection: &Connection,
    query: &LogQuery,
) -> Result<Vec<StoredLogRecord>, StoreError> {
    // One transaction: a record that is swept between two levels would leave
    // a page that never was.
    let transaction = connection.unchecked_transaction()?;
    let Some(environment) = find_environment(&transaction, &query.slug, query.environment)? else {
        return Ok(Vec::new());
    };
    let before = query.before.map_or(i64::MAX, |before| before.0);
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let mut select = transaction.prepare_cached(
        "SELECT id, level, source, deployment, player, page, time, message, stack, url, line,
             \"column\", metadata, count
         FROM log_records WHERE environment = ?1 AND level = ?2 AND id < ?3
         ORDER BY id DESC LIMIT ?4",
    )?;
    let mut records = Vec::new();
    // Each level is one range of the index; together, at most four times too
    // many are read.
    for level in LogLevel::ALL
        .into_iter()
        .filter(|level| *level >= query.level)
    {
        let mut rows = select.query(params![environment, level as i64, before, limit])?;
        while let Some(row) = rows.next()? {
            records.push(record(row, level)?);
        }
    }
    records.sort_unstable_by_key(|record| std::cmp::Reverse(record.id));
    records.truncate(query.limit);
    Ok(records)
}

fn record(row: &Row<'_>, level: LogLevel) -> Result<StoredLogRecord, StoreError> {
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
    let optional_id = |index, column| -> Result<Option<Uuid>, StoreError> {
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

/// Removes records that were received before `before`, oldest first, at most
/// `limit` of them, and answers how many.
pub(super) fn sweep_log_records(
    connection: &Connection,
    before: Millis,
    limit: usize,
) -> Result<usize, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    Ok(connection
        .prepare_cached(
            "DELETE FROM log_records WHERE id IN
                 (SELECT id FROM log_records WHERE id < ?1 ORDER BY id LIMIT ?2)",
        )?
        .execute([LogId::first_of(before).0, limit])?)
}
