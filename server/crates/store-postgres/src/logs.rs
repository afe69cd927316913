//! Frontend log records: the operations.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::counting::{HOUR, Span};
use platform_domain::log::{
    ErrorCount, ErrorQuery, LogId, LogQuery, LogSearch, LogSearchPage, LogTail, LogTailPage,
    NewLogRecords,
};
use platform_protocol::names::Environment;
use platform_store::{LogStore, StoreError};
use uuid::Uuid;

use super::error::Error;
use super::rows::{count, get};
use super::store::PostgresStore;
use super::{log_quota, log_reads, takedown};

/// How far ahead of the clock the last record's time may be to be trusted.
const AHEAD_MILLIS: Millis = 60 * 60 * 1_000;

/// Returns the upper bound of the ids that count at the time `now`.
pub(super) fn end(now: Millis) -> LogId {
    LogId::first_of(now.saturating_add(AHEAD_MILLIS))
}

#[async_trait]
impl LogStore for PostgresStore {
    async fn add_log_records(&self, records: NewLogRecords) -> Result<(), StoreError> {
        if records.entries.is_empty() {
            return Ok(());
        }
        self.logs.writer.add(records).await
    }

    async fn list_log_records(&self, query: LogQuery) -> Result<LogSearchPage, StoreError> {
        log_reads::list(&self.logs.database, &query).await
    }

    async fn list_log_records_after(&self, tail: LogTail) -> Result<LogTailPage, StoreError> {
        log_reads::list_after(&self.logs.database, &tail).await
    }

    async fn search_log_records(&self, search: LogSearch) -> Result<LogSearchPage, StoreError> {
        log_reads::search(&self.logs.database, &search).await
    }

    async fn count_errors(&self, query: ErrorQuery) -> Result<Vec<ErrorCount>, StoreError> {
        let rows = self
            .logs
            .database
            .rows(
                "SELECT c.deployment, sum(c.errors)::bigint, sum(c.warnings)::bigint,
                     max(c.last_at)
                 FROM log_environments e JOIN log_error_counts c ON c.environment = e.id
                 WHERE e.project = $1 AND e.environment = $2 AND c.hour >= $3 AND c.hour < $4
                 GROUP BY c.deployment ORDER BY max(c.last_at) DESC, c.deployment LIMIT $5",
                &[
                    &query.slug,
                    &query.environment.as_str(),
                    &Span::Hour.start(query.from),
                    &Span::Hour.start(query.to.saturating_add(HOUR - 1)),
                    &count(query.limit),
                ],
            )
            .await?;
        let counts = rows.iter().map(|row| {
            let deployment: Uuid = get(row, 0)?;
            Ok(ErrorCount {
                deployment: (!deployment.is_nil()).then_some(deployment),
                errors: get::<i64>(row, 1)?.unsigned_abs(),
                warnings: get::<i64>(row, 2)?.unsigned_abs(),
                last_at: get(row, 3)?,
            })
        });
        Ok(counts.collect::<Result<_, Error>>()?)
    }

    async fn last_log_id(
        &self,
        slug: &str,
        environment: Environment,
        now: Millis,
    ) -> Result<LogId, StoreError> {
        let row = self
            .logs
            .database
            .row(
                "SELECT coalesce((SELECT max(r.id) FROM log_records r
                     WHERE r.environment = e.id AND r.id < $3), 0)
                 FROM log_environments e WHERE e.project = $1 AND e.environment = $2",
                &[&slug, &environment.as_str(), &end(now).0],
            )
            .await?;
        let last = row.as_ref().map_or(Ok(0), |row| get(row, 0))?;
        Ok(LogId(last))
    }

    async fn sweep_log_records(&self, before: Millis, limit: usize) -> Result<usize, StoreError> {
        log_quota::sweep_old(&self.logs.database, before, limit).await
    }

    async fn sweep_log_quota(&self, quota: u64, limit: usize) -> Result<usize, StoreError> {
        log_quota::sweep_quota(&self.logs.database, quota, limit).await
    }

    async fn sweep_removed_logs(&self, limit: usize) -> Result<usize, StoreError> {
        let sql = "SELECT DISTINCT project FROM log_environments ORDER BY project";
        let rows = self.logs.database.rows(sql, &[]).await?;
        let slugs: Vec<String> = rows
            .iter()
            .map(|row| get(row, 0))
            .collect::<Result<_, _>>()?;
        // A removed project never comes back, so what is read here is still true when the records
        // are removed.
        match takedown::find_removed(&self.main, &slugs).await? {
            None => Ok(0),
            Some(slug) => log_quota::sweep_project(&self.logs.database, &slug, limit).await,
        }
    }

    async fn log_bytes(&self, slug: &str) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce(sum(bytes), 0)::bigint FROM log_environments WHERE project = $1";
        let row = self.logs.database.row(sql, &[&slug]).await?;
        let bytes: i64 = row.as_ref().map_or(Ok(0), |row| get(row, 0))?;
        u64::try_from(bytes).map_err(|_| StoreError::Corrupt {
            table: "log_environments",
            column: "bytes",
            row: slug.to_owned(),
        })
    }
}
