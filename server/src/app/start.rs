//! Start and shutdown of the server.

use std::iter;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::admin::AdminState;
#[cfg(feature = "demo")]
use crate::app::demo::{self, DemoError};
use crate::app::entry::App;
use crate::app::jobs;
use crate::app::openapi;
use crate::app::operations::{Operations, Readiness};
use crate::app::routes::routes_with;
use crate::app::state::{AppState, Parts};
use crate::auth::demo_provider::{self, DemoProvider};
use crate::auth::ended_sessions::Endings;
use crate::auth::game_tokens::GameTokens;
use crate::auth::keys::{KeyError, KeyRing, KeySecret, KeySecrets};
use crate::auth::oidc::{Providers, ProvidersError};
use crate::auth::refusal_log;
use crate::auth::suspensions::Suspensions;
use crate::auth::{AuthLimits, AuthState};
use crate::clock::Clock;
use crate::config::show::shared_settings;
use crate::config::{Config, Secret};
use crate::console::ConsoleState;
use crate::entropy::Entropy;
use crate::games::GamesState;
use crate::games::catalogue::Catalogue;
use crate::games::files::{FileError, FileStore};
use crate::games::live::{self, Live, LiveError};
use crate::hosting::HostingState;
use crate::hosting::backends::{self, Assertions, Backends};
use crate::hosting::file_cache::Contents;
use crate::hosting::runtime::{RuntimeError, RuntimeFiles};
use crate::logs::streams::LogStreams;
use crate::logs::{LogLimits, LogsState};
use crate::origin::PlatformOrigin;
use crate::platform::Platform;
use crate::platform::disk::{DiskFloor, FreeSpace, SystemDisk};
use crate::platform::nodes::Nodes;
use crate::platform::shared_limits::SharedLimits;
use crate::players::PlayersState;
use crate::players::counting::Counting;
use crate::players::recording::Recording;
use crate::projects::ProjectsState;
use crate::projects::deploy::{Deployments, UploadQueue};
use crate::projects::settings_limits::SettingsLimits;
use crate::store::{self, ConnectError, SchemaPolicy, Store, StoreError};
use crate::web::serve::{ConnectionLimits, DRAIN, serve};

