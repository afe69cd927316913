//! Reading frontend log records: pages, the records after another one, and searches.

use platform_domain::log::{
    LogEntry, LogId, LogQuery, LogSearch, LogSearchPage, LogTail, LogTailPage, StoredLogRecord,
};
use platform_domain::page::PageId;
use platform_protocol::log::{LogLevel, LogSource};
use platform_store::StoreError;
use regex::{Regex, RegexBuilder};
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::{Database, Value};
use super::error::Error;
use super::logs::end;
use super::rows::{bytes, get};

/// How many records one search looks at, at most.
const LOOKED_AT: usize = 1_500;
/// How many bytes of their texts one search looks at, at most.
const SEARCHED_BYTES: usize = 1_000_000;
/// How many bytes of texts one search fetches; after these, it fetches no more records.
const FETCHED_BYTES: usize = 4 * SEARCHED_BYTES;

/// The order of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    OldestFirst,
    NewestFirst,
}

impl Order {
    /// Returns the SQL keyword.
    const fn as_sql(self) -> &'static str {
        match self {
            Self::OldestFirst => "ASC",
            Self::NewestFirst => "DESC",
        }
    }
}

/// The records that a caller asks for.
struct Asked<'a> {
    /// The project and the environment.
    of: (&'a str, &'static str),
    least: LogLevel,
    player: Option<Uuid>,
    /// The ids are between these two, which are excluded.
    between: (LogId, LogId),
    order: Order,
    limit: usize,
    /// How many bytes of texts are read; after these, no more records are.
    bytes: usize,
    database: &'a Database,
}

impl Asked<'_> {
    /// Returns the query. Each level is one range of an index. The ranges are merged in order, so
    /// that no more is read than is asked for.
    fn sql(&self) -> String {
        let order = self.order.as_sql();
        let player = self.player.map_or("", |_| "AND player = $7");
        let levels = levels(self.least).map(|level| {
            let level = level as i16;
            format!(
                "(SELECT * FROM log_records WHERE environment = {ENVIRONMENT} AND level = {level}
                      AND id > $3 AND id < $4 {player} ORDER BY id {order} LIMIT $5)"
            )
        });
        let levels: Vec<String> = levels.collect();
        format!(
            "SELECT id, level, source, deployment, player, page, time, message, stack, url, line,
                 \"column\", metadata, count, total
             FROM (
                 SELECT merged.*, count(*) OVER () AS total,
                     sum(bytes - 160) OVER (ORDER BY id {order}) - (bytes - 160) AS before
                 FROM (SELECT * FROM ({}) AS each ORDER BY id {order} LIMIT $5) AS merged) AS counted
             WHERE before < $6::bigint ORDER BY id {order}",
            levels.join(" UNION ALL ")
        )
    }

    /// Reads the records: at most one more than the limit, and none after `bytes` of their texts.
    /// Also returns how many there would be without the limit of bytes.
    async fn fetch(&self) -> Result<(Vec<Row>, usize), StoreError> {
        let limit = i64::try_from(self.limit.saturating_add(1)).unwrap_or(i64::MAX);
        let most = i64::try_from(self.bytes).unwrap_or(i64::MAX).max(1);
        let mut values: Vec<Value<'_>> = vec![
            &self.of.0,
            &self.of.1,
            &self.between.0.0,
            &self.between.1.0,
            &limit,
            &most,
        ];
        if let Some(player) = &self.player {
            values.push(player);
        }
        let rows = self.database.rows(&self.sql(), &values).await?;
        let total: i64 = rows.first().map_or(Ok(0), |row| get(row, 14))?;
        Ok((rows, usize::try_from(total).unwrap_or(usize::MAX)))
    }

    /// Reads the records within the limits of number and bytes. Also returns whether there are
    /// more.
    async fn take(&self) -> Result<(Vec<StoredLogRecord>, bool), StoreError> {
        let (rows, total) = self.fetch().await?;
        let (mut records, mut taken) = (Vec::new(), 0);
        for row in &rows {
            if records.len() >= self.limit || taken >= self.bytes {
                return Ok((records, true));
            }
            let record = record(row)?;
            taken += text_bytes(&record.entry);
            records.push(record);
        }
        Ok((records, total > rows.len()))
    }
}

