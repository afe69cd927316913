//! New frontend log records: many requests in one commit, with ids in the order of the commits of
//! each environment.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join;
use platform_domain::clock::Millis;
use platform_domain::counting::Span;
use platform_domain::log::{ERRORS_KNOWN, LogEntry, LogId, NewLogRecords};
use platform_protocol::log::LogLevel;
use platform_store::{LOG_WRITES, StoreError};
use uuid::Uuid;

use super::database::Database;
use super::error::Error;
use super::group::{Group, Request};
use super::log_days::{self, Sizes};
use super::logs::end;
use super::rows::get;
use super::transaction::Transaction;

/// How many requests one transaction takes.
const GROUP: usize = 64;
/// How often a group creates partitions: another node may drop an old one meanwhile.
const MADE: u32 = 3;
/// The size of a record without its texts, in bytes: its row and its index entries.
const ROW_BYTES: usize = 160;

/// Adds new records.
#[derive(Debug)]
pub(super) struct LogWriter(Group<NewLogRecords, ()>);

impl LogWriter {
    /// Starts the writing task.
    pub(super) fn start(database: Database) -> Self {
        Self(Group::start(LOG_WRITES, GROUP, move |requests| {
            let database = database.clone();
            async move { write(&database, requests).await }
        }))
    }

    /// Adds the records of one request with the next group.
    pub(super) async fn add(&self, records: NewLogRecords) -> Result<(), StoreError> {
        let first = LogId::first_of(records.received_at).0;
        let count = i64::try_from(records.entries.len()).unwrap_or(i64::MAX);
        // After the year 2248 there are no ids.
        first.checked_add(count).ok_or(StoreError::Busy)?;
        self.0.write(records).await
    }

    /// Returns how many requests wait.
    pub(super) fn waiting(&self) -> usize {
        self.0.waiting()
    }

    /// Writes what is queued, and ends the task.
    pub(super) async fn close(&self) {
        self.0.close().await;
    }
}

/// Writes a group, and replies to each request. If one of them makes the transaction fail, each is
/// written in a transaction of its own.
async fn write(database: &Database, requests: Vec<Request<NewLogRecords, ()>>) {
    let all: Vec<&NewLogRecords> = requests.iter().map(|request| &request.input).collect();
    let written = add(database, &all).await;
    let why = match written {
        Err(StoreError::Uncertain(why)) => Some(StoreError::Uncertain(why)),
        Err(StoreError::Unavailable(why)) => Some(StoreError::Unavailable(why)),
        Err(_) if requests.len() > 1 => {
            for request in requests {
                let result = add(database, &[&request.input]).await;
                request.answer(result);
            }
            return;
        }
        Err(other) => Some(other),
        Ok(()) => None,
    };
    for request in requests {
        request.answer(match &why {
            None => Ok(()),
            Some(StoreError::Uncertain(why)) => Err(StoreError::Uncertain(why.clone())),
            Some(other) => Err(StoreError::Unavailable(other.to_string())),
        });
    }
}

/// Adds a group. If partitions for its days are missing, creates them first.
async fn add(database: &Database, requests: &[&NewLogRecords]) -> Result<(), StoreError> {
    let mut left = MADE;
    loop {
        let mut days = BTreeSet::new();
        let added =
            transact!(database, transaction => add_group(&transaction, requests, &mut days));
        match added {
            Err(StoreError::Missing { .. }) if left > 0 => log_days::make(database, &days).await?,
            other => return other,
        }
        left -= 1;
    }
}

/// The project and the name of an environment.
type Name<'a> = (&'a str, &'static str);

