//! Deploying: a set of files becomes what an environment shows, all or nothing.
//!
//! Every file is kept first, on the disk and under the name of its content;
//! then one operation of the store switches. Whoever is killed in between
//! leaves files behind that nothing refers to, and the next sweep takes them.

mod spool;
mod upload;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use platform_checks::limits::{MAX_BYTES, MAX_FILES};
use platform_checks::{PathProblem, Warning, normalise, warnings_of};
use platform_protocol::names::Environment;

pub use self::upload::{Limits, Upload, UploadQueue, linger, too_large};
use crate::clock::Millis;
use crate::domain::audit::{Actor, By};
use crate::domain::project::{Deployment, FileEntry, Made};
use crate::domain::room::{RoomLimits, Verdict};
use crate::entropy::Entropy;
use crate::games::files::{FileError, FileStore};
use crate::games::page_warnings::PAGE_BYTES;
use crate::http::api_error::chain;
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::projects::ProjectsState;
use crate::projects::archive::{self, ArchiveError, UnpackedFile};
use crate::projects::removal;
use crate::store::{Store, StoreError};

/// Deployments of an environment that are kept.
pub const KEPT: usize = 10;
/// Files that are written at one time.
const WRITES_AT_ONCE: usize = 4;
/// How often files are swept that nothing refers to, even if nothing is
/// deployed.
const SWEEP: Duration = Duration::from_secs(3_600);

/// Why nothing was deployed.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// There is no file at all.
    #[error("A deployment needs at least one file.")]
    Empty,
    /// A path that no deployment may have.
    #[error("The file {path:?} cannot be deployed: {problem}.")]
    Path {
        /// The path, shortened if it is long.
        path: String,
        /// What is wrong with it.
        problem: PathProblem,
    },
    /// A path that two files have.
    #[error("The file {0:?} is there twice.")]
    Twice(String),
    /// More than [`MAX_FILES`].
    #[error("A deployment has at most {MAX_FILES} files.")]
    TooManyFiles,
    /// More than [`MAX_BYTES`].
    #[error("A deployment has at most {} MiB.", MAX_BYTES / (1024 * 1024))]
    TooLarge,
    /// The archive was refused.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
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

/// A deployment from an archive, with what its page does wrong.
#[derive(Debug)]
pub struct Published {
    /// What the environment shows now.
    pub deployment: Deployment,
    /// How its page should load the runtime and does not, and which files should
    /// hardly be public.
    pub warnings: Vec<Warning>,
    /// Earlier deployments that were removed to make room for it.
    pub removed: usize,
}

/// Makes an archive that has arrived what the environment shows.
///
/// # Errors
/// [`DeployError`]; what the environment showed before, it still shows.
pub async fn publish_archive(
    state: &ProjectsState,
    target: &Target,
    incoming: &Upload,
) -> Result<Published, DeployError> {
    let (from, into, held) = (incoming.archive(), incoming.files(), incoming.hold());
    let address = format!(
        "{}/",
        state
            .platform
            .origin
            .sub_domain(&target.environment.label(&target.slug))
    );
    let _turn = state.deploys.turn().await;
    let unpacked = tokio::task::spawn_blocking(move || {
        let archive = std::fs::File::open(&from).map_err(ArchiveError::Io)?;
        let length = archive.metadata().map_err(ArchiveError::Io)?.len();
        let files = archive::unpack(archive, length, &into)?;
        // Its room is wanted for the files.
        std::fs::remove_file(&from).map_err(ArchiveError::Io)?;
        let page = files.get("index.html").map_or(Ok(Vec::new()), page);
        let page = page.map_err(ArchiveError::Io)?;
        let names = files.keys().map(String::as_str);
        let warnings = warnings_of(&String::from_utf8_lossy(&page), &address, names);
        drop(held);
        Ok::<_, ArchiveError>((files, warnings))
    });
    let (unpacked, warnings) = unpacked
        .await
        .map_err(|error| ArchiveError::Io(std::io::Error::other(error)))??;

    let removed = make_room(state, &target.slug, &unpacked).await?;
    let keeping = state.games.files.keep().await;
    let files = keep_all(&state.games.files, unpacked).await?;
    let now = state.platform.clock.now();
    let deployment = record(
        &*state.platform.store,
        &*state.platform.entropy,
        now,
        target,
        files,
    )
    .await?;
    drop(keeping);
    state.deploys.done.notify_one();
    state
        .hosting
        .read_games()
        .await
        .map_err(DeployError::Store)?;
    Ok(Published {
        deployment,
        warnings,
        removed,
    })
}

