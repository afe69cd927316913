//! Removes old security events and shortens old addresses, as the settings say.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::auth::AuthState;
use crate::clock::Millis;
use crate::config::Config;
use crate::domain::player_event::KEPT_MILLIS;
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::store::{Store, StoreError};

/// The interval of looking for what is too old.
const LOOK: Duration = Duration::from_secs(60 * 60);
/// The maximum number of rows of each kind per write, so that other writes do not wait long.
const BATCH: usize = 500;

/// Removes and shortens what is too old, and returns the number of changed rows.
///
/// # Errors
/// Errors of the store; what was changed stays so.
pub async fn apply(store: &dyn Store, config: &Config, now: Millis) -> Result<usize, StoreError> {
    let retention = config.retention(now);
    let mut changed = 0;
    loop {
        let events = store.sweep_player_events(now - KEPT_MILLIS, BATCH).await?;
        changed += events;
        if events == 0 {
            break;
        }
    }
    loop {
        match store.apply_retention(retention, BATCH).await? {
            0 => return Ok(changed),
            batch => changed += batch,
        }
    }
}

/// The job that does it.
#[derive(Debug)]
pub(crate) struct ApplyRetention(pub(crate) Arc<AuthState>);

#[async_trait]
impl Job for ApplyRetention {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("apply-retention", LOOK).on_one_node()
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let platform = &self.0.platform;
        if !platform.nodes.may_remove_by_age() {
            return Ok(());
        }
        let now = platform.clock.now();
        let applied = apply(&*platform.store, &platform.config, now).await;
        let changed = applied.map_err(JobError::because(
            "old events and addresses could not be removed",
        ))?;
        if changed > 0 {
            tracing::info!(
                changed,
                "old events and addresses were removed or shortened"
            );
        }
        Ok(())
    }
}
