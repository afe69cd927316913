//! The one way to deploy: an archive that a developer has sent and the files that the
//! platform deploys for itself become staged files, and those what an environment
//! shows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::sync::Notify;
use uuid::Uuid;

use super::room::make_room;
use super::upload::{Limits, Upload, UploadQueue, too_large};
use super::{DeployError, Published, Target};
use crate::domain::project::{Deployment, FileEntry, Inspection};
use crate::games::files::FileStore;
use crate::games::inspection::{INDEX, PAGE_BYTES, inspect};
use crate::hosting::HostingState;
use crate::platform::Platform;
use crate::projects::archive::{self, ArchiveError};
use crate::projects::staging::{StagedFile, StagedFiles, StagingError, stage};
use crate::store::StoreError;
use crate::web::api_error::ApiError;

/// Files that are written at one time.
const WRITES_AT_ONCE: usize = 4;

/// What deploys.
#[derive(Debug)]
pub struct Deployments {
    platform: Arc<Platform>,
    hosting: Arc<HostingState>,
    uploads: UploadQueue,
    deployed: Notify,
}

/// Staged files, with what was found in them.
struct Staged {
    files: StagedFiles,
    inspection: Inspection,
}

impl Deployments {
    /// Deploys to what `hosting` serves.
    #[must_use]
    pub fn new(platform: Arc<Platform>, hosting: Arc<HostingState>, uploads: UploadQueue) -> Self {
        Self {
            platform,
            hosting,
            uploads,
            deployed: Notify::new(),
        }
    }

    /// Lets in an archive of `player` that has `length` bytes or more.
    ///
    /// # Errors
    /// `payload-too-large`; `unavailable` where there is no room for it; and those of
    /// [`UploadQueue::admit`].
    pub async fn admit(&self, player: Uuid, length: u64) -> Result<Upload, ApiError> {
        if length > Limits::default().bytes {
            return Err(too_large(Limits::default().bytes));
        }
        self.platform.disk.refuse(length)?;
        self.uploads.admit(player).await
    }

    /// Takes an archive in. Nothing of one that is refused is left.
    ///
    /// # Errors
    /// 408, `payload-too-large`, `invalid-request` where it breaks off,
    /// `unavailable` where it has to give way to quicker ones, `internal`.
    pub async fn receive(&self, upload: Upload, body: &mut Body) -> Result<Upload, ApiError> {
        match upload.receive(body, Limits::default()).await {
            Ok(()) => Ok(upload),
            Err(refusal) => {
                upload.remove().await;
                Err(refusal)
            }
        }
    }

    /// Makes an archive that has arrived what the environment shows. It goes on to its
    /// end whether its caller waits or not: nobody wants half a deploy. Nothing of the
    /// upload is left then.
    ///
    /// # Errors
    /// [`DeployError`]; what the environment showed before, it still shows.
    pub async fn deploy(
        self: &Arc<Self>,
        upload: Upload,
        target: Target,
    ) -> Result<Published, DeployError> {
        let this = Arc::clone(self);
        let whole = tokio::spawn(async move {
            let published = this.deploy_archive(&upload, &target).await;
            upload.remove().await;
            published
        });
        whole.await.unwrap_or_else(|error| Err(interrupted(error)))
    }

    async fn deploy_archive(
        &self,
        upload: &Upload,
        target: &Target,
    ) -> Result<Published, DeployError> {
        let (from, folder) = (upload.archive(), upload.hold());
        let address = self.address(target);
        let _turn = self.uploads.turn().await;
        let unpacked = tokio::task::spawn_blocking(move || {
            let archive = std::fs::File::open(&from).map_err(ArchiveError::Io)?;
            let length = archive.metadata().map_err(ArchiveError::Io)?.len();
            let files = archive::unpack(archive, length, &folder.files())?;
            // Its room is wanted for the files.
            std::fs::remove_file(&from).map_err(ArchiveError::Io)?;
            Staged::of(files, &address)
        });
        let staged = unpacked.await.unwrap_or_else(|e| Err(interrupted(e)))?;
        self.publish(staged, target).await
    }

