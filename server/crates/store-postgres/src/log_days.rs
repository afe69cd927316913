//! The days of frontend log records. Each day is a partition of the table: it is created when its
//! first record arrives, and dropped as a whole when it is old.

use std::collections::{BTreeMap, BTreeSet};

use platform_domain::clock::Millis;
use platform_domain::log::LogId;
use platform_store::StoreError;

use super::database::Database;
use super::error::Error;
use super::rows::get;
use super::transaction::Transaction;

/// A day in UTC.
const DAY: Millis = 24 * 60 * 60 * 1_000;
/// How many records of one day are removed one by one at most. A day with more records stays until
/// all of it is old, and is then dropped at once, whatever its size.
const FEW: i64 = 100_000;

/// Returns the day of a record's id, counted from the Unix epoch.
pub(super) const fn day_of(id: i64) -> i64 {
    LogId(id).received_at() / DAY
}

/// Returns the first id of a day.
fn first_of(day: i64) -> i64 {
    LogId::first_of(day.saturating_mul(DAY)).0
}

/// Creates the missing partitions of these days.
pub(super) async fn make(database: &Database, days: &BTreeSet<i64>) -> Result<(), StoreError> {
    transact!(database, transaction => make_all(&transaction, days))
}

async fn make_all(transaction: &Transaction, days: &BTreeSet<i64>) -> Result<(), Error> {
    // Attaching a partition takes the same lock. It does not block readers or writers.
    transaction
        .run("LOCK TABLE log_records IN SHARE UPDATE EXCLUSIVE MODE")
        .await?;
    let known: BTreeSet<i64> = list(transaction).await?.into_iter().collect();
    for day in days.difference(&known) {
        transaction.run(&partition(*day)).await?;
    }
    Ok(())
}

/// Returns the statements that create the partition of a day. It is created as a separate table and
/// then attached, which does not block readers or writers of other partitions.
pub(super) fn partition(day: i64) -> String {
    let (from, to) = (first_of(day), first_of(day + 1));
    // The last day that ids can reach has no end.
    let to = if day_of(to) > day {
        to.to_string()
    } else {
        "MAXVALUE".to_owned()
    };
    format!(
        "CREATE TABLE log_records_{day} (LIKE log_records INCLUDING CONSTRAINTS);
         ALTER TABLE log_records ATTACH PARTITION log_records_{day}
             FOR VALUES FROM ({from}) TO ({to})"
    )
}

/// Returns the days that have a partition, oldest first.
async fn list(transaction: &Transaction) -> Result<Vec<i64>, Error> {
    let rows = transaction
        .rows(
            "SELECT substr(c.relname, length('log_records_') + 1)::bigint AS day
             FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
             WHERE i.inhparent = 'log_records'::regclass ORDER BY day",
            &[],
        )
        .await?;
    rows.iter().map(|row| get(row, 0)).collect()
}

/// Drops the oldest days whose records all come before the id `before`, until `limit` records are
/// removed. Stops early if others use the table for so long that it cannot be locked. Returns how
/// many records were removed.
pub(super) async fn drop_old(
    database: &Database,
    before: i64,
    limit: usize,
) -> Result<usize, StoreError> {
    let days = transact!(database, transaction => list(&transaction))?;
    let mut dropped = 0;
    for day in days.into_iter().filter(|day| *day < day_of(before)) {
        if dropped >= limit {
            break;
        }
        match transact!(database, transaction => drop_day(&transaction, day)) {
            Ok(records) => dropped += records,
            Err(StoreError::Busy) => break,
            Err(other) => return Err(other),
        }
    }
    Ok(dropped)
}

