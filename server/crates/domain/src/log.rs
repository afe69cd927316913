//! Frontend log records as the platform keeps them.

use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use uuid::Uuid;

use super::counting::DAY;
use super::page::PageId;
use crate::clock::Millis;

/// How long the numbers of errors are known, in milliseconds.
pub const ERRORS_KNOWN: Millis = 90 * DAY;

/// Names a record; what was committed later has a greater id. In it is the
/// millisecond of its receipt, or a later one where a record before it had that.
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

/// What a page told, within the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// When it came up, by the page's clock as far as that can be.
    pub time: Millis,
    /// How grave it is.
    pub level: LogLevel,
    /// What made it.
    pub source: LogSource,
    /// What is shown.
    pub message: String,
    /// The stack of an error.
    pub stack: Option<String>,
    /// The file or resource.
    pub url: Option<String>,
    /// Line in that file.
    pub line: Option<u32>,
    /// Column in that line.
    pub column: Option<u32>,
    /// What the game added: the text of one JSON value.
    pub metadata: Option<String>,
    /// How many equal records it stands for.
    pub count: u32,
}

/// The records of one request. It says who played and where, and nothing of
/// the network address or the browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLogRecords {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// What was deployed there.
    pub deployment: Option<Uuid>,
    /// The player, if the page had a token.
    pub player: Option<Uuid>,
    /// The page.
    pub page: PageId,
    /// When the request came.
    pub received_at: Millis,
    /// The records, in the page's order.
    pub entries: Vec<LogEntry>,
}

/// A record as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLogRecord {
    /// Its id, which also says when it was received.
    pub id: LogId,
    /// What was deployed then.
    pub deployment: Option<Uuid>,
    /// The player, if known.
    pub player: Option<Uuid>,
    /// The page.
    pub page: PageId,
    /// What the page told.
    pub entry: LogEntry,
}

/// Which records of one environment are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogQuery {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// Only records as grave as this, or graver.
    pub level: LogLevel,
    /// Only records before this one.
    pub before: Option<LogId>,
    /// How many, at most.
    pub limit: usize,
    /// Bytes of their texts after which there are no more of them.
    pub bytes: usize,
}

/// The records of one environment that come after another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTail {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// Only records as grave as this, or graver.
    pub level: LogLevel,
    /// Only records after this one.
    pub after: LogId,
    /// The time. Records from when a clock was far ahead of it come only when
    /// that time has come: who had read them would miss all that come before.
    pub now: Millis,
    /// How many, at most.
    pub limit: usize,
    /// Bytes of their texts after which there are no more of them.
    pub bytes: usize,
    /// Where more than this many come after it, all but the last `limit` of
    /// them are left out.
    pub backlog: Option<usize>,
}

/// Records in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTailPage {
    /// Oldest first.
    pub records: Vec<StoredLogRecord>,
    /// How many before them were left out.
    pub skipped: usize,
    /// Whether there may be more behind them already.
    pub full: bool,
}

/// Which records of one environment are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSearch {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// Only records as grave as this, or graver.
    pub level: LogLevel,
    /// Only records that this made.
    pub source: Option<LogSource>,
    /// Only records of this player's pages.
    pub player: Option<Uuid>,
    /// Only records with this in message, stack, address or metadata, in
    /// whatever case.
    pub text: Option<String>,
    /// Only records that were received then or later.
    pub from: Option<Millis>,
    /// Only records before this one.
    pub before: Option<LogId>,
    /// How many, at most.
    pub limit: usize,
    /// Bytes of their texts after which there are no more of them.
    pub bytes: usize,
}

impl LogSearch {
    /// Looks for every record of an environment.
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

/// What one look has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSearchPage {
    /// Newest first.
    pub records: Vec<StoredLogRecord>,
    /// The last one that was looked at, if there are more: the next look goes
    /// on before it.
    pub next: Option<LogId>,
}

/// Of which time the errors of an environment are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorQuery {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// From the beginning of the hour that this is in.
    pub from: Millis,
    /// To the end of the hour that this is the end of or in.
    pub to: Millis,
    /// How many deployments, at most.
    pub limit: usize,
}

/// What went wrong with one deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    /// The deployment, or none where nothing was deployed.
    pub deployment: Option<Uuid>,
    /// How many errors there were, each repeat for itself.
    pub errors: u64,
    /// How many warnings there were, each repeat for itself.
    pub warnings: u64,
    /// When the last of both was received.
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
