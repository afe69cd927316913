//! Frontend log records as the platform stores them.

use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use uuid::Uuid;

use super::counting::DAY;
use super::page::PageId;
use crate::clock::Millis;

/// How long the numbers of errors are kept, in milliseconds.
pub const ERRORS_KNOWN: Millis = 90 * DAY;

/// A record's id; a record that was committed later has a greater one. It contains the millisecond
/// of receipt, or a later one if an earlier record has that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId(pub i64);

/// Bits of an id that number the records of one millisecond.
const NUMBER_BITS: u32 = 20;
/// The last millisecond that has ids, in the year 2248.
const LAST_MILLISECOND: Millis = Millis::MAX >> NUMBER_BITS;

impl LogId {
    /// The least id of a record that was received at `time`.
    #[must_use]
    pub fn first_of(time: Millis) -> Self {
        Self(time.clamp(0, LAST_MILLISECOND) << NUMBER_BITS)
    }

    /// The greatest id of a record that was received at `time`.
    #[must_use]
    pub fn last_of(time: Millis) -> Self {
        Self(Self::first_of(time).0 | ((1 << NUMBER_BITS) - 1))
    }

    /// When the record was received.
    #[must_use]
    pub const fn received_at(self) -> Millis {
        self.0 >> NUMBER_BITS
    }
}

/// One record of a page, within the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// When it happened: the page's clock, corrected as far as possible.
    pub time: Millis,
    /// How severe it is.
    pub level: LogLevel,
    /// What made it.
    pub source: LogSource,
    /// The text.
    pub message: String,
    /// The stack of an error.
    pub stack: Option<String>,
    /// The file or resource.
    pub url: Option<String>,
    /// Line in that file.
    pub line: Option<u32>,
    /// Column in that line.
    pub column: Option<u32>,
    /// What the game added: one JSON value as text.
    pub metadata: Option<String>,
    /// How many equal records it stands for.
    pub count: u32,
}

/// The records of one request, with the player and the environment, but without the network address
/// and the browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLogRecords {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// The deployment that was current.
    pub deployment: Option<Uuid>,
    /// The player, if the page had a token.
    pub player: Option<Uuid>,
    /// The page.
    pub page: PageId,
    /// When the request arrived.
    pub received_at: Millis,
    /// The records, in the page's order.
    pub entries: Vec<LogEntry>,
}

impl NewLogRecords {
    /// Returns whether one of them is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|entry| entry.level == LogLevel::Error)
    }
}

/// A stored record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLogRecord {
    /// Its id, which also says when it was received.
    pub id: LogId,
    /// The deployment that was current then.
    pub deployment: Option<Uuid>,
    /// The player, if known.
    pub player: Option<Uuid>,
    /// The page.
    pub page: PageId,
    /// The page's record.
    pub entry: LogEntry,
}

/// A query for the records of one environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogQuery {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// Only records of at least this level.
    pub level: LogLevel,
    /// Only records before this one.
    pub before: Option<LogId>,
    /// How many, at most.
    pub limit: usize,
    /// The limit for their texts in bytes.
    pub bytes: usize,
}

/// A query for the records of one environment after another record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTail {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// Only records of at least this level.
    pub level: LogLevel,
    /// Only records after this one.
    pub after: LogId,
    /// The time now. Records from a time when the clock was far ahead are returned only once that
    /// time has come: a reader that continued after them would miss all earlier ones.
    pub now: Millis,
    /// How many, at most.
    pub limit: usize,
    /// The limit for their texts in bytes.
    pub bytes: usize,
    /// If more than this many follow it, all but the last `limit` are left out.
    pub backlog: Option<usize>,
}

/// Records in the order of their arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTailPage {
    /// Oldest first.
    pub records: Vec<StoredLogRecord>,
    /// How many earlier ones were left out.
    pub skipped: usize,
    /// Whether there may already be more.
    pub full: bool,
}

/// A search for records of one environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSearch {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// Only records of at least this level.
    pub level: LogLevel,
    /// Only records of this source.
    pub source: Option<LogSource>,
    /// Only records of this player's pages.
    pub player: Option<Uuid>,
    /// Only records that contain this in message, stack, address or metadata. Case is ignored.
    pub text: Option<String>,
    /// Only records that were received at this time or later.
    pub from: Option<Millis>,
    /// Only records before this one.
    pub before: Option<LogId>,
    /// How many, at most.
    pub limit: usize,
    /// The limit for their texts in bytes.
    pub bytes: usize,
}

impl LogSearch {
    /// A query for all records of an environment.
    #[must_use]
    pub fn all(slug: String, environment: Environment, limit: usize, bytes: usize) -> Self {
        Self {
            slug,
            environment,
            level: LogLevel::Debug,
            source: None,
            player: None,
            text: None,
            from: None,
            before: None,
            limit,
            bytes,
        }
    }
}

/// The result of one search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSearchPage {
    /// Newest first.
    pub records: Vec<StoredLogRecord>,
    /// The last record that was read, if there are more: the next search continues before it.
    pub next: Option<LogId>,
}

/// A query for an environment's number of errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorQuery {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// From the beginning of the hour that contains this time.
    pub from: Millis,
    /// To the end of the hour that contains this time or ends at it.
    pub to: Millis,
    /// How many deployments, at most.
    pub limit: usize,
}

/// The errors of one deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    /// The deployment; `None` if nothing was deployed.
    pub deployment: Option<Uuid>,
    /// The number of errors, with repetitions.
    pub errors: u64,
    /// The number of warnings, with repetitions.
    pub warnings: u64,
    /// When the last of either was received.
    pub last_at: Millis,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_time_and_say_it() {
        let now = 1_800_000_000_000;
        assert_eq!(LogId::first_of(now).received_at(), now);
        assert_eq!(LogId::last_of(now).received_at(), now);
        assert!(LogId::last_of(now) < LogId::first_of(now + 1));
        assert_eq!(LogId::first_of(-5), LogId(0));
        assert!(LogId::last_of(Millis::MAX).0 > 0);
    }
}
