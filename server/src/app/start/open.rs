//! Opens what the server reads at its start: the store, the signing keys, deployed files, identity
//! providers.

use std::net::SocketAddr;
use std::sync::Arc;

use super::StartError;
use crate::app::backups::make_before_upgrade;
use crate::app::telemetry;
use crate::auth::demo_provider::{self, DemoProvider};
use crate::auth::keys::{KeyError, KeyRing, KeySecret, KeySecrets};
use crate::clock::{Clock, Millis};
use crate::config::show::{OPERATIONS, shared_settings};
use crate::config::{Config, Secret};
use crate::console::command_line::{CommandLine, CommandLineError};
use crate::domain::counting::DAY;
use crate::entropy::Entropy;
use crate::games::files::FileStore;
use crate::games::live::{self, Live};
use crate::origin::PlatformOrigin;
use crate::platform::disk::FreeSpace;
use crate::platform::nodes::Nodes;
use crate::projects::deploy::UploadQueue;
use crate::store::{self, SchemaPolicy, Store};
use platform_openid::Providers;

/// How long unfinished files stay that another node may be writing.
const UNFINISHED_KEPT: Millis = DAY;

/// The persistent parts, opened and read for the first time.
pub(super) struct Opened {
    pub(super) store: Arc<dyn Store>,
    pub(super) nodes: Arc<Nodes>,
    pub(super) keys: Arc<KeyRing>,
    pub(super) files: Arc<FileStore>,
    pub(super) live: Live,
    pub(super) uploads: UploadQueue,
}

/// Opens the contents of the data folder.
pub(super) async fn open(
    config: &Config,
    (origin, (listening, operations)): (&PlatformOrigin, (SocketAddr, Option<SocketAddr>)),
    clock: &Arc<dyn Clock>,
    entropy: &Arc<dyn Entropy>,
    disk: &Arc<dyn FreeSpace>,
) -> Result<Opened, StartError> {
    let last_write = last_write(config);
    make_before_upgrade(config, disk, clock.now()).await?;
    let store = open_store(config, SchemaPolicy::Upgrade).await?;
    let mut settings = shared_settings(config);
    if let Some(operations) = operations {
        settings.insert(OPERATIONS.to_owned(), operations.to_string());
    }
    let joined = Nodes::join(
        Arc::clone(&store),
        Arc::clone(clock),
        &**entropy,
        listening,
        &settings,
    );
    let nodes = Arc::new(joined.await?);
    if let Some(at) = last_write {
        nodes.calendar().compare_with_last_write(at);
    }
    let keys = unread_keys(config, &store, clock, entropy)?;
    keys.heed_clock_of(Arc::clone(&nodes));
    keys.refresh().await?;
    let keys = Arc::new(keys);
    warn_of_unsealed(origin, &keys);
    warn_of_no_provider(config, origin);
    telemetry::warn_of_plain(config);
    let files = FileStore::open(config, clock, disk).await?;
    Ok(Opened {
        uploads: uploads(config, &files, clock.now()).await?,
        files: Arc::new(files),
        live: live::open(config.redis.as_ref()).await?,
        nodes,
        keys,
        store,
    })
}

/// Returns the providers of the settings, or the built-in one.
pub(super) async fn providers(
    config: &Config,
    origin: &PlatformOrigin,
    store: &dyn Store,
    clock: &Arc<dyn Clock>,
    entropy: &Arc<dyn Entropy>,
) -> Result<(Providers, Option<Arc<DemoProvider>>), StartError> {
    let mut settings = config.identity_providers.clone();
    let demo = if DemoProvider::is_for(&settings, origin) {
        let secret = store.shared_secret(demo_provider::SECRET, entropy.bytes());
        let provider = DemoProvider::new(&secret.await?, origin, clock, entropy)?;
        Some(Arc::new(provider))
    } else {
        None
    };
    if demo.is_some() && !config.listen.ip().is_loopback() {
        tracing::warn!(
            listening = %config.listen,
            "anybody who types a name can sign in with the built-in provider, and other machines \
             can reach it; listen on 127.0.0.1, or configure providers (docs/sign-in.md)"
        );
    }
    settings.extend(demo.as_ref().map(|demo| demo.registration()));
    Ok((Providers::new(&settings, &origin.auth_url(), clock)?, demo))
}

