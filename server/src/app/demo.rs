//! The demo game: a platform on a developer's machine has it from the first start, with a backend
//! for each environment.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use platform_demo_backend::DemoConfig;
use platform_protocol::names::Environment;
use platform_protocol::paths;
use rust_embed::RustEmbed;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::domain::audit::Actor;
use crate::domain::errors::chain;
use crate::domain::listing::OwnListing;
use crate::domain::project::Project;
use crate::hosting::backends::Backends;
use crate::platform::Platform;
use crate::projects::deploy::{DeployError, Deployments, Target};
use crate::store::{self, StoreError};

/// The demo's project.
pub const SLUG: &str = "demo";

#[derive(RustEmbed)]
#[folder = "../www/demo/game"]
struct GameFiles;

/// Why the demo could not be started.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The store failed.
    #[error("the demo game could not be recorded")]
    Store(#[from] StoreError),
    /// The files could not be deployed.
    #[error("the demo game could not be deployed")]
    Deploy(#[from] DeployError),
    /// A backend could not be started.
    #[error("the demo game's backend could not be started")]
    Backend(#[from] std::io::Error),
}

/// Whose the demo is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// The platform's: it deploys the game.
    Platform,
    /// A player's, to whom it was transferred. The player deploys, and the backends go on.
    Player,
}

/// Adds the demo to a new platform, and starts its backends. Returns whether the platform deploys it.
///
/// # Errors
/// [`DemoError`]
pub async fn start(
    platform: &Platform,
    backends: &Backends,
    tasks: &mut JoinSet<()>,
    stopping: &watch::Receiver<bool>,
) -> Result<bool, DemoError> {
    let owner = add_project(platform).await?;
    if owner.is_some() {
        start_backends(platform, backends, tasks, stopping).await?;
    }
    Ok(owner == Some(Owner::Platform))
}

/// Adds the demo's project to an empty store under `localhost`, unless the operator disabled it.
/// Returns the demo's owner, or `None` if there is no demo.
async fn add_project(platform: &Platform) -> Result<Option<Owner>, DemoError> {
    if !platform.config.demo || !platform.origin.is_local() {
        return Ok(None);
    }
    let store = &platform.store;
    if store.list_projects().await?.is_empty() {
        let project = Project {
            slug: SLUG.to_owned(),
            owner: None,
            created_at: platform.clock.now(),
        };
        match store.add_project(project).await {
            // Another node was faster, or it was permanently deleted and its slug stays taken.
            Err(StoreError::Conflict { .. }) => {}
            added => {
                added?;
                let by = Actor::Own.into();
                let own = OwnListing::default();
                let now = platform.clock.now();
                store.set_listing(SLUG, true, own, by, now).await?;
            }
        }
    }
    // A player's own project may have the name. But where a backend of the demo has stored something,
    // the project was the demo before it was transferred: no slug is ever given to a second project.
    let had_backend = || database(&platform.config.demo_path(), Environment::Prod).exists();
    Ok(match store.find_project(SLUG).await? {
        Some(project) if project.owner.is_none() => Some(Owner::Platform),
        Some(_) if had_backend() => Some(Owner::Player),
        _ => None,
    })
}

/// Deploys the demo, if its files have changed.
///
/// # Errors
/// [`DemoError`]
pub async fn deploy(platform: &Platform, deployments: &Deployments) -> Result<(), DemoError> {
    for environment in Environment::ALL {
        let deployed = platform.store.find_current_deployment(SLUG, environment);
        let deployed = deployed.await?;
        let deployed: Option<BTreeMap<String, String>> = deployed.map(|deployment| {
            deployment
                .files
                .into_iter()
                .map(|(path, entry)| (path, entry.sha256))
                .collect()
        });
        if deployed.as_ref() != Some(&digests()) {
            deploy_to(environment, deployments).await?;
        }
    }
    Ok(())
}

/// Deploys the files of this program.
async fn deploy_to(environment: Environment, deployments: &Deployments) -> Result<(), DeployError> {
    let target = Target::of_platform(SLUG, environment);
    deployments.deploy_contents(contents(), &target).await?;
    let environment = environment.as_str();
    tracing::info!(environment, "the demo game was deployed");
    Ok(())
}

fn contents() -> Vec<(String, Bytes)> {
    let content = |path: &str| GameFiles::get(path).map(|file| Bytes::from(file.data.into_owned()));
    GameFiles::iter()
        .filter_map(|path| Some((path.to_string(), content(&path)?)))
        .collect()
}

fn digests() -> BTreeMap<String, String> {
    let digest = |path: &str| {
        let hash = GameFiles::get(path)?.metadata.sha256_hash();
        Some(base16ct::lower::encode_string(&hash))
    };
    GameFiles::iter()
        .filter_map(|path| Some((path.to_string(), digest(&path)?)))
        .collect()
}

/// Starts a backend for each environment and forwards the demo's calls to it. The backends stop
/// when `stopping` becomes true.
async fn start_backends(
    platform: &Platform,
    backends: &Backends,
    tasks: &mut JoinSet<()>,
    stopping: &watch::Receiver<bool>,
) -> Result<(), DemoError> {
    let auth_url = &platform.auth_url;
    let directory = platform.config.demo_path();
    // Only the owner may read it, as with the platform's own store. The backend would create its
    // files readable for everybody.
    store::make_private_directory(&directory)?;
    for environment in Environment::ALL {
        let database = database(&directory, environment);
        store::make_private_file(&database)?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        backends.add(SLUG, environment, listener.local_addr()?);
        let settings = DemoConfig {
            issuer: auth_url.clone(),
            audience: environment.audience(SLUG),
            jwks_url: format!("{auth_url}{}", paths::JWKS),
            database,
        };
        let clock = Arc::new(BackendClock(Arc::clone(&platform.clock)));
        let mut stopping = stopping.clone();
        tasks.spawn(async move {
            let stop = async move {
                // An error means that the server was dropped, which also stops the backend.
                let _ = stopping.wait_for(|stopping| *stopping).await;
            };
            let served =
                platform_demo_backend::serve_with_clock(listener, settings, clock, stop).await;
            if let Err(error) = served {
                tracing::error!(error = chain(&error), "the demo game's backend ended");
            }
        });
    }
    Ok(())
}

fn database(directory: &Path, environment: Environment) -> std::path::PathBuf {
    directory.join(format!("{}.db", environment.as_str()))
}

/// Our clock for the backend's verifier: both must agree on what has expired.
#[derive(Debug)]
struct BackendClock(Arc<dyn Clock>);

impl platform_verifier::Clock for BackendClock {
    fn now(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.now()).unwrap_or(0))
    }
}
