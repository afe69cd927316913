//! The room that frontend log records take, and taking the oldest away.

use std::collections::BTreeMap;

use platform_protocol::log::LogLevel;
use rusqlite::{Connection, params};

use crate::clock::Millis;
use crate::domain::log::LogId;
use crate::store::StoreError;

/// How much more is taken from a project that is over twice its quota.
const FLOODED: usize = 8;

/// Bytes that were taken away, by environment.
type Freed = BTreeMap<i64, i64>;

/// What the records of a project count for, in bytes.
pub(super) fn log_bytes(connection: &Connection, slug: &str) -> Result<u64, StoreError> {
    let bytes: i64 = connection
        .prepare_cached("SELECT coalesce(sum(bytes), 0) FROM log_environments WHERE project = ?1")?
        .query_row([slug], |row| row.get(0))?;
    u64::try_from(bytes).map_err(|_| StoreError::Corrupt {
        table: "log_environments",
        column: "bytes",
        row: slug.to_owned(),
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
    let (mut freed, mut last) = (Freed::new(), None);
    {
        let mut select = connection.prepare_cached(
            "SELECT id, environment, bytes FROM log_record_sizes
             WHERE id < ?1 ORDER BY id LIMIT ?2",
        )?;
        let mut rows = select.query([LogId::first_of(before).0, limit])?;
        while let Some(row) = rows.next()? {
            last = Some(row.get::<_, i64>(0)?);
            *freed.entry(row.get(1)?).or_default() += row.get::<_, i64>(2)?;
        }
    }
    let Some(last) = last else { return Ok(0) };
    let removed = connection
        .prepare_cached("DELETE FROM log_records WHERE id <= ?1")?
        .execute([last])?;
    take_off(connection, &freed)?;
    Ok(removed)
}

/// Removes the oldest records of the projects whose records count for more than
/// `quota` bytes, about `limit` of them in all; more where one of them grows
/// faster than so little takes away. Answers how many; none where no project is
/// over it.
pub(super) fn sweep_log_quota(
    connection: &Connection,
    quota: u64,
    limit: usize,
) -> Result<usize, StoreError> {
    let quota = i64::try_from(quota).unwrap_or(i64::MAX);
    let over: Vec<(String, i64)> = connection
        .prepare_cached(
            "SELECT project, sum(bytes) FROM log_environments
             GROUP BY project HAVING sum(bytes) > ?1",
        )?
        .query_map([quota], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    // Each in every write: one that is flooded must not keep the others waiting.
    let share = limit.div_ceil(over.len().max(1));
    let mut removed = 0;
    for (slug, bytes) in over {
        let share = if bytes / 2 > quota {
            share * FLOODED
        } else {
            share
        };
        removed += remove_oldest(connection, &slug, bytes - quota, share)?;
    }
    Ok(removed)
}

/// Removes the oldest records of a project until they have made up `surplus`
/// bytes, at most `limit` of them. Answers how many.
fn remove_oldest(
    connection: &Connection,
    slug: &str,
    mut surplus: i64,
    limit: usize,
) -> Result<usize, StoreError> {
    let (mut removed, mut freed) = (0, Freed::new());
    let mut size = connection
        .prepare_cached("SELECT environment, bytes FROM log_record_sizes WHERE id = ?1")?;
    let mut delete = connection.prepare_cached("DELETE FROM log_records WHERE id = ?1")?;
    for id in oldest(connection, slug, limit)? {
        if surplus <= 0 {
            break;
        }
        let (environment, bytes) = size.query_row([id], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })?;
        removed += delete.execute([id])?;
        surplus -= bytes;
        *freed.entry(environment).or_default() += bytes;
    }
    take_off(connection, &freed)?;
    Ok(removed)
}

/// The ids of the oldest records of a project, at most `limit` of them.
fn oldest(connection: &Connection, slug: &str, limit: usize) -> Result<Vec<i64>, StoreError> {
    let environments: Vec<i64> = connection
        .prepare_cached("SELECT id FROM log_environments WHERE project = ?1")?
        .query_map([slug], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut select = connection.prepare_cached(
        "SELECT id FROM log_records WHERE environment = ?1 AND level = ?2 ORDER BY id LIMIT ?3",
    )?;
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut ids = Vec::new();
    // Each is one range of the index alone.
    for environment in environments {
        for level in LogLevel::ALL {
            let found =
                select.query_map(params![environment, level as i64, most], |row| row.get(0));
            for id in found? {
                ids.push(id?);
            }
        }
    }
    ids.sort_unstable();
    ids.truncate(limit);
    Ok(ids)
}

fn take_off(connection: &Connection, freed: &Freed) -> Result<(), StoreError> {
    let mut update = connection
        .prepare_cached("UPDATE log_environments SET bytes = bytes - ?2 WHERE id = ?1")?;
    for (environment, bytes) in freed {
        update.execute([environment, bytes])?;
    }
    Ok(())
}
