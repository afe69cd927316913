//! The sweep: records that are older than the setting, and the oldest ones of projects over their
//! quota.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::LogsState;
use crate::clock::Millis;
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::projects::removal::sweep_removed;
use crate::store::{Store, StoreError};

/// The interval of checking which projects exceed their quota.
const LOOK: Duration = Duration::from_secs(10);
/// After this number of checks, old records are removed, too.
const LOOKS_BY_AGE: u64 = 60;
/// The maximum number of records that one write of the sweep removes, so that other writes do not
/// wait long.
const BATCH: usize = 50;
/// The maximum number of writes per check for projects over the quota: removing old records must
/// not wait for the end of a flood.
const QUOTA_WRITES: usize = 1_000;
/// The maximum number of groups, and of counts, that one write removes.
const GROUPS: usize = 500;
const DAY_MILLIS: Millis = 24 * 60 * 60 * 1_000;
/// Removes records that are older than the setting, in small writes, and returns their number.
///
/// # Errors
/// Errors of the store; records that were already removed stay removed.
pub async fn sweep(store: &dyn Store, days: u32, now: Millis) -> Result<usize, StoreError> {
    let before = now.saturating_sub(Millis::from(days) * DAY_MILLIS);
    let mut removed = 0;
    loop {
        let batch = store.sweep_log_records(before, BATCH).await?;
        removed += batch;
        if batch < BATCH {
            return Ok(removed);
        }
    }
}

/// Removes the oldest records of each project whose records exceed `quota` bytes, in small writes,
/// up to a maximum number per check. Returns the number of records.
///
/// # Errors
/// Errors of the store; records that were already removed stay removed.
pub async fn sweep_quota(store: &dyn Store, quota: u64) -> Result<usize, StoreError> {
    let mut removed = 0;
    for _ in 0..QUOTA_WRITES {
        let batch = store.sweep_log_quota(quota, BATCH).await?;
        removed += batch;
        if batch == 0 {
            break;
        }
    }
    Ok(removed)
}

/// Removes groups of errors that have not happened for long, and old counts of them, in small
/// writes. Returns their number.
///
/// # Errors
/// Errors of the store; what was already removed stays removed.
pub async fn sweep_groups(store: &dyn Store, now: Millis) -> Result<usize, StoreError> {
    let mut removed = 0;
    loop {
        let batch = store.sweep_error_groups(now, GROUPS).await?;
        removed += batch;
        if batch < GROUPS {
            return Ok(removed);
        }
    }
}

/// The job that sweeps: records over the quota in every run, and old records in some runs.
#[derive(Debug)]
pub(crate) struct SweepLogs {
    state: Arc<LogsState>,
    runs: u64,
    /// The number of records over the quota that were removed since this was last logged.
    beyond: usize,
}

impl SweepLogs {
    /// Creates the job.
    pub(crate) const fn new(state: Arc<LogsState>) -> Self {
        Self {
            state,
            runs: 0,
            beyond: 0,
        }
    }

    async fn sweep_quota(&mut self) -> Result<(), JobError> {
        let platform = &self.state.platform;
        if let Some(quota) = platform.config.log_quota() {
            let swept = sweep_quota(&*platform.store, quota).await;
            let failed = JobError::because("log records beyond their quota could not be removed");
            self.beyond += swept.map_err(failed)?;
        }
        Ok(())
    }

    async fn sweep_old(&mut self) -> Result<(), JobError> {
        let platform = &self.state.platform;
        if !platform.nodes.may_remove_by_age() {
            return Ok(());
        }
        let beyond = std::mem::take(&mut self.beyond);
        let days = platform.config.log_retention_days;
        let old = sweep(&*platform.store, days, platform.clock.now()).await;
        if let Ok(old) = old
            && old + beyond > 0
        {
            tracing::info!(old, beyond, "frontend log records were removed");
        }
        // Records that arrived after their project was removed, or that remained when the server
        // stopped.
        let removed = sweep_removed(&*platform.store).await;
        let groups = sweep_groups(&*platform.store, platform.clock.now()).await;
        JobError::join([
            old.map(drop)
                .map_err(JobError::because("old log records could not be removed")),
            removed.map(drop).map_err(JobError::because(
                "log records of removed projects could not be removed",
            )),
            groups.map(drop).map_err(JobError::because(
                "old groups of errors could not be removed",
            )),
        ])
    }
}

#[async_trait]
impl Job for SweepLogs {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("sweep-logs", LOOK).on_one_node()
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let is_old_due = self.runs.is_multiple_of(LOOKS_BY_AGE);
        self.runs += 1;
        let quota = self.sweep_quota().await;
        let old = if is_old_due {
            self.sweep_old().await
        } else {
            Ok(())
        };
        JobError::join([quota, old])
    }
}