/// Why the server did not start; a line for the operator.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The server cannot listen on the socket.
    #[error("cannot listen on {address}: {}", listen_advice(setting, source))]
    Listen {
        /// The address of the socket.
        address: SocketAddr,
        /// The setting that names it.
        setting: &'static str,
        /// The cause.
        source: std::io::Error,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file store cannot be opened.
    #[error(transparent)]
    Files(#[from] FileError),
    /// Presence cannot be opened.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The signing keys cannot be read or created.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The identity providers cannot be used.
    #[error("identity_provider: {0}")]
    Providers(#[from] ProvidersError),
    /// The client for backends cannot be created.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// The runtime cannot be served.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The demo cannot be deployed.
    #[cfg(feature = "demo")]
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// The folder in which deploys are unpacked cannot be created.
    #[error("the folder `uploads` in the data folder could not be prepared")]
    Uploads(#[source] std::io::Error),
}

fn listen_advice(setting: &str, error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::AddrInUse {
        format!("another program listens there; stop it, or set {setting} to another port")
    } else {
        format!("{error}; set {setting} to an address of this machine")
    }
}

/// A running server. Dropping it stops it at once; [`Running::stop`] lets requests in progress
/// finish.
#[derive(Debug)]
#[must_use = "dropping it ends the server"]
pub struct Running {
    /// The platform origin.
    pub origin: String,
    /// The address on which it listens.
    pub address: SocketAddr,
    /// The address of the health checks, if there are any.
    pub operations: Option<SocketAddr>,
    /// The state of the handlers.
    pub state: AppState,
    readiness: Arc<Readiness>,
    stopping: watch::Sender<bool>,
    server: JoinSet<()>,
    background: JoinSet<()>,
}

impl Running {
    /// Says to balancers that they should choose another node, and goes on serving.
    /// Returns how long they are given to find out before [`Running::stop`].
    pub fn drain(&self) -> Duration {
        self.readiness.drain();
        self.state.platform.config.shutdown_delay()
    }

    /// Stops gracefully: it accepts no new connections, requests in progress finish within ten
    /// seconds, then the store is closed.
    ///
    /// # Errors
    /// The store's error, if it could not write the queued data.
    pub async fn stop(mut self) -> Result<(), StoreError> {
        self.stopping.send_replace(true);
        // WebSockets may be silent forever, so there is nothing to wait for.
        self.state.hosting.backends.close();
        // The server has its own time limit, and so has the demo's backend.
        while self.server.join_next().await.is_some() {}
        self.background.shutdown().await;
        let (state, store) = (&self.state, &*self.state.platform.store);
        refusal_log::tell_left_out(&state.auth, true).await;
        state.players.recording.finish().await;
        let counted = state
            .players
            .counting
            .keep(store, state.platform.clock.now())
            .await;
        state.platform.nodes.leave().await;
        store.close().await.and(counted)
    }
}

/// Opens everything, listens, and serves. The port in `config` may be 0.
///
/// # Errors
/// [`StartError`]
pub async fn start(
    config: Config,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<Running, StartError> {
    start_on(config, clock, entropy, Arc::new(SystemDisk)).await
}

/// Starts the server on a disk whose free space `disk` returns.
///
/// # Errors
/// [`StartError`]
pub async fn start_on(
    config: Config,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    disk: Arc<dyn FreeSpace>,
) -> Result<Running, StartError> {
    let (listener, listening) = listen(config.listen, "PLATFORM_LISTEN").await?;
    let operations = listen_for_operations(&config).await?;
    let origin = config
        .origin
        .clone()
        .unwrap_or_else(|| PlatformOrigin::local(listening.port()));

    let runtime = begin_runtime(&origin, &config);
    let Opened {
        store,
        nodes,
        keys,
        files,
        live,
        uploads,
    } = open(&config, (&origin, listening), &clock, &entropy, &disk).await?;

    let (stopping, stopped) = watch::channel(false);
    let mut server = JoinSet::new();
    let assertions = Assertions::new(Arc::clone(&keys), Arc::clone(&clock), origin.auth_url());
    let health = operations.as_ref().map(|(_, address)| *address);
    let sockets = iter::once(listening).chain(health).collect();
    let settings = backends::Settings::new(&config, &origin, sockets);
    let backends = Backends::new(&origin, settings)?.signed_by(assertions);
    let (providers, demo_provider) = providers(&config, &origin, &*store, &clock, &entropy).await?;
    let kept_in = config.folders();
    let counting = Counting::open(&*store, clock.now()).await?;
    let platform = Arc::new(Platform {
        disk: DiskFloor::new(disk, kept_in, config.disk_floor()),
        store,
        nodes: Arc::clone(&nodes),
        clock,
        entropy,
        config,
        origin: origin.clone(),
        auth_url: origin.auth_url(),
        listening,
    });
    #[cfg(feature = "demo")]
    let has_demo = demo::start(&platform, &backends, &mut server, &stopped).await?;
    // What does not need the runtime comes first, since its compression takes longest.
    let api = openapi::calls().into();
    let runtime = end_runtime(runtime).await?;
    let state = assemble(
        &platform,
        (files, live, uploads),
        (keys, providers, demo_provider),
        (backends, runtime),
        (counting, LogStreams::new(stopped.clone())),
    );
    #[cfg(feature = "demo")]
    if has_demo {
        demo::deploy(&platform, &state.projects.deployments).await?;
    }
    if platform.store.is_shared() {
        // From here on the others wait for this node.
        nodes.report().await?;
    }
    state.hosting.refresh_all().await?;
    let app = App {
        routes: routes_with(&state, api),
        state: state.clone(),
    };
    let limits = ConnectionLimits::of_this_process();
    server.spawn(serve(listener, app, limits, stopped));
    let mut background = jobs::start(&state);
    let readiness = readiness(&state);
    let operations = operations.map(|(listener, address)| {
        let app = Operations::new(state.clone(), Arc::clone(&readiness));
        background.spawn(serve_to_the_end(listener, app, limits));
        address
    });
    Ok(Running {
        origin: origin.to_string(),
        address: listening,
        operations,
        background,
        readiness,
        state,
        stopping,
        server,
    })
}

/// Creates the states of all slices.
fn assemble(
    platform: &Arc<Platform>,
    (files, live, uploads): (Arc<FileStore>, Live, UploadQueue),
    (keys, providers, demo_provider): (Arc<KeyRing>, Providers, Option<Arc<DemoProvider>>),
    (backends, runtime): (Backends, RuntimeFiles),
    (counting, streams): (Counting, LogStreams),
) -> AppState {
    let (clock, config) = (&platform.clock, &platform.config);
    let contents = Contents::new(Arc::clone(&files), config.file_cache_bytes());
    let games = Arc::new(GamesState {
        platform: Arc::clone(platform),
        catalogue: Catalogue::new(platform.origin.clone()),
        files,
        presence: live.presence,
    });
    if let Some(hints) = live.hints {
        platform.nodes.hurry_by(hints);
    }
    let limits = SharedLimits::new(live.counter, platform.nodes.live());
    let tokens = GameTokens::new(
        Arc::clone(&keys),
        Arc::clone(clock),
        platform.auth_url.clone(),
    );
    let auth = Arc::new(AuthState {
        platform: Arc::clone(platform),
        games: Arc::clone(&games),
        keys,
        providers,
        demo_provider,
        tokens,
        suspensions: Suspensions::default(),
        endings: Endings::default(),
        limits: AuthLimits::new(config, clock, &limits),
    });
    let hosting = Arc::new(HostingState {
        platform: Arc::clone(platform),
        games: Arc::clone(&games),
        contents,
        backends,
        runtime,
    });
    let deployments = Deployments::new(Arc::clone(platform), Arc::clone(&hosting), uploads);
    let projects = Arc::new(ProjectsState {
        platform: Arc::clone(platform),
        games: Arc::clone(&games),
        auth: Arc::clone(&auth),
        hosting: Arc::clone(&hosting),
        deployments: Arc::new(deployments),
        settings_limits: SettingsLimits::new(clock, &limits),
    });
    let players = Arc::new(PlayersState {
        platform: Arc::clone(platform),
        games: Arc::clone(&games),
        auth: Arc::clone(&auth),
        hosting: Arc::clone(&hosting),
        counting,
        recording: Recording::default(),
    });
    let logs = Arc::new(LogsState {
        platform: Arc::clone(platform),
        auth: Arc::clone(&auth),
        limits: LogLimits::new(config, clock),
        streams,
    });
    let admin = Arc::new(AdminState {
        platform: Arc::clone(platform),
        games: Arc::clone(&games),
        auth: Arc::clone(&auth),
        hosting: Arc::clone(&hosting),
        projects: Arc::clone(&projects),
    });
    let console = ConsoleState::new(Arc::clone(platform), Arc::clone(&players));
    AppState::new(Parts {
        platform: Arc::clone(platform),
        games,
        auth,
        hosting,
        projects,
        players,
        logs,
        admin,
        console: Arc::new(console),
    })
}

/// The persistent parts, opened and read for the first time.
struct Opened {
    store: Arc<dyn Store>,
    nodes: Arc<Nodes>,
    keys: Arc<KeyRing>,
    files: Arc<FileStore>,
    live: Live,
    uploads: UploadQueue,
}

/// Opens the contents of the data folder.
async fn open(
    config: &Config,
    (origin, listening): (&PlatformOrigin, SocketAddr),
    clock: &Arc<dyn Clock>,
    entropy: &Arc<dyn Entropy>,
    disk: &Arc<dyn FreeSpace>,
) -> Result<Opened, StartError> {
    let store = open_store(config, SchemaPolicy::Upgrade).await?;
    let settings = shared_settings(config);
    let joined = Nodes::join(
        Arc::clone(&store),
        Arc::clone(clock),
        &**entropy,
        listening,
        &settings,
    );
    let nodes = Arc::new(joined.await?);
    let keys = open_keys(
        config,
        Arc::clone(&store),
        Arc::clone(clock),
        Arc::clone(entropy),
    );
    let keys = keys.await?;
    warn_of_unsealed(origin, &keys);
    warn_of_no_provider(config, origin);
    let files = FileStore::open(config, clock, disk).await?;
    Ok(Opened {
        uploads: uploads(config, &files).await?,
        files: Arc::new(files),
        live: live::open(config.redis.as_ref()).await?,
        nodes,
        keys,
        store,
    })
}

/// Returns the providers of the settings, or the built-in one.
async fn providers(
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

/// Creates the folder in which deploys are unpacked, and removes unfinished files of a killed
/// process.
async fn uploads(config: &Config, files: &FileStore) -> Result<UploadQueue, StartError> {
    let (folder, files) = (config.data.join("uploads"), files.clone());
    let made = tokio::task::spawn_blocking(move || {
        files.remove_unfinished()?;
        UploadQueue::new(folder).map_err(StartError::Uploads)
    });
    made.await
        .unwrap_or_else(|error| Err(StartError::Uploads(std::io::Error::other(error))))
}

/// Serves until the task ends: health checks are answered as long as there is a process.
async fn serve_to_the_end(listener: TcpListener, app: Operations, limits: ConnectionLimits) {
    let (_never, stopping) = watch::channel(false);
    serve(listener, app, limits, stopping).await;
}

/// What the node needs to serve visitors.
fn readiness(state: &AppState) -> Arc<Readiness> {
    let (platform, keys) = (&state.platform, &state.auth.keys);
    let (store, clock) = (Arc::clone(&platform.store), Arc::clone(&platform.clock));
    let (files, nodes) = (Arc::clone(&state.games.files), Arc::clone(&platform.nodes));
    let presence = Arc::clone(&state.games.presence);
    let readiness = Readiness::new(store, Arc::clone(keys), files, presence, clock, nodes);
    Arc::new(readiness)
}

/// Listens for health checks, if the settings name a socket for them.
async fn listen_for_operations(
    config: &Config,
) -> Result<Option<(TcpListener, SocketAddr)>, StartError> {
    match config.operations_listen {
        Some(address) => Ok(Some(listen(address, "PLATFORM_OPERATIONS_LISTEN").await?)),
        None => Ok(None),
    }
}

/// Listens on `address`, which `setting` names. Returns the socket, and its address with
/// the port that the system chose if it is 0.
async fn listen(
    address: SocketAddr,
    setting: &'static str,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen {
        address,
        setting,
        source,
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let listening = listener.local_addr().map_err(failed)?;
    Ok((listener, listening))
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
    Ok(KeyRing::open(store, clock, entropy, config.token_seconds, secrets).await?)
}

/// Compresses the runtime, which takes CPU time, while the store is opened.
fn begin_runtime(
    origin: &PlatformOrigin,
    config: &Config,
) -> JoinHandle<Result<RuntimeFiles, RuntimeError>> {
    let (origin, heartbeat) = (origin.clone(), config.heartbeat_seconds);
    tokio::task::spawn_blocking(move || RuntimeFiles::new(&origin, heartbeat))
}

/// Waits for the compressed runtime.
async fn end_runtime(
    compressing: JoinHandle<Result<RuntimeFiles, RuntimeError>>,
) -> Result<RuntimeFiles, RuntimeError> {
    let compressed = compressing.await;
    compressed.map_err(|error| RuntimeError::Compress(error.into()))?
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
    if origin.is_secure() && config.identity_providers.is_empty() {
        tracing::warn!(
            "no identity provider is configured, so nobody can sign in, create a project or \
             administer; see docs/sign-in.md"
        );
    }
}

/// How long [`Running::stop`] may take, with some reserve.
pub const STOP: Duration = DRAIN.saturating_add(Duration::from_secs(2));
