//! Removes players who asked to be deleted and did not take it back.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::auth::AuthState;
use crate::clock::Millis;
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::store::{Store, StoreError};

/// The interval of looking for them.
const LOOK: Duration = Duration::from_secs(10 * 60);
/// The maximum number of players that are read at once.
const PLAYERS: usize = 50;
/// The maximum number of log records that one write removes, so that other writes do not wait long.
const RECORDS: usize = 500;

/// Removes the players whose time has come, and returns their number.
///
/// # Errors
/// Errors of the store; what was removed stays removed, and the rest is removed next time.
pub async fn remove_due(store: &dyn Store, now: Millis) -> Result<usize, StoreError> {
    let mut removed = 0;
    loop {
        let before = removed;
        for due in store.list_due_deletions(now, PLAYERS).await? {
            // The records first: afterwards nobody would know whose they are.
            while store.forget_log_records(due.ids(), RECORDS).await? > 0 {}
            if store.delete_player(due.player, now).await? {
                removed += 1;
            }
        }
        if removed == before {
            return Ok(removed);
        }
    }
}

/// The job that removes them.
#[derive(Debug)]
pub(crate) struct RemovePlayers {
    auth: Arc<AuthState>,
    /// Whether something was removed that the store has not overwritten yet.
    is_left: bool,
}

impl RemovePlayers {
    /// Creates the job. At its first run it also finishes what an earlier process left.
    pub(crate) const fn new(auth: Arc<AuthState>) -> Self {
        Self {
            auth,
            is_left: true,
        }
    }
}

#[async_trait]
impl Job for RemovePlayers {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("remove-players", LOOK).on_one_node()
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let platform = &self.auth.platform;
        if !platform.nodes.may_remove_by_age() {
            return Ok(());
        }
        let removed = remove_due(&*platform.store, platform.clock.now()).await;
        let removed = removed.map_err(JobError::because(
            "players who asked to be deleted could not be removed",
        ))?;
        if removed > 0 {
            // Who they were is not for the log.
            tracing::info!(removed, "players who asked to be deleted were removed");
            self.is_left = true;
        }
        if self.is_left {
            let overwritten = platform.store.overwrite_removed().await;
            let overwritten = overwritten.map_err(JobError::because(
                "what was removed of players could not be overwritten",
            ))?;
            self.is_left = !overwritten;
        }
        Ok(())
    }
}