    /// Makes files of the platform's own, by their path, what the environment shows.
    ///
    /// # Errors
    /// [`DeployError`]; what the environment showed before, it still shows.
    pub async fn deploy_contents(
        &self,
        contents: Vec<(String, Bytes)>,
        target: &Target,
    ) -> Result<Published, DeployError> {
        let folder = self.uploads.folder().await.map_err(StagingError::Io)?;
        let (into, address) = (Arc::clone(&folder), self.address(target));
        let _turn = self.uploads.turn().await;
        let staged = tokio::task::spawn_blocking(move || {
            let files = stage(&contents, &into.files())?;
            Staged::of(files, &address)
        });
        let staged = staged.await.unwrap_or_else(|e| Err(interrupted(e)))?;
        let published = self.publish(staged, target).await;
        folder.remove().await;
        published
    }

    /// Keeps staged files, and switches the environment to them.
    async fn publish(&self, staged: Staged, target: &Target) -> Result<Published, DeployError> {
        let Staged {
            files: staged,
            inspection,
        } = staged;
        let entry = |(path, file): (&String, &StagedFile)| (path.clone(), file.entry.clone());
        let files: BTreeMap<String, FileEntry> = staged.iter().map(entry).collect();
        let removed = make_room(&self.platform, &target.slug, &files).await?;
        let store = &self.hosting.games.files;
        let guard = store.keep().await;
        keep_all(store, staged).await?;
        let deployment = self.record(target, files, inspection).await?;
        drop(guard);
        self.deployed.notify_one();
        let shown = self.hosting.refresh(&target.slug).await;
        shown.map_err(DeployError::Store)?;
        Ok(Published {
            deployment,
            removed,
        })
    }

    async fn record(
        &self,
        target: &Target,
        files: BTreeMap<String, FileEntry>,
        inspection: Inspection,
    ) -> Result<Deployment, DeployError> {
        let store = &self.platform.store;
        let deployment = Deployment {
            // Random, so that its first characters tell it from all others.
            id: self.platform.entropy.uuid_v4(),
            slug: target.slug.clone(),
            environment: target.environment,
            files,
            created_at: self.platform.clock.now(),
            made: target.made.clone(),
            inspection: Some(inspection),
        };
        let added = store.add_deployment(deployment.clone(), target.by.clone());
        match added.await {
            Ok(()) => {
                let counted = store.count_room(&deployment.slug).await;
                counted.map_err(DeployError::Store)?;
                Ok(deployment)
            }
            Err(StoreError::Missing { .. }) => Err(DeployError::UnknownProject(deployment.slug)),
            Err(error) => Err(DeployError::Store(error)),
        }
    }

    /// Waits until something was deployed.
    pub(super) async fn deployed(&self) {
        self.deployed.notified().await;
    }

    /// The address of the page that is deployed to `target`.
    fn address(&self, target: &Target) -> String {
        let label = target.environment.label(&target.slug);
        format!("{}/", self.platform.origin.sub_domain(&label))
    }
}

impl Staged {
    /// Looks at the page that will be shown at `address`. It blocks.
    fn of(files: StagedFiles, address: &str) -> Result<Self, DeployError> {
        let page = files
            .get(INDEX)
            .map_or(Ok(Vec::new()), |page| beginning(&page.at));
        let page = page.map_err(StagingError::Io)?;
        let inspection = inspect(&page, address, &files);
        Ok(Self { files, inspection })
    }
}

/// The beginning of a page, which is all of it but for the oddest ones.
fn beginning(page: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut beginning = Vec::new();
    std::fs::File::open(page)?
        .take(PAGE_BYTES)
        .read_to_end(&mut beginning)?;
    Ok(beginning)
}

async fn keep_all(store: &FileStore, staged: StagedFiles) -> Result<(), DeployError> {
    // Two that are equal would be written over each other at one time.
    let contents: BTreeMap<String, StagedFile> = staged
        .into_values()
        .map(|file| (file.entry.sha256.clone(), file))
        .collect();
    stream::iter(contents.into_values())
        .map(|file| async move { store.put_file(&file.at, &file.entry).await })
        .buffer_unordered(WRITES_AT_ONCE)
        .try_collect::<()>()
        .await?;
    Ok(())
}

/// The process ends, or a bug ended the work.
fn interrupted(error: tokio::task::JoinError) -> DeployError {
    StagingError::Io(std::io::Error::other(error)).into()
}
