//! Follows what other nodes and the operator's commands change in the store, and reads exactly that
//! again. What this node changed itself is read a second time, which costs little.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;

use crate::app::state::AppState;
use crate::domain::errors::chain;
use crate::domain::node::Topic;
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::store::StoreError;

/// How often the store is asked for changes.
const LOOK: Duration = Duration::from_secs(1);
/// If more projects have changed, all of them are read at once.
const MANY: usize = 20;

/// Applies what was changed while this node started.
pub(super) async fn catch_up(state: &AppState) {
    // If that fails, the job tries again at once, and logs the error.
    let _ = FollowChanges(state.clone()).run().await;
}

/// The job that follows changes.
pub(super) struct FollowChanges(pub(super) AppState);

#[async_trait]
impl Job for FollowChanges {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("follow-changes", LOOK)
    }

    async fn woken(&self) {
        self.0.platform.nodes.told_of_change().await;
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let platform = &self.0.platform;
        let changes = platform.store.list_changes(platform.nodes.applied()).await;
        let changes = changes.map_err(JobError::because("changes could not be listed"))?;
        let applied = apply(&self.0, changes.topics).await;
        // Otherwise the next run tries again, and whoever waits for this node waits in vain.
        applied.map_err(JobError::because("a change could not be applied"))?;
        platform.nodes.apply(changes.newest);
        Ok(())
    }
}

/// Reads again what has changed. A part that fails does not keep the others from being read.
async fn apply(state: &AppState, topics: Vec<Topic>) -> Result<(), ApplyError> {
    let mut projects = BTreeSet::new();
    let (mut keys, mut sessions, mut suspensions) = (false, false, false);
    let mut failed = Failed::default();
    for topic in topics {
        match topic {
            Topic::Keys => keys = true,
            Topic::Sessions => sessions = true,
            Topic::Project(slug) => {
                projects.insert(slug);
            }
            Topic::Suspension(player) => {
                suspensions = true;
                // The games of a suspended player are taken down.
                match state.platform.store.list_projects_of(player).await {
                    Ok(owned) => projects.extend(owned.into_iter().map(|project| project.slug)),
                    Err(error) => failed.add(&error),
                }
            }
        }
    }
    let (auth, store) = (&state.auth, &*state.platform.store);
    let (life, now) = (
        state.platform.config.token_seconds,
        state.platform.clock.now(),
    );
    if suspensions {
        failed.note(auth.suspensions.refresh(store, life, now).await);
    }
    if sessions {
        failed.note(auth.endings.follow(store, now).await);
    }
    if keys && let Err(error) = auth.keys.refresh().await {
        failed.add(&error);
    }
    if projects.len() > MANY {
        failed.note(state.hosting.refresh_all().await);
    } else {
        for slug in &projects {
            failed.note(state.hosting.read(slug).await);
        }
    }
    if !projects.is_empty() && state.platform.store.is_shared() {
        // Another node may have deployed, and this one may be the one that sweeps.
        state.projects.deployments.wake_sweep();
    }
    failed.into_result()
}

/// The parts of a change that could not be applied.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct ApplyError(String);

#[derive(Default)]
struct Failed(Vec<String>);

impl Failed {
    fn note(&mut self, result: Result<(), StoreError>) {
        if let Err(error) = result {
            self.add(&error);
        }
    }

    fn add(&mut self, error: &(dyn std::error::Error + 'static)) {
        self.0.push(chain(error));
    }

    fn into_result(self) -> Result<(), ApplyError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(ApplyError(self.0.join("; ")))
        }
    }
}
