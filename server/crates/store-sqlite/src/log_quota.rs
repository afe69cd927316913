//! The storage of frontend log records, and removing the oldest ones.

use std::collections::BTreeMap;

use platform_domain::clock::Millis;
use platform_domain::log::LogId;
use platform_protocol::log::LogLevel;
use platform_store::StoreError;
use rusqlite::{Connection, params};

use super::alerts;
use super::error::Error;

/// How many times as much is removed from a project that is over twice its quota.
const FLOODED: usize = 8;
/// Records without a player's token may take this fraction of a quota (one divided by this) if
/// those with one need the rest: anybody can send them.
const SHARE_OF_STRANGERS: i64 = 2;

/// Removed bytes by environment: of all records, and of those without a player.
type Freed = BTreeMap<i64, (i64, i64)>;

/// The size of a project's records, in bytes.
#[derive(Clone, Copy, Debug)]
struct Room {
    all: i64,
    strangers: i64,
}

/// Returns the size of a project's records, in bytes.
pub(super) fn log_bytes(connection: &Connection, slug: &str) -> Result<u64, Error> {
    let bytes: i64 = connection
        .prepare_cached("SELECT coalesce(sum(bytes), 0) FROM log_environments WHERE project = ?1")?
        .query_row([slug], |row| row.get(0))?;
    u64::try_from(bytes).map_err(|_| {
        StoreError::Corrupt {
            table: "log_environments",
            column: "bytes",
            row: slug.to_owned(),
        }
        .into()
    })
}

/// The projects that have records.
pub(super) fn list_projects(connection: &Connection) -> Result<Vec<String>, Error> {
    Ok(connection
        .prepare_cached("SELECT DISTINCT project FROM log_environments ORDER BY project")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?)
}

/// Removes the oldest records of a project, at most `limit` of them; if there are none, everything
/// else about its environments. Returns the number of removed records or environments.
pub(super) fn sweep_project(
    connection: &Connection,
    slug: &str,
    limit: usize,
) -> Result<usize, Error> {
    let ids = oldest(connection, slug, limit)?;
    let (removed, _) = remove(connection, &ids, i64::MAX)?;
    if removed > 0 {
        return Ok(removed);
    }
    alerts::remove_of(connection, slug)?;
    for sql in [
        "DELETE FROM log_error_counts WHERE environment IN
             (SELECT id FROM log_environments WHERE project = ?1)",
        "DELETE FROM log_error_hours WHERE environment IN
             (SELECT id FROM log_environments WHERE project = ?1)",
        "DELETE FROM log_error_groups WHERE environment IN
             (SELECT id FROM log_environments WHERE project = ?1)",
    ] {
        connection.prepare_cached(sql)?.execute([slug])?;
    }
    Ok(connection
        .prepare_cached("DELETE FROM log_environments WHERE project = ?1")?
        .execute([slug])?)
}

/// Removes records that were received before `before`, oldest first, at most `limit` of them.
/// Returns how many.
pub(super) fn sweep_log_records(
    connection: &Connection,
    before: Millis,
    limit: usize,
) -> Result<usize, Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let (mut freed, mut last) = (Freed::new(), None);
    {
        let mut select = connection.prepare_cached(
            "SELECT id, environment, bytes, is_strangers FROM log_record_sizes
             WHERE id < ?1 ORDER BY id LIMIT ?2",
        )?;
        let mut rows = select.query([LogId::first_of(before).0, limit])?;
        while let Some(row) = rows.next()? {
            last = Some(row.get::<_, i64>(0)?);
            add(&mut freed, row.get(1)?, (row.get(2)?, row.get(3)?));
        }
    }
    let Some(last) = last else { return Ok(0) };
    let removed = connection
        .prepare_cached("DELETE FROM log_records WHERE id <= ?1")?
        .execute([last])?;
    take_off(connection, &freed)?;
    Ok(removed)
}

/// Removes the oldest records of the projects whose records exceed `quota` bytes, about `limit` of
/// them in all; more if a project grows faster than that removes. Records without a player are
/// removed first, as long as they take more than their fraction. Returns how many; 0 if no project
/// exceeds the quota.
pub(super) fn sweep_log_quota(
    connection: &Connection,
    quota: u64,
    limit: usize,
) -> Result<usize, Error> {
    let quota = i64::try_from(quota).unwrap_or(i64::MAX);
    let over: Vec<(String, Room)> = connection
        .prepare_cached(
            "SELECT project, sum(bytes), sum(strangers_bytes) FROM log_environments
             GROUP BY project HAVING sum(bytes) > ?1",
        )?
        .query_map([quota], |row| {
            let room = Room {
                all: row.get(1)?,
                strangers: row.get(2)?,
            };
            Ok((row.get(0)?, room))
        })?
        .collect::<Result<_, _>>()?;
    // Every write serves each of them: a flooded project must not delay the others.
    let share = limit.div_ceil(over.len().max(1));
    let mut removed = 0;
    for (slug, room) in over {
        let share = if room.all / 2 > quota {
            share * FLOODED
        } else {
            share
        };
        removed += make_room(connection, &slug, (room, quota), share)?;
    }
    Ok(removed)
}

