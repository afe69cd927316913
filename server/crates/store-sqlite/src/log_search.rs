//! Searching frontend log records.

use platform_domain::log::{LogId, LogSearch, LogSearchPage};
use platform_protocol::log::LogLevel;
use platform_store::StoreError;
use regex::{Regex, RegexBuilder};
use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator as _;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Rows, Statement, params};
use uuid::Uuid;

use super::error::Error;
use super::log_ranges::{Order, Range, first, text_bytes};
use super::log_rows::{COLUMNS, TEXTS, find_environment, record};

/// How many records one search reads at most.
const LOOKED_AT: usize = 1_500;
/// How many bytes of their texts one search reads at most.
const BYTES: usize = 1_000_000;

/// Returns matching records, newest first, with a bounded cost per call.
pub(super) fn search(connection: &Connection, search: &LogSearch) -> Result<LogSearchPage, Error> {
    // One transaction, so that all levels are from the same moment.
    let transaction = connection.unchecked_transaction()?;
    let Some(environment) = find_environment(&transaction, &search.slug, search.environment)?
    else {
        return Ok(LogSearchPage::default());
    };
    let player = search.player.map_or("", |_| "AND player = ?5");
    let sql = format!(
        "SELECT {COLUMNS} FROM log_records
         WHERE environment = ?1 AND level = ?2 AND id < ?3 AND id >= ?4 {player}
         ORDER BY id DESC"
    );
    let levels = LogLevel::ALL.into_iter();
    let levels: Vec<_> = levels.filter(|level| *level >= search.level).collect();
    let mut statements = Vec::new();
    for _ in &levels {
        statements.push(transaction.prepare_cached(&sql)?);
    }
    let mut ranges = Vec::new();
    for (level, statement) in levels.into_iter().zip(&mut statements) {
        let rows = start(statement, environment, level, search)?;
        ranges.push(Range::begin(level, rows)?);
    }
    collect(&mut ranges, search)
}

fn start<'statement>(
    statement: &'statement mut Statement<'_>,
    environment: i64,
    level: LogLevel,
    search: &LogSearch,
) -> rusqlite::Result<Rows<'statement>> {
    let before = search.before.map_or(i64::MAX, |before| before.0);
    let from = search.from.map_or(0, |from| LogId::first_of(from).0);
    let level = level as i64;
    match search.player.as_ref().map(Uuid::as_bytes) {
        Some(player) => statement.query(params![environment, level, before, from, player]),
        None => statement.query(params![environment, level, before, from]),
    }
}

fn collect(ranges: &mut [Range<'_>], search: &LogSearch) -> Result<LogSearchPage, Error> {
    let text = search.text.as_deref().map(pattern).transpose()?;
    let mut page = LogSearchPage::default();
    let (mut looked_at, mut bytes, mut taken) = (0, 0, 0);
    while let Some(range) = first(ranges, Order::NewestFirst)? {
        let Some(row) = range.rows.get() else { break };
        let id = LogId(row.get(0)?);
        looked_at += 1;
        let of_source = match search.source {
            Some(source) => row.get_ref(2)? == ValueRef::Text(source.as_str().as_bytes()),
            None => true,
        };
        if of_source && has(row, text.as_ref(), &mut bytes)? {
            taken += text_bytes(row)?;
            page.records.push(record(row, range.level)?);
        }
        range.rows.advance()?;
        let is_full = page.records.len() >= search.limit || taken >= search.bytes;
        if is_full || looked_at >= LOOKED_AT || bytes >= BYTES {
            let more = first(ranges, Order::NewestFirst)?.is_some();
            page.next = more.then_some(id);
            break;
        }
    }
    Ok(page)
}

/// A pattern that finds a text anywhere, ignoring case.
fn pattern(text: &str) -> Result<Regex, Error> {
    RegexBuilder::new(&regex::escape(text))
        .case_insensitive(true)
        .build()
        .map_err(|error| StoreError::Database(Box::new(error)).into())
}

/// Whether one of the row's texts contains the pattern; adds up their bytes.
fn has(row: &Row<'_>, text: Option<&Regex>, bytes: &mut usize) -> rusqlite::Result<bool> {
    let Some(text) = text else { return Ok(true) };
    for index in TEXTS {
        // A missing text is null.
        let Ok(value) = row.get_ref(index)?.as_str() else {
            continue;
        };
        *bytes += value.len();
        if text.is_match(value) {
            return Ok(true);
        }
    }
    Ok(false)
}
