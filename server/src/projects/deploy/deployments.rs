//! The only way to deploy: an archive from a developer, or the platform's own files, become staged
//! files, which become the current deployment of the environment, or of one of its previews.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use platform_protocol::preview::PER_PROJECT;
use tokio::sync::Notify;
use uuid::Uuid;

use super::room::{Room, look_for_room, make_room};
use super::upload::{Limits, Upload, UploadQueue, too_large};
use super::{DeployError, Published, Target};
use crate::domain::audit::By;
use crate::domain::errors::chain;
use crate::domain::preview::{AddedPreview, NewPreview};
use crate::domain::project::{Deployment, FileEntry, Inspection};
use crate::games::covers::measure_staged;
use crate::games::files::FileStore;
use crate::games::inspection::PAGE_BYTES;
use crate::hosting::HostingState;
use crate::platform::Platform;
use crate::platform::metrics::DeployOutcome;
use crate::store::StoreError;
use crate::web::api_error::ApiError;
use platform_archive::deploy::{self as archive, ArchiveError};
use platform_archive::staging::{StagedFile, StagedFiles, StagingError, stage};
use platform_checks::folder::INDEX;
use platform_game_pages::inspection::inspect;

/// The number of files that are written concurrently.
const WRITES_AT_ONCE: usize = 4;

/// Deploys games.
#[derive(Debug)]
pub struct Deployments {
    platform: Arc<Platform>,
    hosting: Arc<HostingState>,
    uploads: UploadQueue,
    deployed: Notify,
}

/// Staged files, with the result of their inspection.
struct Staged {
    files: StagedFiles,
    inspection: Inspection,
}

impl Deployments {
    /// Creates it; deployments are shown by `hosting`.
    #[must_use]
    pub fn new(platform: Arc<Platform>, hosting: Arc<HostingState>, uploads: UploadQueue) -> Self {
        Self {
            platform,
            hosting,
            uploads,
            deployed: Notify::new(),
        }
    }

    /// Admits an archive of `player` that has at least `length` bytes.
    ///
    /// # Errors
    /// `payload-too-large`; `unavailable` if there is not enough space; and the errors of
    /// [`UploadQueue::admit`].
    pub async fn admit(&self, player: Uuid, length: u64) -> Result<Upload, ApiError> {
        if length > Limits::default().bytes {
            return Err(too_large(Limits::default().bytes));
        }
        self.platform.disk.refuse(length)?;
        self.uploads.admit(player).await
    }

    /// Receives an archive. A rejected archive leaves nothing behind.
    ///
    /// # Errors
    /// 408, `payload-too-large`, `invalid-request` if the connection breaks, `unavailable` if it is
    /// cancelled in favour of faster uploads, `internal`.
    pub async fn receive(&self, upload: Upload, body: &mut Body) -> Result<Upload, ApiError> {
        match upload.receive(body, Limits::default()).await {
            Ok(()) => Ok(upload),
            Err(refusal) => {
                upload.remove().await;
                Err(refusal)
            }
        }
    }

    /// Deploys an archive that has arrived. It continues to its end whether its caller waits or
    /// not, so that no deploy is left unfinished. Afterwards nothing of the upload is left. All of
    /// that takes time, so `still_may` is asked last: it returns by whom the deploy is recorded.
    ///
    /// # Errors
    /// [`DeployError`]; the current deployment then stays unchanged.
    pub async fn deploy(
        self: &Arc<Self>,
        upload: Upload,
        target: Target,
        still_may: impl Future<Output = Result<By, ApiError>> + Send + 'static,
    ) -> Result<Published, DeployError> {
        let this = Arc::clone(self);
        let whole = tokio::spawn(async move {
            let published = this.deploy_archive(&upload, target, still_may).await;
            upload.remove().await;
            published
        });
        let deployed = whole.await.unwrap_or_else(|error| Err(interrupted(error)));
        self.platform.metrics.deploy(match &deployed {
            Ok(_) => DeployOutcome::Published,
            Err(error) if error.is_failure() => DeployOutcome::Failed,
            Err(_) => DeployOutcome::Refused,
        });
        deployed
    }

    async fn deploy_archive(
        &self,
        upload: &Upload,
        target: Target,
        still_may: impl Future<Output = Result<By, ApiError>> + Send,
    ) -> Result<Published, DeployError> {
        let (from, folder) = (upload.archive(), upload.hold());
        let (address, cover) = (self.address(&target), self.cover(&target));
        let _turn = self.uploads.turn().await;
        let unpacked = tokio::task::spawn_blocking(move || {
            let archive = std::fs::File::open(&from).map_err(ArchiveError::Io)?;
            let length = archive.metadata().map_err(ArchiveError::Io)?.len();
            let files = archive::unpack(archive, length, &folder.files())?;
            // Its space is needed for the files.
            std::fs::remove_file(&from).map_err(ArchiveError::Io)?;
            Staged::of(files, &address, cover.as_deref())
        });
        let staged = unpacked.await.unwrap_or_else(|e| Err(interrupted(e)))?;
        self.publish(staged, target, still_may).await
    }

    /// Deploys the platform's own files, by their path.
    ///
    /// # Errors
    /// [`DeployError`]; the current deployment then stays unchanged.
    pub async fn deploy_contents(
        &self,
        contents: Vec<(String, Bytes)>,
        target: &Target,
    ) -> Result<Published, DeployError> {
        let folder = self.uploads.folder().await.map_err(StagingError::Io)?;
        let into = Arc::clone(&folder);
        let (address, cover) = (self.address(target), self.cover(target));
        let _turn = self.uploads.turn().await;
        let staged = tokio::task::spawn_blocking(move || {
            let files = stage(&contents, &into.files())?;
            Staged::of(files, &address, cover.as_deref())
        });
        let staged = staged.await.unwrap_or_else(|e| Err(interrupted(e)))?;
        let by = std::future::ready(Ok(target.by.clone()));
        let published = self.publish(staged, target.clone(), by).await;
        folder.remove().await;
        published
    }

