//! The storage of frontend log records, and removing the oldest ones.

use platform_domain::clock::Millis;
use platform_domain::log::LogId;
use platform_store::StoreError;
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::Database;
use super::error::Error;
use super::log_days::{self, Sizes};
use super::rows::{count, get, number};
use super::transaction::Transaction;

/// How many times as much is removed from a project that is over twice its quota.
const FLOODED: usize = 8;
/// Records without a player's token may take this fraction of a quota (one divided by this) if
/// those with one need the rest: anybody can send them.
const SHARE_OF_STRANGERS: i64 = 2;

/// The size of a project's records, in bytes.
#[derive(Clone, Copy, Debug)]
struct Room {
    all: i64,
    strangers: i64,
}

/// Removes records that were received before `before`, oldest first, at most
/// `limit` of them or a whole day. Returns how many.
pub(super) async fn sweep_old(
    database: &Database,
    before: Millis,
    limit: usize,
) -> Result<usize, StoreError> {
    let before = LogId::first_of(before).0;
    let dropped = log_days::drop_old(database, before, limit).await?;
    let left = limit.saturating_sub(dropped);
    let before = log_days::end_of_few(database, before).await?;
    let oldest = database
        .rows(
            "SELECT old.environment, old.id FROM log_environments e
             CROSS JOIN LATERAL (
                 SELECT r.environment, r.id FROM log_records r
                 WHERE r.environment = e.id AND r.id < $1 ORDER BY r.id LIMIT $2) AS old
             ORDER BY old.id, old.environment LIMIT $2",
            &[&before, &count(left)],
        )
        .await?;
    if oldest.is_empty() {
        return Ok(dropped);
    }
    let removed = transact!(database, transaction => remove_rows(&transaction, &oldest))?;
    Ok(dropped + removed)
}

/// Removes the records of these players, at most `limit` of them. Returns how many.
pub(super) async fn forget(
    database: &Database,
    players: &[Uuid],
    limit: usize,
) -> Result<usize, StoreError> {
    let rows = database
        .rows_of_many(
            "SELECT r.environment, r.id FROM log_records r
             WHERE r.environment = ANY(ARRAY(SELECT id FROM log_environments))
               AND r.player = ANY($1) LIMIT $2",
            &[&players, &count(limit)],
        )
        .await?;
    transact!(database, transaction => forget_rows(&transaction, &rows, players))
}

async fn forget_rows(
    transaction: &Transaction,
    rows: &[Row],
    players: &[Uuid],
) -> Result<usize, Error> {
    let removed = remove_rows(transaction, rows).await?;
    transaction
        .execute(
            "UPDATE log_error_groups SET begun_by = NULL WHERE begun_by = ANY($1)",
            &[&players],
        )
        .await?;
    Ok(removed)
}

async fn remove_rows(transaction: &Transaction, rows: &[Row]) -> Result<usize, Error> {
    let mut ids = Vec::new();
    for row in rows {
        ids.push((get(row, 0)?, get(row, 1)?));
    }
    Ok(remove(transaction, &ids, i64::MAX).await?.0)
}

/// Removes the oldest records of a project, at most `limit` of them; if there are none, everything
/// else about its environments. Returns the number of removed records or environments.
pub(super) async fn sweep_project(
    database: &Database,
    slug: &str,
    limit: usize,
) -> Result<usize, StoreError> {
    transact!(database, transaction => sweep_one(&transaction, slug, limit))
}

async fn sweep_one(transaction: &Transaction, slug: &str, limit: usize) -> Result<usize, Error> {
    let environments = lock_environments(transaction, slug).await?;
    let ids = oldest(transaction, &environments, "", limit).await?;
    let (removed, _) = remove(transaction, &ids, i64::MAX).await?;
    if removed > 0 {
        return Ok(removed);
    }
    for sql in [
        "DELETE FROM log_error_alerts WHERE environment = ANY($1)",
        "DELETE FROM log_error_counts WHERE environment = ANY($1)",
        "DELETE FROM log_error_hours WHERE environment = ANY($1)",
        "DELETE FROM log_error_groups WHERE environment = ANY($1)",
        "DELETE FROM log_days WHERE environment = ANY($1)",
    ] {
        transaction.execute(sql, &[&environments]).await?;
    }
    let removed = transaction
        .execute(
            "DELETE FROM log_environments WHERE id = ANY($1)",
            &[&environments],
        )
        .await?;
    Ok(number(removed))
}

/// Removes the oldest records of the projects whose records exceed `quota` bytes, about `limit` of
/// them in all; more if a project grows faster than that removes. Records without a player are
/// removed first, as long as they take more than their fraction. Returns how many; 0 if no project
/// exceeds the quota.
pub(super) async fn sweep_quota(
    database: &Database,
    quota: u64,
    limit: usize,
) -> Result<usize, StoreError> {
    let quota = i64::try_from(quota).unwrap_or(i64::MAX);
    let over = database
        .rows(
            "SELECT project FROM log_environments
             GROUP BY project HAVING sum(bytes) > $1::bigint ORDER BY project",
            &[&quota],
        )
        .await?;
    // Every call serves each of them: a flooded project must not delay the others.
    let share = limit.div_ceil(over.len().max(1));
    let mut removed = 0;
    for row in &over {
        let slug: &str = get(row, 0)?;
        removed += make_room_of(database, slug, quota, share).await?;
    }
    Ok(removed)
}

