//! The days of frontend log records: each is a partition of the table, made when its first record
//! comes and dropped as a whole when it is old.

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
/// Records of one day that are removed one by one. A day with more waits until all of it is old:
/// it is then dropped at once, whatever its size.
const FEW: i64 = 100_000;

/// The day of a record's id, counted from the Unix epoch.
pub(super) const fn day_of(id: i64) -> i64 {
    LogId(id).received_at() / DAY
}

/// The first id of a day.
fn first_of(day: i64) -> i64 {
    LogId::first_of(day.saturating_mul(DAY)).0
}

/// Makes the partitions of these days, where they are not there.
pub(super) async fn make(database: &Database, days: &BTreeSet<i64>) -> Result<(), StoreError> {
    transact!(database, transaction => make_all(&transaction, days))
}

async fn make_all(transaction: &Transaction, days: &BTreeSet<i64>) -> Result<(), Error> {
    // The lock that attaching takes as well: it stops nobody who reads or writes.
    transaction
        .run("LOCK TABLE log_records IN SHARE UPDATE EXCLUSIVE MODE")
        .await?;
    let known: BTreeSet<i64> = list(transaction).await?.into_iter().collect();
    for day in days.difference(&known) {
        transaction.run(&partition(*day)).await?;
    }
    Ok(())
}

/// The statements that make the partition of a day. It is made apart and then attached: that stops
/// nobody who reads or writes others.
pub(super) fn partition(day: i64) -> String {
    let (from, to) = (first_of(day), first_of(day + 1));
    // Without an end for the last day that ids reach.
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

/// The days that have a partition, oldest first.
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

/// Drops the oldest days all of whose records are before the id `before`, until they had `limit`
/// records. Returns how many; none where others use the records for so long that they cannot be
/// locked.
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
    // Everybody who reads or adds records waits behind this, so it must not wait for long.
    transaction.run("SET LOCAL lock_timeout = '500ms'").await?;
    // The environments first, as everywhere, in the order of their numbers.
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
            // It had its first record of that day just now.
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

/// The id that the records which are removed one by one come before, where all before `before` are
/// old: those of the day of `before` stay where they are many.
pub(super) async fn end_of_few(database: &Database, before: i64) -> Result<i64, StoreError> {
    let day = day_of(before);
    let sql = "SELECT coalesce(sum(records), 0)::bigint FROM log_days WHERE day = $1";
    let row = database.row(sql, &[&day]).await?;
    let records: i64 = row.as_ref().map_or(Ok(0), |row| get(row, 0))?;
    Ok(if records > FEW { first_of(day) } else { before })
}

/// What records of environments and days are more or less: how many, their bytes, and the bytes of
/// those without a player.
#[derive(Debug, Default)]
pub(super) struct Sizes(BTreeMap<(i64, i64), (i64, i64, i64)>);

impl Sizes {
    /// Adds records of an environment and a day.
    pub(super) fn add(&mut self, of: (i64, i64), (records, bytes, strangers): (i64, i64, i64)) {
        let known = self.0.entry(of).or_default();
        *known = (known.0 + records, known.1 + bytes, known.2 + strangers);
    }

    fn records(&self) -> i64 {
        self.0.values().map(|of| of.0).sum()
    }

    /// Adds to what is known of the environments and of their days. The environments are locked.
    pub(super) async fn write(&self, transaction: &Transaction) -> Result<(), Error> {
        self.write_environments(transaction).await?;
        self.write_days(transaction).await
    }

    /// Adds to what is known of the environments alone.
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

    /// Adds to what is known of the days alone.
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
