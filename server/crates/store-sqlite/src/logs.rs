//! Frontend log records.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::log::{
    ErrorCount, ErrorQuery, LogId, LogQuery, LogSearch, LogSearchPage, LogTail, LogTailPage,
    NewLogRecords, StoredLogRecord,
};
use platform_protocol::log::LogLevel;
use platform_protocol::names::Environment;
use platform_store::{LogStore, StoreError};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::error::Error;
use super::log_ranges::{self, Order, Range};
use super::log_rows::{COLUMNS, find_environment};
use super::store::SqliteStore;
use super::{error_counts, log_quota, log_search, takedown};

#[async_trait]
impl LogStore for SqliteStore {
    async fn add_log_records(&self, records: NewLogRecords) -> Result<(), StoreError> {
        self.logs
            .write(move |connection| add_log_records(connection, &records))
            .await
    }

    async fn list_log_records(&self, query: LogQuery) -> Result<LogSearchPage, StoreError> {
        self.logs
            .read_much(move |connection| list_log_records(connection, &query))
            .await
    }

    async fn list_log_records_after(&self, tail: LogTail) -> Result<LogTailPage, StoreError> {
        self.logs
            .read_much(move |connection| list_log_records_after(connection, &tail))
            .await
    }

    async fn search_log_records(&self, search: LogSearch) -> Result<LogSearchPage, StoreError> {
        self.logs
            .read_much(move |connection| log_search::search(connection, &search))
            .await
    }

    async fn count_errors(&self, query: ErrorQuery) -> Result<Vec<ErrorCount>, StoreError> {
        self.logs
            .read_much(move |connection| error_counts::list(connection, &query))
            .await
    }

    async fn last_log_id(
        &self,
        slug: &str,
        environment: Environment,
        now: Millis,
    ) -> Result<LogId, StoreError> {
        let slug = slug.to_owned();
        self.logs
            .read_much(move |connection| last_log_id_of(connection, &slug, environment, now))
            .await
    }

    async fn sweep_log_records(&self, before: Millis, limit: usize) -> Result<usize, StoreError> {
        self.logs
            .write(move |connection| log_quota::sweep_log_records(connection, before, limit))
            .await
    }

    async fn sweep_log_quota(&self, quota: u64, limit: usize) -> Result<usize, StoreError> {
        self.logs
            .write(move |connection| log_quota::sweep_log_quota(connection, quota, limit))
            .await
    }

    async fn sweep_removed_logs(&self, limit: usize) -> Result<usize, StoreError> {
        let slugs = self.logs.read_much(log_quota::list_projects).await?;
        // A removed project never comes back, so what is read here is still true when the records
        // are removed.
        let removed = self
            .main
            .read_much(move |connection| takedown::find_removed(connection, &slugs))
            .await?;
        match removed {
            None => Ok(0),
            Some(slug) => {
                self.logs
                    .write(move |connection| log_quota::sweep_project(connection, &slug, limit))
                    .await
            }
        }
    }

    async fn log_bytes(&self, slug: &str) -> Result<u64, StoreError> {
        let slug = slug.to_owned();
        self.logs
            .read_much(move |connection| log_quota::log_bytes(connection, &slug))
            .await
    }
}

/// How far ahead of the clock the last record's time may be to be trusted.
const AHEAD_MILLIS: Millis = 60 * 60 * 1_000;