/// Returns this level and the more severe ones.
fn levels(least: LogLevel) -> impl Iterator<Item = LogLevel> {
    let all = LogLevel::ALL.into_iter();
    all.filter(move |level| *level >= least)
}

/// Selects the id of the environment `$2` of the project `$1`.
const ENVIRONMENT: &str =
    "(SELECT id FROM log_environments WHERE project = $1 AND environment = $2)";

/// Lists records of one environment, newest first.
pub(super) async fn list(
    database: &Database,
    query: &LogQuery,
) -> Result<LogSearchPage, StoreError> {
    let asked = Asked {
        of: (&query.slug, query.environment.as_str()),
        least: query.level,
        player: None,
        between: (LogId(-1), query.before.unwrap_or(LogId(i64::MAX))),
        order: Order::NewestFirst,
        limit: query.limit,
        bytes: query.bytes,
        database,
    };
    let (records, more) = asked.take().await?;
    let last = records.last().map(|record| record.id);
    Ok(LogSearchPage {
        next: last.filter(|_| more),
        records,
    })
}

/// Lists records of one environment that come after another one, oldest first.
pub(super) async fn list_after(
    database: &Database,
    tail: &LogTail,
) -> Result<LogTailPage, StoreError> {
    let mut asked = Asked {
        of: (&tail.slug, tail.environment.as_str()),
        least: tail.level,
        player: None,
        between: (tail.after, end(tail.now)),
        order: Order::OldestFirst,
        limit: tail.limit,
        bytes: tail.bytes,
        database,
    };
    let (records, full) = asked.take().await?;
    let mut page = LogTailPage {
        records,
        skipped: 0,
        full,
    };
    let Some(backlog) = tail.backlog.filter(|_| full) else {
        return Ok(page);
    };
    // First the newest records are read; then the records before the oldest of these are counted.
    // Records that are added meanwhile come after all of them.
    asked.order = Order::NewestFirst;
    let (mut newest, _) = asked.take().await?;
    newest.reverse();
    let Some(oldest) = newest.first() else {
        return Ok(page);
    };
    let before = count(database, tail, oldest.id).await?;
    if before.saturating_add(newest.len()) > backlog {
        page.skipped = before;
        page.records = newest;
    }
    Ok(page)
}

/// Counts the records after the tail's place and before another record.
async fn count(database: &Database, tail: &LogTail, before: LogId) -> Result<usize, StoreError> {
    let least = tail.level as i16;
    let sql = format!(
        "SELECT count(*) FROM log_records
         WHERE environment = {ENVIRONMENT} AND level = ANY($5) AND id > $3 AND id < $4"
    );
    let wanted: Vec<i16> = (least..=3).collect();
    let values: [Value<'_>; 5] = [
        &tail.slug,
        &tail.environment.as_str(),
        &tail.after.0,
        &before.0,
        &wanted,
    ];
    let row = database.row(&sql, &values).await?;
    let found: i64 = row.as_ref().map_or(Ok(0), |row| get(row, 0))?;
    Ok(usize::try_from(found).unwrap_or(usize::MAX))
}