    /// Stores staged files, and makes them the environment's current deployment.
    async fn publish(
        &self,
        staged: Staged,
        mut target: Target,
        still_may: impl Future<Output = Result<By, ApiError>> + Send,
    ) -> Result<Published, DeployError> {
        let Staged {
            files: staged,
            inspection,
        } = staged;
        let entry = |(path, file): (&String, &StagedFile)| (path.clone(), file.entry.clone());
        let files: BTreeMap<String, FileEntry> = staged.iter().map(entry).collect();
        let room = match target.limited {
            true => look_for_room(&self.platform, &target.slug, &files).await?,
            false => Room::There,
        };
        let store = &self.hosting.games.files;
        let names: BTreeSet<String> = files.values().map(|file| file.sha256.clone()).collect();
        let names = names.into_iter().collect();
        let guard = store.keep(&*self.platform.store, names).await?;
        keep_all(store, staged).await?;
        let refused = |refusal| DeployError::Refused(Box::new(refusal));
        target.by = still_may.await.map_err(refused)?;
        // Nothing is removed for files that cannot be stored.
        let removed = match room {
            Room::There => 0,
            Room::ToBeMade => make_room(&self.platform, &target.slug, &files).await?,
        };
        let deployment = self.record(&target, files, inspection).await?;
        drop(guard);
        self.deployed.notify_one();
        // Otherwise the game is read again within a second, as after a deploy of another node.
        warn_of(self.hosting.refresh(&target.slug).await);
        Ok(Published {
            deployment,
            label: target.label(),
            preview: target.preview,
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
            // Random, so that its first characters distinguish it from all others.
            id: self.platform.entropy.uuid_v4(),
            slug: target.slug.clone(),
            environment: target.environment,
            files,
            created_at: self.platform.clock.now(),
            made: target.made.clone(),
            inspection: Some(inspection),
        };
        let (added, by) = (deployment.clone(), target.by.clone());
        let added = match &target.preview {
            Some(name) => {
                let new = NewPreview {
                    name: name.clone(),
                    deployment: added,
                    most: PER_PROJECT,
                };
                store.put_preview(new, by).await
            }
            None => {
                let added = store.add_deployment(added, by).await;
                added.map(|()| AddedPreview::Done)
            }
        };
        match added {
            Ok(AddedPreview::TooMany { oldest, used_at }) => {
                Err(DeployError::TooManyPreviews { oldest, used_at })
            }
            Ok(AddedPreview::Done) => {
                // It is deployed from here on, whatever fails. The sweep counts again.
                warn_of(store.count_room(&deployment.slug).await);
                Ok(deployment)
            }
            Err(StoreError::Missing { .. }) => Err(DeployError::UnknownProject(deployment.slug)),
            Err(error) => Err(DeployError::Store(error)),
        }
    }

    /// Lets the sweep run soon, because another node has changed a project.
    pub fn wake_sweep(&self) {
        self.deployed.notify_one();
    }

    /// Waits until there is a new deployment.
    pub(super) async fn deployed(&self) {
        self.deployed.notified().await;
    }

    /// Returns the cover that is set for the game of `target`.
    fn cover(&self, target: &Target) -> Option<String> {
        let game = self.hosting.games.catalogue.find(&target.slug)?;
        game.listing.own.cover.clone()
    }

    /// Returns the address of the page that is deployed to `target`.
    fn address(&self, target: &Target) -> String {
        format!(
            "{}/",
            self.platform.games_origin.sub_domain(&target.label())
        )
    }
}

/// Logs what failed after a deployment was recorded.
fn warn_of<T>(result: Result<T, StoreError>) {
    if let Err(error) = result {
        tracing::warn!(
            error = chain(&error),
            "a deployment is recorded, but what follows from it failed"
        );
    }
}

impl Staged {
    /// Inspects the page that will be shown at `address`, with the `cover` that is set. This function
    /// blocks.
    fn of(files: StagedFiles, address: &str, cover: Option<&str>) -> Result<Self, DeployError> {
        let page = files
            .get(INDEX)
            .map_or(Ok(Vec::new()), |page| beginning(&page.at));
        let page = page.map_err(StagingError::Io)?;
        let read = |path: &str| {
            let script = beginning(&files.get(path)?.at).ok()?;
            Some(String::from_utf8_lossy(&script).into_owned())
        };
        let mut inspection = inspect(&page, address, &files, &read);
        let find = |path: &str| files.get(path).map(|file| (&file.entry, &*file.at));
        measure_staged(&mut inspection, (address, cover), find).map_err(StagingError::Io)?;
        Ok(Self { files, inspection })
    }
}

/// Returns the beginning of a page or script, which is nearly always all of it.
fn beginning(page: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut beginning = Vec::new();
    std::fs::File::open(page)?
        .take(PAGE_BYTES)
        .read_to_end(&mut beginning)?;
    Ok(beginning)
}

async fn keep_all(store: &FileStore, staged: StagedFiles) -> Result<(), DeployError> {
    // Two equal files would be written to the same path at the same time.
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

/// Returns the error if the process ends, or a bug ended the task.
fn interrupted(error: tokio::task::JoinError) -> DeployError {
    StagingError::Io(std::io::Error::other(error)).into()
}
