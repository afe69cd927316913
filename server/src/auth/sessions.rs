//! Sweeps expired sessions, sign-ins and routine events.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::auth::AuthState;
use crate::clock::Millis;
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::store::{Store, StoreError};

/// The interval of sweeping.
const LOOK: Duration = Duration::from_secs(10 * 60);
/// The maximum number of rows per write, so that no player waits for it.
const BATCH: usize = 500;

/// Removes all of them in small writes, and returns their number.
///
/// # Errors
/// Errors of the store; rows that were already removed stay removed.
pub async fn sweep(store: &dyn Store, now: Millis) -> Result<usize, StoreError> {
    let mut removed = 0;
    loop {
        let batch = store.sweep_sessions(now, BATCH).await?;
        removed += batch;
        if batch == 0 {
            break;
        }
    }
    loop {
        let batch = store.sweep_audit_events(now, BATCH).await?;
        removed += batch;
        if batch == 0 {
            return Ok(removed);
        }
    }
}

/// The job that sweeps.
#[derive(Debug)]
pub(crate) struct SweepSessions(pub(crate) Arc<AuthState>);

#[async_trait]
impl Job for SweepSessions {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("sweep-sessions", LOOK).on_one_node()
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let platform = &self.0.platform;
        if !platform.nodes.may_remove_by_age() {
            return Ok(());
        }
        let swept = sweep(&*platform.store, platform.clock.now()).await;
        let removed = swept.map_err(JobError::because(
            "old sessions and sign-ins could not be removed",
        ))?;
        if removed > 0 {
            tracing::info!(removed, "old sessions and sign-ins were removed");
        }
        Ok(())
    }
}