/// Adds the records of one request, in their order.
pub(super) fn add_log_records(connection: &Connection, new: &NewLogRecords) -> Result<(), Error> {
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
    let mut last = first;
    for (id, entry) in (first..).zip(&new.entries) {
        last = id;
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
    connection
        .prepare_cached(
            "UPDATE log_environments SET bytes = bytes + added.all_of_them,
                 strangers_bytes = strangers_bytes + added.of_strangers,
                 ungrouped = ungrouped OR ?4
             FROM (
                 SELECT sum(bytes) AS all_of_them, sum(bytes * is_strangers) AS of_strangers
                 FROM log_record_sizes WHERE id BETWEEN ?2 AND ?3
             ) AS added
             WHERE id = ?1",
        )?
        .execute(params![environment, first, last, new.has_errors()])?;
    super::error_counts::add(connection, environment, new)
}

/// The first id for the records of `new`: after all committed ones, so that a reader that has
/// reached an id has read everything before it.
fn next_id(connection: &Connection, new: &NewLogRecords) -> Result<i64, Error> {
    let last = last_log_id(connection, new.received_at)?;
    let next = LogId::first_of(new.received_at).0.max(last.0 + 1);
    let count = i64::try_from(new.entries.len()).unwrap_or(i64::MAX);
    // After the year 2248 there are no ids.
    next.checked_add(count).ok_or(StoreError::Busy)?;
    Ok(next)
}

/// The id of the last record. A record from a time when the clock was far ahead does not count:
/// otherwise all later records would get that time until it has come.
pub(super) fn last_log_id(connection: &Connection, now: Millis) -> Result<LogId, Error> {
    let last: Option<i64> = connection
        .prepare_cached("SELECT max(id) FROM log_records WHERE id < ?1")?
        .query_row([end(now).0], |row| row.get(0))?;
    Ok(LogId(last.unwrap_or(0)))
}

/// The id of the last record of one environment, as [`last_log_id`] is that of all.
fn last_log_id_of(
    connection: &Connection,
    slug: &str,
    environment: Environment,
    now: Millis,
) -> Result<LogId, Error> {
    let Some(environment) = find_environment(connection, slug, environment)? else {
        return Ok(LogId(0));
    };
    let mut newest = connection.prepare_cached(
        "SELECT max(id) FROM log_records WHERE environment = ?1 AND level = ?2 AND id < ?3",
    )?;
    let mut last = 0;
    // Each level is one range of the index.
    for level in LogLevel::ALL {
        let which = params![environment, level as i64, end(now).0];
        let found: Option<i64> = newest.query_row(which, |row| row.get(0))?;
        last = last.max(found.unwrap_or(0));
    }
    Ok(LogId(last))
}

/// The upper bound of the ids that count at the time `now`.
fn end(now: Millis) -> LogId {
    LogId::first_of(now.saturating_add(AHEAD_MILLIS))
}

fn environment_id(
    connection: &Connection,
    slug: &str,
    environment: Environment,
) -> Result<i64, Error> {
    if let Some(id) = find_environment(connection, slug, environment)? {
        return Ok(id);
    }
    connection
        .prepare_cached("INSERT INTO log_environments (project, environment) VALUES (?1, ?2)")?
        .execute([slug, environment.as_str()])?;
    Ok(connection.last_insert_rowid())
}

/// Records of one environment, newest first.
pub(super) fn list_log_records(
    connection: &Connection,
    query: &LogQuery,
) -> Result<LogSearchPage, Error> {
    // One transaction: if a record were removed between two levels, the page would mix two states.
    let transaction = connection.unchecked_transaction()?;
    let Some(environment) = find_environment(&transaction, &query.slug, query.environment)? else {
        return Ok(LogSearchPage::default());
    };
    let before = query.before.unwrap_or(LogId(i64::MAX));
    let (records, more) = read(
        &transaction,
        (environment, query.level),
        (LogId(-1), before),
        Order::NewestFirst,
        (query.limit, query.bytes),
    )?;
    let last = records.last().map(|record| record.id);
    Ok(LogSearchPage {
        next: last.filter(|_| more),
        records,
    })
}

/// Records of one environment that come after another one, oldest first.
pub(super) fn list_log_records_after(
    connection: &Connection,
    tail: &LogTail,
) -> Result<LogTailPage, Error> {
    let transaction = connection.unchecked_transaction()?;
    let Some(environment) = find_environment(&transaction, &tail.slug, tail.environment)? else {
        return Ok(LogTailPage::default());
    };
    let between = (tail.after, end(tail.now));
    let read = |order| {
        let which = (environment, tail.level);
        let bounds = (tail.limit, tail.bytes);
        read(&transaction, which, between, order, bounds)
    };
    let (records, full) = read(Order::OldestFirst)?;
    let mut page = LogTailPage {
        records,
        skipped: 0,
        full,
    };
    let Some(backlog) = tail.backlog.filter(|_| full) else {
        return Ok(page);
    };
    let mut count = transaction.prepare_cached(
        "SELECT count(*) FROM log_records
         WHERE environment = ?1 AND level = ?2 AND id > ?3 AND id < ?4",
    )?;
    let mut waiting: usize = 0;
    for level in levels(tail.level) {
        let which = params![environment, level as i64, between.0.0, between.1.0];
        let found: i64 = count.query_row(which, |row| row.get(0))?;
        waiting = waiting.saturating_add(usize::try_from(found).unwrap_or(usize::MAX));
    }
    if waiting > backlog {
        let (mut newest, _) = read(Order::NewestFirst)?;
        newest.reverse();
        page.skipped = waiting - newest.len();
        page.records = newest;
    }
    Ok(page)
}

/// This level and the more severe ones.
fn levels(least: LogLevel) -> impl Iterator<Item = LogLevel> {
    let all = LogLevel::ALL.into_iter();
    all.filter(move |level| *level >= least)
}

/// The records of an environment with at least the level `least` and ids between two others, within
/// limits of number and bytes; and whether there are more.
fn read(
    connection: &Connection,
    (environment, least): (i64, LogLevel),
    (after, before): (LogId, LogId),
    order: Order,
    (limit, bytes): (usize, usize),
) -> Result<(Vec<StoredLogRecord>, bool), Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM log_records
         WHERE environment = ?1 AND level = ?2 AND id > ?3 AND id < ?4 ORDER BY id {}",
        order.as_sql()
    );
    let mut statements = Vec::new();
    for level in levels(least) {
        statements.push((level, connection.prepare_cached(&sql)?));
    }
    let mut ranges = Vec::new();
    for (level, statement) in &mut statements {
        let which = params![environment, *level as i64, after.0, before.0];
        let rows = statement.query(which)?;
        ranges.push(Range::begin(*level, rows)?);
    }
    log_ranges::take(&mut ranges, order, limit, bytes)
}