/// Adds a group. If a partition is missing, adds the days of the group's records to `days`.
async fn add_group(
    transaction: &Transaction,
    requests: &[&NewLogRecords],
    days: &mut BTreeSet<i64>,
) -> Result<(), Error> {
    let mut by_environment: BTreeMap<Name<'_>, Vec<&NewLogRecords>> = BTreeMap::new();
    for request in requests {
        let name = (request.slug.as_str(), request.environment.as_str());
        by_environment.entry(name).or_default().push(request);
    }
    let names: Vec<Name<'_>> = by_environment.keys().copied().collect();
    let known = lock_environments(transaction, &names).await?;
    let mut columns = Columns::default();
    let mut errors = Errors::new();
    let places = reserve(transaction, &known, &by_environment).await?;
    for (name, requests) in &by_environment {
        let Some((environment, mut next)) = places.get(name).copied() else {
            return Err(Error::Changed);
        };
        for request in requests {
            for entry in &request.entries {
                columns.push(environment, next, request, entry);
                next += 1;
            }
            count_errors(&mut errors, environment, request);
        }
    }
    // Both are sent before the first reply arrives, which saves a round trip while the environments
    // are locked. If the first one fails, so does the second.
    let sizes = columns.sizes();
    let inserted = columns.insert(transaction, days);
    let (inserted, counted) = join(inserted, sizes.write_days(transaction)).await;
    inserted.and(counted)?;
    add_errors(transaction, &errors).await
}

/// Locks environments, in the order of their ids, until the transaction ends. Adds missing ones.
async fn lock_environments<'a>(
    transaction: &Transaction,
    names: &[Name<'a>],
) -> Result<BTreeMap<Name<'a>, i64>, Error> {
    let (projects, environments): (Vec<&str>, Vec<&str>) = names.iter().copied().unzip();
    for made in [false, true] {
        let rows = transaction
            .rows(
                "SELECT e.id, wanted.place
                 FROM unnest($1::text[], $2::text[]) WITH ORDINALITY
                     AS wanted (project, environment, place)
                 JOIN log_environments e
                     ON e.project = wanted.project AND e.environment = wanted.environment
                 ORDER BY e.id FOR UPDATE OF e",
                &[&projects, &environments],
            )
            .await?;
        if rows.len() == names.len() {
            let mut known = BTreeMap::new();
            for row in &rows {
                let place: i64 = get(row, 1)?;
                let place = usize::try_from(place - 1).unwrap_or(usize::MAX);
                let name = names.get(place).copied().ok_or(Error::Changed)?;
                known.insert(name, get(row, 0)?);
            }
            return Ok(known);
        }
        if !made {
            transaction
                .execute(
                    "INSERT INTO log_environments (project, environment)
                     SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING",
                    &[&projects, &environments],
                )
                .await?;
        }
    }
    Err(Error::Changed)
}

