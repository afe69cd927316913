//! Deploying: a set of files becomes what an environment shows, all or nothing.
//!
//! | module | holds |
//! |---|---|
//! | `deployments` | the one way to deploy, for archives and for the platform's own files |
//! | `upload` | archives on their way in |
//! | `spool` | the room that they may take |
//! | `room` | the room that deployments may take |
//!
//! Every file is kept first, on the disk and under the name of its content;
//! then one operation of the store switches. Whoever is killed in between
//! leaves files behind that nothing refers to, and the next sweep takes them.

mod deployments;
mod room;
mod spool;
mod upload;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use platform_protocol::names::Environment;

pub use self::deployments::Deployments;
pub use self::upload::{Upload, UploadQueue, linger};
use crate::domain::audit::{Actor, By};
use crate::domain::errors::chain;
use crate::domain::project::{Deployment, Made};
use crate::games::files::{FileError, FileStore};
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::projects::ProjectsState;
use crate::projects::archive::ArchiveError;
use crate::projects::removal;
use crate::projects::staging::StagingError;
use crate::store::{Store, StoreError};

/// Deployments of an environment that are kept.
pub const KEPT: usize = 10;
/// How often files are swept that nothing refers to, even if nothing is
/// deployed.
const SWEEP: Duration = Duration::from_secs(3_600);

/// Why nothing was deployed.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// The archive was refused.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// Files of the platform's own cannot be deployed.
    #[error(transparent)]
    Staging(#[from] StagingError),
    /// The project, or its owner's account, would keep more than it may.
    #[error("{0}")]
    NoRoom(String),
    /// The disk is almost full.
    #[error("the disk is almost full")]
    DiskFull,
    /// There is no such project.
    #[error("There is no project {0:?}.")]
    UnknownProject(String),
    /// A file could not be kept.
    #[error("a file could not be kept")]
    Files(#[from] FileError),
    /// The store failed.
    #[error("the deployment could not be recorded")]
    Store(#[source] StoreError),
}

/// Which environment something is deployed to, and by whom.
#[derive(Clone, Debug)]
pub struct Target {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// Who deploys it.
    pub by: By,
    /// What else is known of that, and why.
    pub made: Made,
}

impl Target {
    /// An environment to which the platform itself deploys.
    #[must_use]
    pub fn of_platform(slug: &str, environment: Environment) -> Self {
        Self {
            slug: slug.to_owned(),
            environment,
            by: Actor::Own.into(),
            made: Made::default(),
        }
    }
}

/// What was deployed.
#[derive(Debug)]
pub struct Published {
    /// What the environment shows now.
    pub deployment: Deployment,
    /// Earlier deployments that were removed to make room for it.
    pub removed: usize,
}

/// Forgets old deployments, and files that nothing refers to: at the start of the
/// server, after every deploy, and once an hour.
#[derive(Debug)]
pub(crate) struct SweepDeployments(pub(crate) Arc<ProjectsState>);

#[async_trait]
impl Job for SweepDeployments {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("sweep-deployments", SWEEP)
    }

    async fn woken(&self) {
        self.0.deployments.deployed().await;
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let state = &self.0;
        let removed = removal::remove_deleted(state).await;
        let swept = sweep(&*state.platform.store, &state.games.files).await;
        removed.map_err(JobError::because("deleted projects could not be removed"))?;
        let files = swept.map_err(JobError::because("old deployments could not be swept"))?;
        if files > 0 {
            tracing::info!(files, "files that no deployment has were removed");
        }
        Ok(())
    }
}

/// Forgets all deployments but the last [`KEPT`] of each environment, and
/// removes the files that no deployment has any more. Answers how many files.
///
/// # Errors
/// What failed, for the log.
pub async fn sweep(store: &dyn Store, files: &FileStore) -> Result<usize, String> {
    for record in store
        .list_environments()
        .await
        .map_err(|error| chain(&error))?
    {
        let swept = store.sweep_deployments(&record.slug, record.environment, KEPT);
        if swept.await.map_err(|error| chain(&error))? > 0 {
            let counted = store.count_room(&record.slug).await;
            counted.map_err(|error| chain(&error))?;
        }
    }
    let uncounted = store.list_uncounted_projects().await;
    for slug in uncounted.map_err(|error| chain(&error))? {
        match store.count_room(&slug).await {
            // It was removed in between.
            Ok(_) | Err(StoreError::Missing { .. }) => {}
            Err(error) => return Err(chain(&error)),
        }
    }
    files.sweep(store).await.map_err(|error| chain(&error))
}