async fn make_room_of(
    database: &Database,
    slug: &str,
    quota: i64,
    share: usize,
) -> Result<usize, StoreError> {
    transact!(database, transaction => make_room(&transaction, slug, quota, share))
}

/// Removes records of a project until the rest fits into `quota`, about `limit` of them. Returns
/// how many.
async fn make_room(
    transaction: &Transaction,
    slug: &str,
    quota: i64,
    limit: usize,
) -> Result<usize, Error> {
    let environments = lock_environments(transaction, slug).await?;
    let row = transaction
        .row(
            "SELECT coalesce(sum(bytes), 0)::bigint, coalesce(sum(strangers_bytes), 0)::bigint
             FROM log_environments WHERE id = ANY($1)",
            &[&environments],
        )
        .await?
        .ok_or(Error::Changed)?;
    let room = Room {
        all: get(&row, 0)?,
        strangers: get(&row, 1)?,
    };
    let limit = if room.all / 2 > quota {
        limit * FLOODED
    } else {
        limit
    };
    let surplus = room.all - quota;
    if surplus <= 0 {
        return Ok(0);
    }
    let of_strangers = surplus.min(room.strangers - quota / SHARE_OF_STRANGERS);
    let (mut removed, mut freed) = (0, 0);
    if of_strangers > 0 {
        let ids = oldest(transaction, &environments, "AND player IS NULL", limit).await?;
        (removed, freed) = remove(transaction, &ids, of_strangers).await?;
    }
    if freed < surplus && removed < limit {
        let ids = oldest(transaction, &environments, "", limit - removed).await?;
        removed += remove(transaction, &ids, surplus - freed).await?.0;
    }
    Ok(removed)
}

/// Locks the environments of a project, in the order of their ids. Returns these ids.
async fn lock_environments(transaction: &Transaction, slug: &str) -> Result<Vec<i64>, Error> {
    let rows = transaction
        .rows(
            "SELECT id FROM log_environments WHERE project = $1 ORDER BY id FOR UPDATE",
            &[&slug],
        )
        .await?;
    rows.iter().map(|row| get(row, 0)).collect()
}

/// Returns the oldest records of these environments that match `condition`, at most `limit` of
/// them: the environment and the id of each.
async fn oldest(
    transaction: &Transaction,
    environments: &[i64],
    condition: &str,
    limit: usize,
) -> Result<Vec<(i64, i64)>, Error> {
    let sql = format!(
        "SELECT old.environment, old.id FROM unnest($1::bigint[]) AS wanted (id)
         CROSS JOIN LATERAL (
             SELECT environment, id FROM log_records
             WHERE environment = wanted.id {condition} ORDER BY id LIMIT $2) AS old
         ORDER BY old.id, old.environment LIMIT $2"
    );
    let rows = transaction
        .rows(&sql, &[&environments, &count(limit)])
        .await?;
    rows.iter()
        .map(|row| Ok((get(row, 0)?, get(row, 1)?)))
        .collect()
}

/// Removes these records, in their order, until `surplus` bytes are freed. Returns how many, and
/// how many bytes.
async fn remove(
    transaction: &Transaction,
    records: &[(i64, i64)],
    surplus: i64,
) -> Result<(usize, i64), Error> {
    if records.is_empty() {
        return Ok((0, 0));
    }
    let (environments, ids): (Vec<i64>, Vec<i64>) = records.iter().copied().unzip();
    // The environments are locked first, as everywhere, in the order of their ids.
    let mut locked = environments.clone();
    locked.sort_unstable();
    locked.dedup();
    transaction
        .rows(
            "SELECT 1 FROM log_environments WHERE id = ANY($1) ORDER BY id FOR UPDATE",
            &[&locked],
        )
        .await?;
    let rows = transaction
        .rows(
            "WITH chosen AS (
                 SELECT environment, id FROM (
                     SELECT r.environment, r.id,
                         sum(r.bytes) OVER (ORDER BY wanted.place) - r.bytes AS before
                     FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY
                         AS wanted (environment, id, place)
                     JOIN log_records r
                         ON r.environment = wanted.environment AND r.id = wanted.id) AS sized
                 WHERE before < $3::bigint)
             DELETE FROM log_records r USING chosen
             WHERE r.environment = chosen.environment AND r.id = chosen.id
             RETURNING r.environment, r.id, r.bytes, r.player IS NULL",
            &[&environments, &ids, &surplus],
        )
        .await?;
    let (mut freed, mut bytes) = (Sizes::default(), 0);
    for row in &rows {
        let (environment, id, of_one): (i64, i64, i64) = (get(row, 0)?, get(row, 1)?, get(row, 2)?);
        let strangers = if get(row, 3)? { of_one } else { 0 };
        freed.add(
            (environment, log_days::day_of(id)),
            (-1, -of_one, -strangers),
        );
        bytes += of_one;
    }
    freed.write(transaction).await?;
    Ok((rows.len(), bytes))
}