/// Reserves ids for the records of each environment, and adds their bytes. Returns the id of each
/// environment and of its first new record.
async fn reserve<'a>(
    transaction: &Transaction,
    known: &BTreeMap<Name<'a>, i64>,
    requests: &BTreeMap<Name<'a>, Vec<&NewLogRecords>>,
) -> Result<BTreeMap<Name<'a>, (i64, i64)>, Error> {
    let (mut ids, mut counts, mut firsts, mut ends) = (vec![], vec![], vec![], vec![]);
    let (mut bytes, mut strangers, mut names) = (vec![], vec![], BTreeMap::new());
    let mut errors: Vec<bool> = Vec::new();
    for (name, requests) in requests {
        let Some(id) = known.get(name) else { continue };
        let now = requests.iter().map(|request| request.received_at).max();
        let now = now.unwrap_or_default();
        let size = |request: &&NewLogRecords| request.entries.iter().map(entry_bytes).sum::<i64>();
        let of_strangers = requests.iter().filter(|request| request.player.is_none());
        names.insert(*id, *name);
        ids.push(*id);
        counts.push(
            requests
                .iter()
                .map(|request| request.entries.len() as i64)
                .sum::<i64>(),
        );
        firsts.push(LogId::first_of(now).0);
        ends.push(end(now).0);
        bytes.push(requests.iter().map(size).sum::<i64>());
        strangers.push(of_strangers.map(size).sum::<i64>());
        errors.push(requests.iter().any(|request| request.has_errors()));
    }
    // New ids follow the last id. If a clock was far ahead when that id was assigned, it does not
    // count; then, and as long as there may be records of such a time (`far_id`), the last record
    // below `upto` counts.
    let rows = transaction
        .rows(
            "UPDATE log_environments e SET
                 last_id = greatest(
                     CASE WHEN e.last_id < new.upto THEN e.last_id ELSE 0 END,
                     CASE WHEN e.last_id < new.upto AND e.far_id = 0 THEN 0 ELSE coalesce(
                         (SELECT max(r.id) FROM log_records r
                          WHERE r.environment = e.id AND r.id < new.upto), 0) END,
                     new.first - 1) + new.count,
                 far_id = CASE WHEN greatest(e.last_id, e.far_id) < new.upto THEN 0
                     ELSE greatest(e.last_id, e.far_id) END,
                 bytes = e.bytes + new.bytes,
                 strangers_bytes = e.strangers_bytes + new.strangers,
                 ungrouped = e.ungrouped OR new.errors
             FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
                 $6::bigint[], $7::boolean[])
                 AS new (id, count, first, upto, bytes, strangers, errors)
             WHERE e.id = new.id RETURNING e.id, e.last_id - new.count + 1",
            &[&ids, &counts, &firsts, &ends, &bytes, &strangers, &errors],
        )
        .await?;
    let mut places = BTreeMap::new();
    for row in &rows {
        let id: i64 = get(row, 0)?;
        if let Some(name) = names.get(&id) {
            places.insert(*name, (id, get(row, 1)?));
        }
    }
    Ok(places)
}

/// Returns the size of a record, in bytes.
fn entry_bytes(entry: &LogEntry) -> i64 {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let texts = length(&entry.stack) + length(&entry.url) + length(&entry.metadata);
    i64::try_from(ROW_BYTES + entry.message.len() + texts).unwrap_or(i64::MAX)
}

/// The columns of new records.
#[derive(Default)]
struct Columns<'a> {
    environment: Vec<i64>,
    id: Vec<i64>,
    level: Vec<i16>,
    source: Vec<&'a str>,
    deployment: Vec<Option<Uuid>>,
    player: Vec<Option<Uuid>>,
    page: Vec<&'a [u8]>,
    time: Vec<i64>,
    message: Vec<&'a str>,
    stack: Vec<Option<&'a str>>,
    url: Vec<Option<&'a str>>,
    line: Vec<Option<i64>>,
    column: Vec<Option<i64>>,
    metadata: Vec<Option<&'a str>>,
    count: Vec<i64>,
    bytes: Vec<i64>,
}

impl<'a> Columns<'a> {
    fn push(&mut self, environment: i64, id: i64, new: &'a NewLogRecords, entry: &'a LogEntry) {
        self.environment.push(environment);
        self.id.push(id);
        self.level.push(entry.level as i16);
        self.source.push(entry.source.as_str());
        self.deployment.push(new.deployment);
        self.player.push(new.player);
        self.page.push(new.page.0.as_slice());
        self.time.push(entry.time);
        self.message.push(&entry.message);
        self.stack.push(entry.stack.as_deref());
        self.url.push(entry.url.as_deref());
        self.line.push(entry.line.map(i64::from));
        self.column.push(entry.column.map(i64::from));
        self.metadata.push(entry.metadata.as_deref());
        self.count.push(i64::from(entry.count));
        self.bytes.push(entry_bytes(entry));
    }

    /// Returns the number and the sizes of the records by environment and day.
    fn sizes(&self) -> Sizes {
        let mut sizes = Sizes::default();
        let records = self.environment.iter().zip(&self.id);
        for ((environment, id), (bytes, player)) in records.zip(self.bytes.iter().zip(&self.player))
        {
            let strangers = if player.is_none() { *bytes } else { 0 };
            let of = (*environment, log_days::day_of(*id));
            sizes.add(of, (1, *bytes, strangers));
        }
        sizes
    }