/// Returns matching records, newest first, with a bounded cost per call.
pub(super) async fn search(
    database: &Database,
    search: &LogSearch,
) -> Result<LogSearchPage, StoreError> {
    // With a filter, a search looks at more records than it finds. Without one, the requested
    // number is enough.
    let looks = search.text.is_some() || search.source.is_some();
    let asked = Asked {
        of: (&search.slug, search.environment.as_str()),
        least: search.level,
        player: search.player,
        between: (
            LogId(search.from.map_or(-1, |from| LogId::first_of(from).0 - 1)),
            search.before.unwrap_or(LogId(i64::MAX)),
        ),
        order: Order::NewestFirst,
        limit: if looks {
            LOOKED_AT
        } else {
            search.limit.min(LOOKED_AT)
        },
        bytes: if looks { FETCHED_BYTES } else { search.bytes },
        database,
    };
    let text = search.text.as_deref().map(pattern).transpose()?;
    let (rows, total) = asked.fetch().await?;
    let mut page = LogSearchPage::default();
    let (mut looked_at, mut bytes, mut taken) = (0, 0, 0);
    for row in &rows {
        let record = record(row)?;
        let id = record.id;
        looked_at += 1;
        let of_source = search
            .source
            .is_none_or(|source| record.entry.source == source);
        if of_source && has(&record.entry, text.as_ref(), &mut bytes) {
            taken += text_bytes(&record.entry);
            page.records.push(record);
        }
        let is_full = page.records.len() >= search.limit || taken >= search.bytes;
        let is_enough = looked_at >= LOOKED_AT || bytes >= SEARCHED_BYTES;
        if is_full || is_enough || looked_at == rows.len() {
            page.next = (total > looked_at).then_some(id);
            break;
        }
    }
    Ok(page)
}

/// Returns a pattern that finds a text anywhere, ignoring case.
fn pattern(text: &str) -> Result<Regex, StoreError> {
    RegexBuilder::new(&regex::escape(text))
        .case_insensitive(true)
        .build()
        .map_err(|error| StoreError::Database(Box::new(error)))
}

/// Returns the texts of a record, which are searched and whose bytes are counted.
fn texts(entry: &LogEntry) -> impl Iterator<Item = &str> {
    let others = [&entry.stack, &entry.url, &entry.metadata];
    let others = others.into_iter().filter_map(|text| text.as_deref());
    std::iter::once(entry.message.as_str()).chain(others)
}

/// Returns whether one of the record's texts contains the pattern; adds up their bytes.
fn has(entry: &LogEntry, text: Option<&Regex>, bytes: &mut usize) -> bool {
    let Some(text) = text else { return true };
    texts(entry).any(|value| {
        *bytes += value.len();
        text.is_match(value)
    })
}

/// Returns the size of a record's texts in JSON: a control character takes six bytes.
fn text_bytes(entry: &LogEntry) -> usize {
    texts(entry).map(json_bytes).sum()
}

fn json_bytes(text: &str) -> usize {
    let escaped = |byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        ..b' ' => 6,
        _ => 1,
    };
    text.bytes().map(escaped).sum()
}

fn record(row: &Row) -> Result<StoredLogRecord, Error> {
    let id: i64 = get(row, 0)?;
    let corrupt = |column| StoreError::Corrupt {
        table: "log_records",
        column,
        row: id.to_string(),
    };
    let level: i16 = get(row, 1)?;
    let level = LogLevel::ALL
        .into_iter()
        .find(|known| *known as i16 == level);
    let source: &str = get(row, 2)?;
    let source = LogSource::ALL
        .into_iter()
        .find(|known| known.as_str() == source);
    let number = |index| -> Result<Option<u32>, Error> {
        let number: Option<i64> = get(row, index)?;
        Ok(number.map(|number| u32::try_from(number).unwrap_or(u32::MAX)))
    };
    Ok(StoredLogRecord {
        id: LogId(id),
        deployment: get(row, 3)?,
        player: get(row, 4)?,
        page: PageId(bytes(row, 5, "log_records", "page")?),
        entry: LogEntry {
            time: get(row, 6)?,
            level: level.ok_or_else(|| corrupt("level"))?,
            source: source.ok_or_else(|| corrupt("source"))?,
            message: get(row, 7)?,
            stack: get(row, 8)?,
            url: get(row, 9)?,
            line: number(10)?,
            column: number(11)?,
            metadata: get(row, 12)?,
            count: number(13)?.ok_or_else(|| corrupt("count"))?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_as_long_as_their_json() {
        for text in ["", "plain", "a\n\tb \"c\" \\", "\u{1}\u{1f}", "träumt 🚀"] {
            let json = serde_json::to_string(text).unwrap();
            assert_eq!(json_bytes(text), json.len() - 2, "{text:?}");
        }
    }
}