/// Removes records of a project until the rest fits into `quota`, at most `limit` of them. Returns
/// how many.
fn make_room(
    connection: &Connection,
    slug: &str,
    (room, quota): (Room, i64),
    limit: usize,
) -> Result<usize, Error> {
    let surplus = room.all - quota;
    let of_strangers = surplus.min(room.strangers - quota / SHARE_OF_STRANGERS);
    let (mut removed, mut freed) = (0, 0);
    if of_strangers > 0 {
        let ids = oldest_of_strangers(connection, slug, limit)?;
        (removed, freed) = remove(connection, &ids, of_strangers)?;
    }
    if freed < surplus && removed < limit {
        let ids = oldest(connection, slug, limit - removed)?;
        removed += remove(connection, &ids, surplus - freed)?.0;
    }
    Ok(removed)
}

/// Removes these records. Returns how many.
pub(super) fn remove_all(connection: &Connection, ids: &[i64]) -> Result<usize, Error> {
    Ok(remove(connection, ids, i64::MAX)?.0)
}

/// Removes these records until `surplus` bytes are freed. Returns how many, and how many bytes.
fn remove(connection: &Connection, ids: &[i64], surplus: i64) -> Result<(usize, i64), Error> {
    let (mut removed, mut bytes, mut freed) = (0, 0, Freed::new());
    let mut size = connection.prepare_cached(
        "SELECT environment, bytes, is_strangers FROM log_record_sizes WHERE id = ?1",
    )?;
    let mut delete = connection.prepare_cached("DELETE FROM log_records WHERE id = ?1")?;
    for id in ids {
        if bytes >= surplus {
            break;
        }
        let (environment, of_one) = size.query_row([id], |row| {
            Ok((row.get::<_, i64>(0)?, (row.get(1)?, row.get(2)?)))
        })?;
        removed += delete.execute([id])?;
        bytes += of_one.0;
        add(&mut freed, environment, of_one);
    }
    take_off(connection, &freed)?;
    Ok((removed, bytes))
}

/// Adds the bytes of one record, with or without a player.
fn add(freed: &mut Freed, environment: i64, (bytes, is_strangers): (i64, bool)) {
    let (all, strangers) = freed.entry(environment).or_default();
    *all += bytes;
    if is_strangers {
        *strangers += bytes;
    }
}

fn environments(connection: &Connection, slug: &str) -> Result<Vec<i64>, Error> {
    Ok(connection
        .prepare_cached("SELECT id FROM log_environments WHERE project = ?1")?
        .query_map([slug], |row| row.get(0))?
        .collect::<Result<_, _>>()?)
}

/// The ids of the oldest records of a project that have no player, at most
/// `limit` of them.
fn oldest_of_strangers(
    connection: &Connection,
    slug: &str,
    limit: usize,
) -> Result<Vec<i64>, Error> {
    let mut select = connection.prepare_cached(
        "SELECT id FROM log_records WHERE environment = ?1 AND player IS NULL
         ORDER BY id LIMIT ?2",
    )?;
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut ids = Vec::new();
    for environment in environments(connection, slug)? {
        for id in select.query_map([environment, most], |row| row.get(0))? {
            ids.push(id?);
        }
    }
    ids.sort_unstable();
    ids.truncate(limit);
    Ok(ids)
}

/// The ids of the oldest records of a project, at most `limit` of them.
fn oldest(connection: &Connection, slug: &str, limit: usize) -> Result<Vec<i64>, Error> {
    let mut select = connection.prepare_cached(
        "SELECT id FROM log_records WHERE environment = ?1 AND level = ?2 ORDER BY id LIMIT ?3",
    )?;
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut ids = Vec::new();
    // Each query reads one range of the index.
    for environment in environments(connection, slug)? {
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

fn take_off(connection: &Connection, freed: &Freed) -> Result<(), Error> {
    let mut update = connection.prepare_cached(
        "UPDATE log_environments
         SET bytes = bytes - ?2, strangers_bytes = strangers_bytes - ?3 WHERE id = ?1",
    )?;
    for (environment, (all, strangers)) in freed {
        update.execute([environment, all, strangers])?;
    }
    Ok(())
}