    async fn insert(
        &self,
        transaction: &Transaction,
        days: &mut BTreeSet<i64>,
    ) -> Result<(), Error> {
        let inserted = transaction
            .execute(
                "INSERT INTO log_records (environment, id, level, source, deployment, player, page,
                     time, message, stack, url, line, \"column\", metadata, count, bytes)
                 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::text[],
                     $5::uuid[], $6::uuid[], $7::bytea[], $8::bigint[], $9::text[], $10::text[],
                     $11::text[], $12::bigint[], $13::bigint[], $14::text[], $15::bigint[],
                     $16::bigint[])",
                &[
                    &self.environment,
                    &self.id,
                    &self.level,
                    &self.source,
                    &self.deployment,
                    &self.player,
                    &self.page,
                    &self.time,
                    &self.message,
                    &self.stack,
                    &self.url,
                    &self.line,
                    &self.column,
                    &self.metadata,
                    &self.count,
                    &self.bytes,
                ],
            )
            .await;
        match inserted {
            Err(error) if error.lacks_partition() => {
                days.extend(self.id.iter().map(|id| log_days::day_of(*id)));
                Err(StoreError::Missing {
                    table: "log_records",
                }
                .into())
            }
            other => other.map(drop),
        }
    }
}

/// The number of errors, the number of warnings, and the time of the last one, by environment, hour
/// and deployment (the nil UUID if there is none).
type Errors = BTreeMap<(i64, Millis, Uuid), (i64, i64, Millis)>;

fn count_errors(errors: &mut Errors, environment: i64, new: &NewLogRecords) {
    let of = |level| -> i64 {
        let entries = new.entries.iter().filter(|entry| entry.level == level);
        entries.map(|entry| i64::from(entry.count)).sum()
    };
    let (found, warnings) = (of(LogLevel::Error), of(LogLevel::Warn));
    if found + warnings == 0 {
        return;
    }
    let hour = Span::Hour.start(new.received_at);
    let key = (environment, hour, new.deployment.unwrap_or_default());
    let known = errors.entry(key).or_insert((0, 0, new.received_at));
    *known = (
        known.0 + found,
        known.1 + warnings,
        known.2.max(new.received_at),
    );
}

/// Adds to the counts of errors. Old rows are removed when a new one is added, so their number
/// stays bounded.
async fn add_errors(transaction: &Transaction, errors: &Errors) -> Result<(), Error> {
    if errors.is_empty() {
        return Ok(());
    }
    let environments: Vec<i64> = errors.keys().map(|key| key.0).collect();
    let hours: Vec<i64> = errors.keys().map(|key| key.1).collect();
    let deployments: Vec<Uuid> = errors.keys().map(|key| key.2).collect();
    let found: Vec<i64> = errors.values().map(|of| of.0).collect();
    let warnings: Vec<i64> = errors.values().map(|of| of.1).collect();
    let last: Vec<i64> = errors.values().map(|of| of.2).collect();
    let rows = transaction
        .rows(
            "INSERT INTO log_error_counts AS known
                 (environment, hour, deployment, errors, warnings, last_at)
             SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::bigint[],
                 $5::bigint[], $6::bigint[])
             ON CONFLICT (environment, hour, deployment) DO UPDATE SET
                 errors = known.errors + excluded.errors,
                 warnings = known.warnings + excluded.warnings,
                 last_at = greatest(known.last_at, excluded.last_at)
             RETURNING environment, hour, xmax = 0",
            &[
                &environments,
                &hours,
                &deployments,
                &found,
                &warnings,
                &last,
            ],
        )
        .await?;
    for row in &rows {
        if !get::<bool>(row, 2)? {
            continue;
        }
        let (environment, hour): (i64, i64) = (get(row, 0)?, get(row, 1)?);
        transaction
            .execute(
                "DELETE FROM log_error_counts WHERE environment = $1 AND hour < $2",
                &[&environment, &(hour - ERRORS_KNOWN)],
            )
            .await?;
    }
    Ok(())
}