async fn drop_day(transaction: &Transaction, day: i64) -> Result<usize, Error> {
    // All readers and writers of records wait behind this lock, so its own wait must be short.
    transaction.run("SET LOCAL lock_timeout = '500ms'").await?;
    // The environments are locked first, as everywhere, in the order of their ids.
    let rows = transaction
        .rows(
            "SELECT id FROM log_environments
             WHERE id IN (SELECT environment FROM log_days WHERE day = $1) ORDER BY id FOR UPDATE",
            &[&day],
        )
        .await?;
    let locked: BTreeSet<i64> = rows
        .iter()
        .map(|row| get(row, 0))
        .collect::<Result<_, _>>()?;
    transaction
        .run("LOCK TABLE log_records IN ACCESS EXCLUSIVE MODE")
        .await?;
    let rows = transaction
        .rows(
            "DELETE FROM log_days WHERE day = $1
             RETURNING environment, -records, -bytes, -strangers_bytes",
            &[&day],
        )
        .await?;
    let mut freed = Sizes::default();
    for row in &rows {
        let environment = get(row, 0)?;
        if !locked.contains(&environment) {
            // Its first record of that day was added just now.
            return Err(Error::Changed);
        }
        freed.add(
            (environment, day),
            (get(row, 1)?, get(row, 2)?, get(row, 3)?),
        );
    }
    freed.write_environments(transaction).await?;
    transaction
        .run(&format!("DROP TABLE log_records_{day}"))
        .await?;
    Ok(usize::try_from(-freed.records()).unwrap_or(usize::MAX))
}

/// Returns the id before which records are removed one by one, if all records before `before` are
/// old. It is `before` itself, or the first id of its day if that day has too many records.
pub(super) async fn end_of_few(database: &Database, before: i64) -> Result<i64, StoreError> {
    let day = day_of(before);
    let sql = "SELECT coalesce(sum(records), 0)::bigint FROM log_days WHERE day = $1";
    let row = database.row(sql, &[&day]).await?;
    let records: i64 = row.as_ref().map_or(Ok(0), |row| get(row, 0))?;
    Ok(if records > FEW { first_of(day) } else { before })
}

/// How the number of records, their bytes, and the bytes of those without a player change, by
/// environment and day.
#[derive(Debug, Default)]
pub(super) struct Sizes(BTreeMap<(i64, i64), (i64, i64, i64)>);

impl Sizes {
    /// Adds a change of one environment and day.
    pub(super) fn add(&mut self, of: (i64, i64), (records, bytes, strangers): (i64, i64, i64)) {
        let known = self.0.entry(of).or_default();
        *known = (known.0 + records, known.1 + bytes, known.2 + strangers);
    }

    fn records(&self) -> i64 {
        self.0.values().map(|of| of.0).sum()
    }

    /// Writes the changes to the rows of the environments and of their days. The caller has locked
    /// the environments.
    pub(super) async fn write(&self, transaction: &Transaction) -> Result<(), Error> {
        self.write_environments(transaction).await?;
        self.write_days(transaction).await
    }

    /// Writes the changes to the rows of the environments only.
    async fn write_environments(&self, transaction: &Transaction) -> Result<(), Error> {
        let mut sums: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for ((environment, _), (_, bytes, strangers)) in &self.0 {
            let sum = sums.entry(*environment).or_default();
            *sum = (sum.0 + bytes, sum.1 + strangers);
        }
        let environments: Vec<i64> = sums.keys().copied().collect();
        let bytes: Vec<i64> = sums.values().map(|sum| sum.0).collect();
        let strangers: Vec<i64> = sums.values().map(|sum| sum.1).collect();
        transaction
            .execute(
                "UPDATE log_environments e SET bytes = e.bytes + new.bytes,
                     strangers_bytes = e.strangers_bytes + new.strangers
                 FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])
                     AS new (id, bytes, strangers)
                 WHERE e.id = new.id",
                &[&environments, &bytes, &strangers],
            )
            .await
            .map(drop)
    }

    /// Writes the changes to the rows of the days only.
    pub(super) async fn write_days(&self, transaction: &Transaction) -> Result<(), Error> {
        let environments: Vec<i64> = self.0.keys().map(|of| of.0).collect();
        let days: Vec<i64> = self.0.keys().map(|of| of.1).collect();
        let records: Vec<i64> = self.0.values().map(|of| of.0).collect();
        let bytes: Vec<i64> = self.0.values().map(|of| of.1).collect();
        let strangers: Vec<i64> = self.0.values().map(|of| of.2).collect();
        transaction
            .execute(
                "INSERT INTO log_days AS known
                     (environment, day, records, bytes, strangers_bytes)
                 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[],
                     $5::bigint[])
                 ON CONFLICT (environment, day) DO UPDATE SET
                     records = known.records + excluded.records,
                     bytes = known.bytes + excluded.bytes,
                     strangers_bytes = known.strangers_bytes + excluded.strangers_bytes",
                &[&environments, &days, &records, &bytes, &strangers],
            )
            .await
            .map(drop)
    }
}
