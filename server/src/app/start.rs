//! Start and shutdown of the server.
//!
//! | module | contents |
//! |---|---|
//! | [`assemble`] | the states of all slices |
//! | [`listeners`] | the sockets |
//! | [`open`] | what is read at the start |

mod assemble;
mod listeners;
mod open;

use std::iter;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use platform_telemetry::Telemetry;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use self::assemble::assemble;
pub(super) use self::listeners::Listening;
use self::listeners::listen_for_all;
use self::open::{Opened, command_line, open, providers};
pub use self::open::{open_keys, open_store, unread_keys};
use crate::app::backups::BackupsError;
#[cfg(feature = "demo")]
use crate::app::demo::{self, DemoError};
use crate::app::entry::App;
use crate::app::openapi;
use crate::app::operations::{Operations, Readiness};
use crate::app::routes::routes_with;
use crate::app::sockets::Sockets;
use crate::app::state::AppState;
use crate::app::telemetry::{self, TelemetryError};
use crate::app::tls::acme::dns::DnsCommandError;
use crate::app::tls::acme::http::AcmeError;
use crate::app::tls::files::FileCertificateError;
use crate::app::tls::{PreparedTls, Tls};
use crate::app::{changes, jobs};
use crate::auth::keys::KeyError;
use crate::auth::refusal_log;
use crate::clock::Clock;
use crate::config::Config;
use crate::console::command_line::CommandLineError;
use crate::entropy::Entropy;
use crate::games::files::FileError;
use crate::games::live::LiveError;
use crate::hosting::backends::{self, Assertions, Backends};
use crate::hosting::runtime::{RuntimeError, RuntimeFiles};
use crate::logs::streams::LogStreams;
use crate::origin::PlatformOrigin;
use crate::platform::Platform;
use crate::platform::disk::{DiskFloor, FreeSpace, SystemDisk};
use crate::platform::metrics::Metrics;
use crate::players::counting::Counting;
use crate::store::{ConnectError, StoreError};
use crate::web::serve::{ConnectionLimits, DRAIN, serve, serve_with};
use platform_openid::ProvidersError;

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
    /// The store is older, and there is no backup of it.
    #[error("the store is not upgraded, because no backup of it could be made before")]
    Backup(#[from] BackupsError),
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
    /// The certificates cannot be used.
    #[error("PLATFORM_TLS_CERTIFICATES, with PLATFORM_TLS_KEYS")]
    Certificates(#[from] FileCertificateError),
    /// The ACME server cannot be used.
    #[error(transparent)]
    Acme(#[from] AcmeError),
    /// The program that publishes TXT records cannot be run.
    #[error(transparent)]
    DnsCommand(#[from] DnsCommandError),
    /// Traces and log lines cannot be sent.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// The runtime cannot be served.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The command line cannot be handed out.
    #[error(transparent)]
    CommandLine(#[from] CommandLineError),
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
    } else if error.kind() == std::io::ErrorKind::PermissionDenied {
        format!(
            "this user may not listen there, as on ports below 1024; let systemd pass the socket \
             (docs/hosting.md), or set {setting} to a higher port"
        )
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
    /// What TLS needs, if the server speaks it itself.
    pub tls: Option<Tls>,
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
        let closed = store.close().await;
        state.platform.telemetry.close().await;
        closed.and(counted)
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

/// Starts the server on the sockets that a service manager has opened; it opens the others itself.
/// It sends its traces with `telemetry`, which also sends the program's log lines.
///
/// # Errors
/// [`StartError`]
pub async fn start_with(
    sockets: Sockets,
    config: Config,
    telemetry: Telemetry,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<Running, StartError> {
    let disk = Arc::new(SystemDisk);
    start_listening(sockets, config, telemetry, (clock, entropy), disk).await
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
    let telemetry = telemetry::open(&config)?;
    start_listening(
        Sockets::default(),
        config,
        telemetry,
        (clock, entropy),
        disk,
    )
    .await
}

async fn start_listening(
    sockets: Sockets,
    config: Config,
    telemetry: Telemetry,
    (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>),
    disk: Arc<dyn FreeSpace>,
) -> Result<Running, StartError> {
    let listeners = listen_for_all(sockets, &config).await?;
    let ((listener, listening), operations) = (listeners.visitors, listeners.operations);
    let tls = PreparedTls::prepare(&config, listeners.redirect).await?;
    let sockets = (listening, operations.as_ref().map(|(_, at)| *at));
    let (origin, games_origin) = origins(&config, listening);

    let runtime = begin_runtime(&origin, &config);
    let Opened {
        store,
        nodes,
        keys,
        files,
        live,
        uploads,
    } = open(&config, (&origin, sockets), &clock, &entropy, &disk).await?;

    let (stopping, stopped) = watch::channel(false);
    let mut server = JoinSet::new();
    let assertions = Assertions::new(Arc::clone(&keys), Arc::clone(&clock), origin.auth_url());
    let backends = backends_of(&config, (&origin, &games_origin), sockets)?
        .signed_by(assertions)
        .traced_by(telemetry.clone());
    let (providers, demo_provider) = providers(&config, &origin, &*store, &clock, &entropy).await?;
    let kept_in = config.folders();
    let counting = Counting::open(&*store, clock.now()).await?;
    let platform = Arc::new(Platform {
        disk: DiskFloor::new(disk, kept_in, config.disk_floor()),
        store,
        nodes: Arc::clone(&nodes),
        metrics: metrics(&config, &telemetry),
        telemetry,
        clock,
        entropy,
        config,
        origin: origin.clone(),
        games_origin,
        auth_url: origin.auth_url(),
        listening,
    });
    #[cfg(feature = "demo")]
    let has_demo = demo::start(&platform, &backends, &mut server, &stopped).await?;
    // What does not need the runtime comes first, since its compression takes longest.
    let api = openapi::calls().into();
    let state = assemble(
        &platform,
        (files, live, uploads),
        (keys, providers, demo_provider),
        (backends, end_runtime(runtime).await?),
        (counting, LogStreams::new(stopped.clone())),
        command_line(&platform.config, &origin).await?,
    );
    #[cfg(feature = "demo")]
    if has_demo {
        demo::deploy(&platform, &state.projects.deployments).await?;
    }
    nodes.begin().await?;
    state.hosting.refresh_all().await?;
    changes::catch_up(&state).await;
    let app = App::new(state.clone(), routes_with(&state, api));
    let limits = ConnectionLimits::of_this_process();
    let mut background = jobs::start(&state);
    let tasks = (&mut server, &mut background);
    let tls = serve_visitors(app, (listener, tls), (limits, stopped), tasks)?;
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
        tls,
        background,
        readiness,
        state,
        stopping,
        server,
    })
}

/// Returns what sends requests to the backends of games, which must not be the server's own `sockets`.
fn backends_of(
    config: &Config,
    origins: (&PlatformOrigin, &PlatformOrigin),
    sockets: (SocketAddr, Option<SocketAddr>),
) -> Result<Backends, StartError> {
    let sockets = iter::once(sockets.0).chain(sockets.1).collect();
    let settings = backends::Settings::new(config, origins, sockets);
    Ok(Backends::new(origins.0, settings)?)
}

/// Begins to serve visitors, with TLS of the platform's own if the settings want it. Returns what TLS needs.
fn serve_visitors(
    app: App,
    (listener, tls): (TcpListener, Option<PreparedTls>),
    (limits, stopped): (ConnectionLimits, watch::Receiver<bool>),
    (server, background): (&mut JoinSet<()>, &mut JoinSet<()>),
) -> Result<Option<Tls>, StartError> {
    let mut tls = tls.map(|tls| tls.assemble(&app.state)).transpose()?;
    let overload = Arc::clone(&app.overload);
    background.spawn(async move { overload.watch().await });
    let https = tls.as_mut().map(|tls| {
        tls.start(&app, limits, &stopped, (server, background));
        tls.https()
    });
    server.spawn(serve_with(listener, https, app, limits, stopped));
    Ok(tls)
}

/// Returns what counts, if somebody can read it. Spans have the names of its routes.
fn metrics(config: &Config, telemetry: &Telemetry) -> Metrics {
    if config.operations_listen.is_some() || telemetry.is_on() {
        Metrics::on()
    } else {
        Metrics::default()
    }
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

/// Returns the platform origin, and that of games.
fn origins(config: &Config, listening: SocketAddr) -> (PlatformOrigin, PlatformOrigin) {
    let local = || PlatformOrigin::local(listening.port());
    let origin = config.origin.clone().unwrap_or_else(local);
    let games = config.games_origin.clone();
    let games = games.unwrap_or_else(|| origin.clone());
    if games != origin && games.is_one_site_with(&origin) {
        tracing::warn!(
            "games_origin: {} and {} are one site for browsers, so games are not isolated from the \
             auth service; use another registrable domain",
            games.host(),
            origin.host()
        );
    }
    if games.is_local() && games.port() != listening.port() && games.port() != origin.port() {
        tracing::warn!(
            "games_origin: its port is {}, but the server listens on {}",
            games.port(),
            listening.port()
        );
    }
    (origin, games)
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

/// How long [`Running::stop`] may take, with some reserve.
pub const STOP: Duration = DRAIN.saturating_add(Duration::from_secs(2));
