//! Deploys a set of files to an environment, completely or not at all.
//!
//! | module | contents |
//! |---|---|
//! | `deployments` | the only way to deploy, for archives and for the platform's own files |
//! | `upload` | archives that are being uploaded |
//! | `spool` | the storage limits for uploads |
//! | `room` | the storage limits for deployments |
//!
//! Every file is stored first, on the disk and under the name of its content; then one operation of
//! the store makes the deployment current. If the process is killed in between, there are
//! unreferenced files, which the next sweep removes.

mod deployments;
mod room;
mod spool;
mod upload;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use platform_protocol::names::Environment;
use platform_protocol::preview::{self, PER_PROJECT};

pub use self::deployments::Deployments;
pub use self::upload::{Upload, UploadQueue, linger};
use crate::clock::Millis;
use crate::domain::audit::{Actor, By};
use crate::domain::date::Date;
use crate::domain::errors::chain;
use crate::domain::preview::last_use_of_ended;
use crate::domain::project::{Deployment, Made};
use crate::games::files::{FileError, FileStore};
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::projects::ProjectsState;
use crate::projects::removal;
use crate::store::{Store, StoreError};
use crate::web::api_error::ApiError;
use platform_archive::deploy::ArchiveError;
use platform_archive::staging::StagingError;

/// The number of kept deployments of an environment.
pub const KEPT: usize = 10;
/// The interval of sweeping unreferenced files, even if nothing is deployed.
const SWEEP: Duration = Duration::from_secs(3_600);

/// Why nothing was deployed.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// The archive was rejected.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The platform's own files cannot be deployed.
    #[error(transparent)]
    Staging(#[from] StagingError),
    /// The project, or its owner's account, would exceed its limit.
    #[error("{0}")]
    NoRoom(String),
    /// The project has as many previews as it may.
    #[error(
        "This project has {PER_PROJECT} previews, as many as it may have. Remove one first: \
         {oldest} was used longest ago, on {}.", Date::of(*used_at).words
    )]
    TooManyPreviews {
        /// The one that was used longest ago.
        oldest: String,
        /// The day of its last use.
        used_at: Millis,
    },
    /// The disk is almost full.
    #[error("the disk is almost full")]
    DiskFull,
    /// The project does not exist.
    #[error("There is no project {0:?}.")]
    UnknownProject(String),
    /// A file could not be stored.
    #[error("a file could not be stored")]
    Files(#[from] FileError),
    /// Who sent it may no longer deploy there.
    #[error("who sent it may no longer deploy there")]
    Refused(Box<ApiError>),
    /// The store failed.
    #[error("the deployment could not be recorded")]
    Store(#[source] StoreError),
}

impl DeployError {
    /// Whether the platform could not do it, whatever was sent.
    pub(super) const fn is_failure(&self) -> bool {
        match self {
            Self::Archive(ArchiveError::Io(_))
            | Self::Staging(StagingError::Io(_))
            | Self::DiskFull
            | Self::Files(_)
            | Self::Store(_) => true,
            Self::Archive(_)
            | Self::Staging(_)
            | Self::NoRoom(_)
            | Self::TooManyPreviews { .. }
            | Self::UnknownProject(_)
            | Self::Refused(_) => false,
        }
    }
}

/// The target of a deploy, and who deploys.
#[derive(Clone, Debug)]
pub struct Target {
    /// The project.
    pub slug: String,
    /// The environment.
    pub environment: Environment,
    /// The name of the preview to deploy, in place of the environment itself.
    pub preview: Option<String>,
    /// Who deploys it.
    pub by: By,
    /// Further information about the deployment.
    pub made: Made,
    /// Whether the limits on storage hold for it.
    pub limited: bool,
}

impl Target {
    /// Returns the target of a deploy by the platform itself.
    #[must_use]
    pub fn of_platform(slug: &str, environment: Environment) -> Self {
        Self {
            slug: slug.to_owned(),
            environment,
            preview: None,
            by: Actor::Own.into(),
            made: Made::default(),
            limited: false,
        }
    }

    /// Returns the host label of the address that will show it.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.preview {
            Some(name) => preview::label(name, &self.slug),
            None => self.environment.label(&self.slug),
        }
    }
}

/// The result of a deploy.
#[derive(Debug)]
pub struct Published {
    /// The new deployment.
    pub deployment: Deployment,
    /// The host label of the address that shows it.
    pub label: String,
    /// The name of the preview that shows it, in place of the environment.
    pub preview: Option<String>,
    /// The number of earlier deployments that were removed to free space for it.
    pub removed: usize,
}

/// The job that removes old deployments, previews that nobody uses, and unreferenced files: at the start of the server, after
/// every deploy, and once an hour.
#[derive(Debug)]
pub(crate) struct SweepDeployments(pub(crate) Arc<ProjectsState>);

#[async_trait]
impl Job for SweepDeployments {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("sweep-deployments", SWEEP).on_one_node()
    }

    async fn woken(&self) {
        self.0.deployments.deployed().await;
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let state = &self.0;
        let (mut removed, mut ended) = (Ok(0), Ok(0));
        if state.platform.nodes.may_remove_by_age() {
            removed = removal::remove_deleted(state).await;
            ended = remove_unused_previews(state).await;
        }
        let swept = sweep(&*state.platform.store, &state.games.files).await;
        if let Ok(files) = swept
            && files > 0
        {
            tracing::info!(files, "files that no deployment has were removed");
        }
        let (removed, ended, swept) = (removed.map(drop), ended.map(drop), swept.map(drop));
        JobError::join([
            removed.map_err(JobError::because("deleted projects could not be removed")),
            ended.map_err(JobError::because("unused previews could not be removed")),
            swept.map_err(JobError::because("old deployments could not be swept")),
        ])
    }
}

/// Removes the previews that nobody has used for too long. Returns their number.
///
/// # Errors
/// Errors of the store; the remaining ones are removed next time.
pub async fn remove_unused_previews(state: &ProjectsState) -> Result<usize, StoreError> {
    let (store, now) = (&state.platform.store, state.platform.clock.now());
    let mut changed = BTreeSet::new();
    let mut removed = 0;
    let used_at = last_use_of_ended(now);
    while let Some(slug) = store.remove_unused_preview(used_at, now).await? {
        changed.insert(slug);
        removed += 1;
    }
    for slug in changed {
        store.count_room(&slug).await?;
        state.hosting.read(&slug).await?;
    }
    if removed > 0 {
        tracing::info!(removed, "previews that nobody used were removed");
    }
    Ok(removed)
}

/// Removes all deployments except for the last [`KEPT`] of each environment, and the files that no
/// deployment contains any more. Returns the number of files.
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
