//! The job that makes backups when they are due, and notes for the metrics how old the newest one is.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Backups, BackupsError, Kept, newest, time_of};
use crate::app::backup::Backup;
use crate::app::state::AppState;
use crate::clock::Millis;
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::platform::metrics::BackupTimes;

/// How often the server looks whether a backup is due.
const LOOK: Duration = Duration::from_secs(60);
/// How long after a failure it tries again.
const TRY_AGAIN: Millis = 15 * 60 * 1_000;

/// Makes backups when they are due. A run is done if the newest backup is recent enough when it ends:
/// that of a run that had to make none, too.
#[derive(Debug)]
pub struct MakeBackups {
    state: AppState,
    not_before: Millis,
    /// When the newest backup was begun, as far as this is known.
    newest: Option<Millis>,
    /// Since when no backup is known.
    none_since: Option<Millis>,
}

impl MakeBackups {
    /// Creates the job. The settings must name a place for backups.
    #[must_use]
    pub fn new(state: AppState) -> Self {
        Self {
            state,
            not_before: Millis::MIN,
            newest: None,
            none_since: None,
        }
    }

    async fn make_if_due(&mut self, now: Millis) -> Result<(), BackupsError> {
        let platform = Arc::clone(&self.state.platform);
        let (config, disk) = (&platform.config, &platform.disk);
        let backups = Backups::new(config)?;
        let names = backups.list().await?;
        self.newest = newest(&names, now);
        // A large one takes long.
        self.note(now);
        let made = backups.make_after(&names, config, disk, now).await?;
        if let Some(made) = made {
            self.newest = time_of(&made.name);
            log(&made);
        }
        Ok(())
    }

    /// Notes for the metrics what is known.
    fn note(&mut self, now: Millis) {
        let platform = &self.state.platform;
        let next = if let Some(newest) = self.newest {
            self.none_since = None;
            newest + platform.config.backup_period()
        } else {
            // A clock that was ahead and was set back must not hide that there is none.
            let since = self.none_since.map_or(now, |since| since.min(now));
            *self.none_since.insert(since)
        };
        let newest = self.newest;
        platform.metrics.set_backups(BackupTimes { newest, next });
    }
}

#[async_trait]
impl Job for MakeBackups {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("make-backups", LOOK)
    }

    fn is_paused(&self) -> bool {
        let now = self.state.platform.clock.now();
        // A clock that was set back must not keep it from trying.
        now < self.not_before && self.not_before - now <= TRY_AGAIN
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let now = self.state.platform.clock.now();
        let made = self.make_if_due(now).await;
        // Also if nothing could be listed: then it is what was known before.
        self.note(now);
        self.not_before = if made.is_err() { now + TRY_AGAIN } else { now };
        made.map_err(JobError::because(
            "no backup could be made; it is tried again in 15 minutes",
        ))
    }
}

fn log(made: &Kept) {
    let Backup {
        files,
        missing,
        bytes,
    } = made.backup;
    tracing::info!(
        name = made.name,
        files,
        bytes,
        removed = made.removed,
        "backed up"
    );
    if missing > 0 {
        tracing::error!(
            name = made.name,
            missing,
            "the backup lacks deployed files, which are missing or damaged where the platform \
             keeps them"
        );
    }
}