/// Makes room for a deployment that was unpacked: earlier ones of the project
/// that no environment shows go first, the oldest before all. Answers how many
/// went; none do where there would be no room all the same.
async fn make_room(
    state: &ProjectsState,
    slug: &str,
    unpacked: &BTreeMap<String, UnpackedFile>,
) -> Result<usize, DeployError> {
    let bytes = unpacked.values().map(|file| file.size).sum();
    if !state.platform.disk.has_room(bytes) {
        return Err(DeployError::DiskFull);
    }
    let limits = state.platform.config.room_limits();
    if limits == RoomLimits::default() {
        return Ok(0);
    }
    let entry = |(path, file): (&String, &UnpackedFile)| {
        let entry = FileEntry {
            sha256: file.sha256.clone(),
            size: file.size,
        };
        (path.clone(), entry)
    };
    let files: BTreeMap<String, FileEntry> = unpacked.iter().map(entry).collect();
    let mut removed = 0;
    loop {
        let measured = state.platform.store.measure_room(slug, files.clone()).await;
        let measured = match measured {
            Err(StoreError::Missing { .. }) => {
                return Err(DeployError::UnknownProject(slug.to_owned()));
            }
            measured => measured.map_err(DeployError::Store)?,
        };
        match limits.judge(measured) {
            Verdict::Fits => return Ok(removed),
            Verdict::FitsWithin(_) => {
                let oldest = state.platform.store.remove_oldest_deployment(slug).await;
                if !oldest.map_err(DeployError::Store)? {
                    // Somebody else has just removed it.
                    return Ok(removed);
                }
                removed += 1;
            }
            full => return Err(DeployError::NoRoom(no_room(full))),
        }
    }
}

/// What is kept, how much may be, and what to do.
fn no_room(verdict: Verdict) -> String {
    let mib = |bytes: u64| bytes.div_ceil(1024 * 1024);
    let (what, needed, limit, advice) = match verdict {
        Verdict::AccountFull { needed, limit } => (
            "your projects",
            needed,
            limit,
            "delete a project that you need no more",
        ),
        Verdict::ProjectFull { needed, limit } => (
            "this project",
            needed,
            limit,
            "make the game smaller, or let its other environment show something smaller",
        ),
        Verdict::Fits | Verdict::FitsWithin(_) => return String::new(),
    };
    format!(
        "With this deployment {what} would keep {} MiB, and may keep {} MiB; earlier deployments that \
         are not shown are not counted, since they would go first. Please {advice}, or ask those who \
         run this platform for more.",
        mib(needed),
        mib(limit)
    )
}

/// The beginning of the start page, which is all of it but for the oddest ones.
fn page(file: &UnpackedFile) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut page = Vec::new();
    std::fs::File::open(&file.at)?
        .take(PAGE_BYTES)
        .read_to_end(&mut page)?;
    Ok(page)
}

