//! Sweeping sessions, sign-ins and routine events that mean nothing any more.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::auth::AuthState;
use crate::clock::Millis;
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::store::{Store, StoreError};

/// How often it is looked for them.
const LOOK: Duration = Duration::from_secs(10 * 60);
/// How many one write removes, so that no player waits for it.
const BATCH: usize = 500;

/// Removes all of them, in small writes. Answers how many.
///
/// # Errors
/// The store's; what was removed until then stays so.
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

/// Sweeps now and then.
#[derive(Debug)]
pub(crate) struct SweepSessions(pub(crate) Arc<AuthState>);

#[async_trait]
impl Job for SweepSessions {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("sweep-sessions", LOOK)
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let platform = &self.0.platform;
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
