//! Frontend log records: the part of the store that keeps them.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::log::{
    ErrorCount, ErrorQuery, LogId, LogQuery, LogSearch, LogSearchPage, LogTail, LogTailPage,
    NewLogRecords,
};

use super::StoreError;

/// Operations on frontend log records. [`Store`](super::Store)'s documentation says
/// what every one promises.
#[async_trait]
pub trait LogStore: Send + Sync {
    /// Adds the frontend log records of one request, all or none. They wait
    /// for no other writes than their own kind. Their ids follow the order of
    /// the commits, also where the clock was set back by less than an hour.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if too many are waiting.
    async fn add_log_records(&self, records: NewLogRecords) -> Result<(), StoreError>;

    /// Frontend log records of one environment, newest first.
    async fn list_log_records(&self, query: LogQuery) -> Result<LogSearchPage, StoreError>;

    /// Frontend log records of one environment that come after another one, in
    /// the order in which they were committed: whoever asks again after the last
    /// of them has missed none and gets none twice.
    async fn list_log_records_after(&self, tail: LogTail) -> Result<LogTailPage, StoreError>;

    /// Frontend log records of one environment that are as asked for, newest
    /// first. One call looks at a bounded number of records, found or not, and
    /// says where the next one goes on.
    async fn search_log_records(&self, search: LogSearch) -> Result<LogSearchPage, StoreError>;

    /// How many errors and warnings an environment's log had, by deployment; the
    /// one that had some last comes first. They are counted as records are added,
    /// so this takes the same time however many records there are, and they are
    /// known for [`ERRORS_KNOWN`](platform_domain::log::ERRORS_KNOWN), also where
    /// the records themselves were swept.
    async fn count_errors(&self, query: ErrorQuery) -> Result<Vec<ErrorCount>, StoreError>;

    /// The id of the last record, whatever its environment, where `now` is the
    /// time; of none, the least id.
    async fn last_log_id(&self, now: Millis) -> Result<LogId, StoreError>;

    /// Removes frontend log records that were received before `before`, oldest
    /// first, at most `limit` of them. Answers how many.
    async fn sweep_log_records(&self, before: Millis, limit: usize) -> Result<usize, StoreError>;

    /// Removes the oldest frontend log records of every project, of both its
    /// environments, whose records count for more than `quota` bytes: until
    /// they do not, or about `limit` of them all are gone, more where one is
    /// flooded. Records without a player go before all others while they count
    /// for more than half of the quota. Answers how many; none if no project is
    /// over it.
    async fn sweep_log_quota(&self, quota: u64, limit: usize) -> Result<usize, StoreError>;

    /// Removes frontend log records of projects that were removed for good, at
    /// most `limit` of them, and once a project has none left, the numbers of its
    /// errors. Returns how many records and environments it removed; none if
    /// nothing is left of such projects.
    async fn sweep_removed_logs(&self, limit: usize) -> Result<usize, StoreError>;

    /// What the frontend log records of a project count for, in bytes: their
    /// texts, and what each takes beside them.
    async fn log_bytes(&self, slug: &str) -> Result<u64, StoreError>;
}
