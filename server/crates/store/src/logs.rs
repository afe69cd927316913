//! Frontend log records: the part of the store that keeps them.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::log::{
    ErrorCount, ErrorQuery, LogId, LogQuery, LogSearch, LogSearchPage, LogTail, LogTailPage,
    NewLogRecords,
};
use platform_protocol::names::Environment;

use super::StoreError;

/// Operations on frontend log records. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait LogStore: Send + Sync {
    /// Adds the frontend log records of one request, all or none. They wait
    /// only for other log records. In each environment, their ids follow the
    /// order of the commits, even if the clock was set back by less than an hour.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if too many are waiting.
    async fn add_log_records(&self, records: NewLogRecords) -> Result<(), StoreError>;

    /// Returns frontend log records of one environment, newest first.
    async fn list_log_records(&self, query: LogQuery) -> Result<LogSearchPage, StoreError>;

    /// Returns the frontend log records of one environment that were committed
    /// after a given record, in the order of their commits. A caller that
    /// continues after the last record misses none and gets none twice.
    async fn list_log_records_after(&self, tail: LogTail) -> Result<LogTailPage, StoreError>;

    /// Returns the frontend log records of one environment that match a search,
    /// newest first. One call reads a bounded number of records, and returns
    /// where the next call continues.
    async fn search_log_records(&self, search: LogSearch) -> Result<LogSearchPage, StoreError>;

    /// Returns the numbers of errors and warnings in an environment's log by
    /// deployment. The deployment with the latest error comes first. They are
    /// counted when records are added, so the cost does not depend on the
    /// number of records, and they are kept for
    /// [`ERRORS_KNOWN`](platform_domain::log::ERRORS_KNOWN), even after the
    /// records were removed.
    async fn count_errors(&self, query: ErrorQuery) -> Result<Vec<ErrorCount>, StoreError>;

    /// Returns the id of the last record of an environment at the time `now`;
    /// the least id if there is no record.
    async fn last_log_id(
        &self,
        slug: &str,
        environment: Environment,
        now: Millis,
    ) -> Result<LogId, StoreError>;

    /// Removes frontend log records that were received before `before`, oldest
    /// first, at most `limit` of them. Returns their number. A back end that
    /// keeps the records of each day (in UTC) apart removes a day at once,
    /// however many they are, and may keep very many until their day is over.
    async fn sweep_log_records(&self, before: Millis, limit: usize) -> Result<usize, StoreError>;

    /// Removes the oldest frontend log records of each project whose two
    /// environments together exceed `quota` bytes, until no project exceeds it
    /// or about `limit` records are removed; more if a project exceeds it by
    /// far. Records without a player are removed first while they take more
    /// than half of the quota. Returns the number of removed records; 0 if no
    /// project exceeds the quota.
    async fn sweep_log_quota(&self, quota: u64, limit: usize) -> Result<usize, StoreError>;

    /// Removes frontend log records of projects that were removed for good, at
    /// most `limit` of them, and then the error counts of a project without
    /// records. Returns the number of removed records and environments; 0 if
    /// nothing is left of such projects.
    async fn sweep_removed_logs(&self, limit: usize) -> Result<usize, StoreError>;

    /// Returns the size of a project's frontend log records in bytes: their
    /// texts, and a fixed amount for each record.
    async fn log_bytes(&self, slug: &str) -> Result<u64, StoreError>;
}
