//! Frontend log records of several levels in one order.
//!
//! Each level is one range of the index; the next record of all of them is
//! always at the head of one. So no more is read than is answered.

use platform_domain::log::StoredLogRecord;
use platform_protocol::log::LogLevel;
use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator as _;
use rusqlite::{Row, Rows};

use super::error::Error;
use super::log_rows::{TEXTS, record};

/// Which end comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    OldestFirst,
    NewestFirst,
}

impl Order {
    /// As SQL says it.
    pub(super) const fn as_sql(self) -> &'static str {
        match self {
            Self::OldestFirst => "ASC",
            Self::NewestFirst => "DESC",
        }
    }
}

/// The records of one level, at the next one.
pub(super) struct Range<'statement> {
    pub(super) level: LogLevel,
    pub(super) rows: Rows<'statement>,
}

impl<'statement> Range<'statement> {
    /// The records that a statement answers.
    pub(super) fn begin(level: LogLevel, mut rows: Rows<'statement>) -> rusqlite::Result<Self> {
        rows.advance()?;
        Ok(Self { level, rows })
    }
}

/// The range whose next record is the first of all.
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

/// The first records of all ranges, at most `limit` of them, and none after
/// `bytes` of their texts; and whether there are more.
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

/// Bytes of a record's texts, as JSON writes them: a control character takes six.
pub(super) fn text_bytes(row: &Row<'_>) -> rusqlite::Result<usize> {
    let mut bytes = 0;
    for index in TEXTS {
        // What is not set is null, which has none.
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