/// Returns when the embedded store was last written; `None` if it is new, or in PostgreSQL, which has a
/// clock of its own.
fn last_write(config: &Config) -> Option<Millis> {
    if config.postgres.is_some() {
        return None;
    }
    let database = config.database_path();
    let mut log = database.clone().into_os_string();
    log.push("-wal");
    let written = [database, log.into()].into_iter().filter_map(|path| {
        let at = path.metadata().ok()?.modified().ok()?;
        let since = at.duration_since(std::time::UNIX_EPOCH).ok()?;
        Millis::try_from(since.as_millis()).ok()
    });
    written.max()
}

/// Creates the folder in which deploys are unpacked, and removes unfinished files of a killed
/// process.
async fn uploads(
    config: &Config,
    files: &FileStore,
    now: Millis,
) -> Result<UploadQueue, StartError> {
    let (folder, files) = (config.data.join("uploads"), files.clone());
    // The folder of a store in PostgreSQL may be one that other nodes write to at this moment.
    let before = config.postgres.is_some().then(|| now - UNFINISHED_KEPT);
    let made = tokio::task::spawn_blocking(move || {
        files.remove_unfinished(before)?;
        UploadQueue::new(folder).map_err(StartError::Uploads)
    });
    made.await
        .unwrap_or_else(|error| Err(StartError::Uploads(std::io::Error::other(error))))
}

/// Reads and checks the command line that the platform hands out.
pub(super) async fn command_line(
    config: &Config,
    origin: &PlatformOrigin,
) -> Result<CommandLine, CommandLineError> {
    let (folder, origin) = (config.cli_folder.clone(), origin.clone());
    let reading =
        tokio::task::spawn_blocking(move || CommandLine::open(folder.as_deref(), &origin));
    reading
        .await
        .unwrap_or_else(|error| Err(CommandLineError::Prepare(error.into())))
}

/// Opens the store that the settings name.
///
/// # Errors
/// Errors of the store.
pub async fn open_store(
    config: &Config,
    schema: SchemaPolicy,
) -> Result<Arc<dyn Store>, StartError> {
    if let Some(url) = &config.postgres {
        let logs = config.postgres_logs.as_ref().map(Secret::expose);
        return Ok(store::connect_with_logs(url.expose(), logs, schema).await?);
    }
    let url = format!("sqlite://{}", config.database_path().display());
    Ok(store::connect(&url, schema).await?)
}

/// Opens the signing keys in the store.
///
/// # Errors
/// [`KeyError`]
pub async fn open_keys(
    config: &Config,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<Arc<KeyRing>, StartError> {
    let keys = unread_keys(config, &store, &clock, &entropy)?;
    keys.refresh().await?;
    Ok(Arc::new(keys))
}

/// Returns the signing keys, which are not read yet.
///
/// # Errors
/// A secret is too short.
pub fn unread_keys(
    config: &Config,
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
    entropy: &Arc<dyn Entropy>,
) -> Result<KeyRing, KeyError> {
    let secret = |secret: &Option<Secret>| {
        let secret = secret.as_ref();
        secret
            .map(|secret| KeySecret::new(secret.expose()))
            .transpose()
    };
    let secrets = KeySecrets {
        present: secret(&config.key_secret)?,
        former: secret(&config.key_secret_old)?,
    };
    Ok(KeyRing::empty(
        Arc::clone(store),
        Arc::clone(clock),
        Arc::clone(entropy),
        config.token_seconds,
        secrets,
    ))
}

/// Warns if the keys of a public platform are not sealed, so that anyone who can read the store's
/// file could mint tokens.
fn warn_of_unsealed(origin: &PlatformOrigin, keys: &KeyRing) {
    let unsealed = keys.list().iter().filter(|key| !key.sealed).count();
    if origin.is_secure() && unsealed > 0 {
        tracing::warn!(
            unsealed,
            "the store contains unsealed signing keys: anybody who reads a copy of it can sign as \
             the platform; set PLATFORM_KEY_SECRET and run `platform-server keys reseal` \
             (docs/hosting.md)"
        );
    }
}

/// Warns if a public platform has no identity provider: nobody can sign in, so there are no
/// accounts, projects or administrators.
fn warn_of_no_provider(config: &Config, origin: &PlatformOrigin) {
    let providers = &config.identity_providers;
    if origin.is_secure() && providers.is_empty() && !DemoProvider::is_for(providers, origin) {
        tracing::warn!(
            "no identity provider is configured, so nobody can sign in, create a project or \
             administer; see docs/sign-in.md"
        );
    }
}
