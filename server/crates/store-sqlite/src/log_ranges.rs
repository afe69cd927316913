//! Frontend log records of several levels in one order.
//!
//! Each level is one range of the index, and the next record overall is always at the head of one
//! of them. So no more is read than is returned.

use platform_domain::log::StoredLogRecord;
use platform_protocol::log::LogLevel;
use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator as _;
use rusqlite::{Row, Rows};

use super::error::Error;
use super::log_rows::{TEXTS, record};

/// The order of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    OldestFirst,
    NewestFirst,
}

impl Order {
    /// The SQL keyword.
    pub(super) const fn as_sql(self) -> &'static str {
        match self {
            Self::OldestFirst => "ASC",
            Self::NewestFirst => "DESC",
        }
    }
}

/// The records of one level, with the next one read ahead.
pub(super) struct Range<'statement> {
    pub(super) level: LogLevel,
    pub(super) rows: Rows<'statement>,
}

impl<'statement> Range<'statement> {
    /// Starts reading the rows of a statement.
    pub(super) fn begin(level: LogLevel, mut rows: Rows<'statement>) -> rusqlite::Result<Self> {
        rows.advance()?;
        Ok(Self { level, rows })
    }
}

/// The range with the first of all next records.
pub(super) fn first<'ranges, 'statement>(
    ranges: &'ranges mut [Range<'statement>],
    order: Order,
) -> rusqlite::Result<Option<&'ranges mut Range<'statement>>> {
    let mut found: Option<(i64, &mut Range<'statement>)> = None;
    for range in ranges {
        let Some(row) = range.rows.get() else {
            continue;
        };
        let id: i64 = row.get(0)?;
        let comes_first = |other: i64| match order {
            Order::OldestFirst => id < other,
            Order::NewestFirst => id > other,
        };
        if found.as_ref().is_none_or(|(other, _)| comes_first(*other)) {
            found = Some((id, range));
        }
    }
    Ok(found.map(|(_, range)| range))
}

/// Takes the first records of all ranges: at most `limit`, and none after `bytes` of their texts;
/// and whether there are more.
pub(super) fn take(
    ranges: &mut [Range<'_>],
    order: Order,
    limit: usize,
    bytes: usize,
) -> Result<(Vec<StoredLogRecord>, bool), Error> {
    let (mut records, mut taken) = (Vec::new(), 0);
    while let Some(range) = first(ranges, order)? {
        let Some(row) = range.rows.get() else { break };
        if records.len() >= limit || taken >= bytes {
            return Ok((records, true));
        }
        taken += text_bytes(row)?;
        records.push(record(row, range.level)?);
        range.rows.advance()?;
    }
    Ok((records, false))
}

/// The size of a record's texts in JSON: a control character takes six bytes.
pub(super) fn text_bytes(row: &Row<'_>) -> rusqlite::Result<usize> {
    let mut bytes = 0;
    for index in TEXTS {
        // A missing text is null and has no bytes.
        bytes += row.get_ref(index)?.as_str().map_or(0, json_bytes);
    }
    Ok(bytes)
}

fn json_bytes(text: &str) -> usize {
    let escaped = |byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        ..b' ' => 6,
        _ => 1,
    };
    text.bytes().map(escaped).sum()
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