async fn keep_all(
    store: &FileStore,
    unpacked: BTreeMap<String, UnpackedFile>,
) -> Result<BTreeMap<String, FileEntry>, DeployError> {
    // Two that are equal would be written over each other at one time.
    let mut contents: BTreeMap<String, UnpackedFile> = BTreeMap::new();
    let mut files = BTreeMap::new();
    for (path, file) in unpacked {
        let entry = FileEntry {
            sha256: file.sha256.clone(),
            size: file.size,
        };
        files.insert(path, entry);
        contents.entry(file.sha256.clone()).or_insert(file);
    }
    stream::iter(contents.into_values())
        .map(|file| async move {
            let entry = FileEntry {
                sha256: file.sha256,
                size: file.size,
            };
            store.put_file(&file.at, &entry).await
        })
        .buffer_unordered(WRITES_AT_ONCE)
        .try_collect::<()>()
        .await?;
    Ok(files)
}

async fn record(
    store: &dyn Store,
    entropy: &dyn Entropy,
    now: Millis,
    target: &Target,
    files: BTreeMap<String, FileEntry>,
) -> Result<Deployment, DeployError> {
    let deployment = Deployment {
        // Random, so that its first characters tell it from all others.
        id: entropy.uuid_v4(),
        slug: target.slug.clone(),
        environment: target.environment,
        files,
        created_at: now,
        made: target.made.clone(),
    };
    match store
        .add_deployment(deployment.clone(), target.by.clone())
        .await
    {
        Ok(()) => {
            let counted = store.count_room(&deployment.slug).await;
            counted.map_err(DeployError::Store)?;
            Ok(deployment)
        }
        Err(StoreError::Missing { .. }) => Err(DeployError::UnknownProject(deployment.slug)),
        Err(error) => Err(DeployError::Store(error)),
    }
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
        self.0.deploys.done.notified().await;
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

/// Makes `content` what the environment of a project shows, as the platform
/// itself.
///
/// # Errors
/// [`DeployError`]; what the environment showed before, it still shows.
pub async fn publish(
    store: &dyn Store,
    files: &FileStore,
    entropy: &dyn Entropy,
    now: Millis,
    slug: &str,
    environment: Environment,
    content: Vec<(String, Bytes)>,
) -> Result<Deployment, DeployError> {
    let content = check(content)?;
    if store
        .find_project(slug)
        .await
        .map_err(DeployError::Store)?
        .is_none()
    {
        return Err(DeployError::UnknownProject(slug.to_owned()));
    }
    let _keeping = files.keep().await;
    let files: BTreeMap<String, FileEntry> = stream::iter(content)
        .map(|(path, bytes)| async move { Ok::<_, FileError>((path, files.put(bytes).await?)) })
        .buffer_unordered(WRITES_AT_ONCE)
        .try_collect()
        .await?;
    let target = Target {
        slug: slug.to_owned(),
        environment,
        by: Actor::Own.into(),
        made: Made::default(),
    };
    record(store, entropy, now, &target, files).await
}

/// Checks every limit and every path before anything is written.
fn check(content: Vec<(String, Bytes)>) -> Result<BTreeMap<String, Bytes>, DeployError> {
    if content.is_empty() {
        return Err(DeployError::Empty);
    }
    if content.len() > MAX_FILES {
        return Err(DeployError::TooManyFiles);
    }
    let total: u64 = content.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    if total > MAX_BYTES {
        return Err(DeployError::TooLarge);
    }
    let mut checked = BTreeMap::new();
    for (path, bytes) in content {
        let path = normalise(&path).map_err(|problem| DeployError::Path {
            path: path.chars().take(100).collect(),
            problem,
        })?;
        if checked.insert(path.to_owned(), bytes).is_some() {
            return Err(DeployError::Twice(path.to_owned()));
        }
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::project::Project;
    use crate::entropy::SystemEntropy;
    use crate::store::{SchemaPolicy, connect};

    struct World {
        directory: tempfile::TempDir,
        store: Arc<dyn Store>,
        files: FileStore,
    }

    impl World {
        async fn with_project(slug: &str) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let url = format!("sqlite://{}/platform.db", directory.path().display());
            let store = connect(&url, SchemaPolicy::Upgrade).await.unwrap();
            let project = Project {
                slug: slug.into(),
                owner: None,
                created_at: 1,
            };
            store.add_project(project).await.unwrap();
            let files = FileStore::local(&directory.path().join("files")).unwrap();
            Self {
                directory,
                store,
                files,
            }
        }

        async fn publish(
            &self,
            slug: &str,
            files: &[(&str, &str)],
        ) -> Result<Deployment, DeployError> {
            let content = files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), Bytes::copy_from_slice(text.as_bytes())))
                .collect();
            let (store, environment) = (&*self.store, Environment::Prod);
            publish(
                store,
                &self.files,
                &SystemEntropy,
                5,
                slug,
                environment,
                content,
            )
            .await
        }

        async fn shown(&self, slug: &str, environment: Environment) -> Option<Deployment> {
            self.store
                .find_current_deployment(slug, environment)
                .await
                .unwrap()
        }
    }

    #[tokio::test]
    async fn a_deployment_is_shown_in_its_environment_alone() {
        let world = World::with_project("demo").await;
        let first = world
            .publish("demo", &[("index.html", "1"), ("a/b.js", "2")])
            .await
            .unwrap();
        assert_eq!(
            world.shown("demo", Environment::Prod).await,
            Some(first.clone())
        );
        assert_eq!(world.shown("demo", Environment::Dev).await, None);
        let content = world
            .files
            .read(&first.files["a/b.js"].sha256)
            .await
            .unwrap();
        assert_eq!(content.as_ref(), b"2");
        let second = world.publish("demo", &[("index.html", "3")]).await.unwrap();
        assert_eq!(world.shown("demo", Environment::Prod).await, Some(second));
    }

    #[tokio::test]
    async fn one_bad_file_keeps_the_whole_deployment_out() {
        let world = World::with_project("demo").await;
        let first = world.publish("demo", &[("index.html", "1")]).await.unwrap();
        for path in ["../x", "__platform/runtime.js"] {
            let refused = world
                .publish("demo", &[("index.html", "2"), (path, "3")])
                .await;
            assert!(matches!(refused, Err(DeployError::Path { .. })), "{path}");
        }
        assert_eq!(world.shown("demo", Environment::Prod).await, Some(first));
        let kept = std::fs::read_dir(world.directory.path().join("files"))
            .unwrap()
            .count();
        assert_eq!(kept, 1, "nothing of a refused deployment was written");
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_kept_leaves_the_old_deployment() {
        let world = World::with_project("demo").await;
        let first = world.publish("demo", &[("index.html", "1")]).await.unwrap();
        let files = world.directory.path().join("files");
        std::fs::remove_dir_all(&files).unwrap();
        std::fs::write(&files, "not a directory").unwrap();
        let failed = world.publish("demo", &[("index.html", "2")]).await;
        assert!(matches!(failed, Err(DeployError::Files(_))), "{failed:?}");
        assert_eq!(world.shown("demo", Environment::Prod).await, Some(first));
    }

    #[tokio::test]
    async fn an_unknown_project_and_an_empty_deployment_are_refused() {
        let world = World::with_project("demo").await;
        let unknown = world.publish("other", &[("index.html", "1")]).await;
        assert!(matches!(unknown, Err(DeployError::UnknownProject(slug)) if slug == "other"));
        assert!(matches!(
            world.publish("demo", &[]).await,
            Err(DeployError::Empty)
        ));
    }

    #[test]
    fn limits_and_doubles_are_checked_before_anything_is_written() {
        let file = |name: String| (name, Bytes::new());
        let many = (0..=MAX_FILES)
            .map(|index| file(index.to_string()))
            .collect();
        assert!(matches!(check(many), Err(DeployError::TooManyFiles)));
        let doubled = vec![file("a".into()), file("./a".into())];
        assert!(matches!(check(doubled), Err(DeployError::Twice(_))));
        let mebibyte = Bytes::from(vec![0; 1024 * 1024]);
        let large = (0..=512)
            .map(|index| (index.to_string(), mebibyte.clone()))
            .collect();
        assert!(matches!(check(large), Err(DeployError::TooLarge)));
    }
}
