//! From settings to a running server, and back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::backends::Backends;
use crate::clock::Clock;
use crate::config::{Config, Period, Rate};
use crate::demo::{self, DemoError};
use crate::demo_provider::DemoProvider;
use crate::entropy::Entropy;
use crate::files::{FileError, FileStore};
use crate::http::asset::Asset;
use crate::http::entry::App;
use crate::http::limiter::Limiter;
use crate::http::refusal::chain;
use crate::http::serve::{ConnectionLimits, DRAIN, serve};
use crate::keys::{KeyError, KeyRing, KeySecret};
use crate::live::MemoryPresence;
use crate::logs::{self, LogLimits};
use crate::oidc::{Providers, ProvidersError};
use crate::origin::PlatformOrigin;
use crate::routes::routes;
use crate::runtime::{RuntimeError, RuntimeFiles};
use crate::sessions;
use crate::sites::Sites;
use crate::state::{AppState, Parts};
use crate::store::{self, ConnectError, Store, StoreError};
use crate::suspensions::{self, Suspensions};
use crate::titles::Titles;
use crate::tokens::GameTokens;

/// How often keys and games are read again, for what other nodes have done.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// How often one player may take another name. Each is an event that is kept.
const RENAMES: Rate = Rate::new(10, Period::Hour, 10);

/// Why the server did not start; a line for the operator.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The socket cannot be listened on.
    #[error("cannot listen on {address}: {}", listen_advice(source))]
    Listen {
        /// Which socket.
        address: SocketAddr,
        /// Why.
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
    /// The signing keys cannot be read or made.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The identity providers cannot be used.
    #[error("identity_provider: {0}")]
    Providers(#[from] ProvidersError),
    /// The runtime cannot be served.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The demo cannot be deployed.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// Something that is made at the start could not be made.
    #[error("the platform's own files could not be made ready")]
    Assets(#[source] std::io::Error),
}

fn listen_advice(error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::AddrInUse {
        "another program listens there; stop it, or set PLATFORM_LISTEN to another port".to_owned()
    } else {
        error.to_string()
    }
}

/// A running server. Dropping it ends it at once; [`Running::stop`] lets
/// requests in flight finish.
#[derive(Debug)]
#[must_use = "dropping it ends the server"]
pub struct Running {
    /// The platform origin.
    pub origin: String,
    /// The socket that is listened on.
    pub address: SocketAddr,
    /// What handlers are handed.
    pub state: AppState,
    stopping: watch::Sender<bool>,
    server: JoinSet<()>,
    background: JoinSet<()>,
}

impl Running {
    /// Stops gracefully: no new connections, requests in flight finish within
    /// ten seconds, then the store is closed.
    ///
    /// # Errors
    /// The store's, if it could not write what was queued.
    pub async fn stop(mut self) -> Result<(), StoreError> {
        self.stopping.send_replace(true);
        // The server holds itself to its own limit; the demo's backend as well.
        while self.server.join_next().await.is_some() {}
        self.background.shutdown().await;
        self.state.store.close().await
    }
}

/// Opens everything, listens, and serves. `config` may say port 0.
///
/// # Errors
/// [`StartError`]
pub async fn start(
    config: Config,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<Running, StartError> {
    let listener = listen(config.listen).await?;
    let listening = listener.local_addr().map_err(|source| StartError::Listen {
        address: config.listen,
        source,
    })?;
    let origin = config
        .origin
        .clone()
        .unwrap_or_else(|| PlatformOrigin::local(listening.port()));

    let heartbeat = config.heartbeat_seconds;
    let for_runtime = origin.clone();
    // Compressing takes a moment of computing, meanwhile the store is opened.
    let assets = tokio::task::spawn_blocking(move || assets(&for_runtime, heartbeat));

    let store = open_store(&config).await?;
    let keys = open_keys(
        &config,
        Arc::clone(&store),
        Arc::clone(&clock),
        Arc::clone(&entropy),
    );
    let keys = keys.await?;
    let files = FileStore::connect(&format!("file://{}", config.files_path().display())).await?;
    let has_demo = demo::deploy(&config, &origin, &*store, &files, &*entropy, clock.now()).await?;
    let sites = Sites::new(origin.clone());
    sites.refresh(&*store).await?;

    let (stopping, stopped) = watch::channel(false);
    let mut server = JoinSet::new();
    let backends = Backends::new(&origin);
    if has_demo {
        demo::start_backends(&backends, &mut server, &config, &origin, &clock, &stopped).await?;
    }
    let (runtime, stylesheet) = assets
        .await
        .map_err(|error| StartError::Assets(std::io::Error::other(error)))??;
    let (providers, demo_provider) = providers(&config, &origin, &clock, &entropy)?;
    let state = AppState::new(Parts {
        sign_in_limiter: Limiter::new(&config.sign_in_rate, Arc::clone(&clock)),
        rename_limiter: Limiter::new(&RENAMES, Arc::clone(&clock)),
        providers,
        demo_provider,
        guest_limiter: Limiter::new(&config.guest_rate, Arc::clone(&clock)),
        tokens: GameTokens::new(Arc::clone(&keys), Arc::clone(&clock), origin.auth_url()),
        suspensions: Suspensions::default(),
        presence: Arc::new(MemoryPresence::new()),
        log_limits: LogLimits::new(&config, &clock),
        auth_url: origin.auth_url(),
        store,
        keys,
        files: Arc::new(files),
        clock,
        entropy,
        config: Arc::new(config),
        origin: origin.clone(),
        listening,
        sites,
        titles: Titles::default(),
        runtime,
        stylesheet,
        backends,
    });
    let app = App {
        routes: routes(&state),
        state: state.clone(),
    };
    let limits = ConnectionLimits::default();
    server.spawn(serve(listener, app, limits, stopped));
    let mut background = JoinSet::new();
    background.spawn(look_again(state.clone()));
    background.spawn(logs::keep_swept(state.clone()));
    background.spawn(sessions::keep_swept(state.clone()));
    background.spawn(suspensions::keep_looking(state.clone()));
    Ok(Running {
        origin: origin.to_string(),
        address: listening,
        state,
        stopping,
        server,
        background,
    })
}

/// The providers of the settings, or the built-in one.
fn providers(
    config: &Config,
    origin: &PlatformOrigin,
    clock: &Arc<dyn Clock>,
    entropy: &Arc<dyn Entropy>,
) -> Result<(Providers, Option<Arc<DemoProvider>>), StartError> {
    let mut settings = config.identity_providers.clone();
    let demo = DemoProvider::for_platform(&settings, origin, clock, entropy)?;
    if demo.is_some() && !config.listen.ip().is_loopback() {
        tracing::warn!(
            listening = %config.listen,
            "the built-in provider signs in whoever types a name, and other machines can reach \
             it; listen on 127.0.0.1, or set providers up (docs/sign-in.md)"
        );
    }
    settings.extend(demo.as_ref().map(|demo| demo.registration()));
    Ok((Providers::new(&settings, &origin.auth_url(), clock)?, demo))
}

async fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| StartError::Listen { address, source })
}

/// Opens the store that the settings name.
///
/// # Errors
/// The store's.
pub async fn open_store(config: &Config) -> Result<Arc<dyn Store>, StartError> {
    Ok(store::connect(&format!("sqlite://{}", config.database_path().display())).await?)
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
    let secret = config
        .key_secret
        .as_ref()
        .map(|secret| KeySecret::new(secret.expose()))
        .transpose()?;
    Ok(KeyRing::open(store, clock, entropy, config.token_seconds, secret).await?)
}

fn assets(origin: &PlatformOrigin, heartbeat: u64) -> Result<(RuntimeFiles, Asset), StartError> {
    let runtime = RuntimeFiles::new(origin, heartbeat)?;
    let stylesheet = Asset::new(
        Bytes::from_static(include_bytes!("../../www/styles/platform.css")),
        "text/css; charset=utf-8",
        "public, max-age=300",
    )
    .map_err(StartError::Assets)?;
    Ok((runtime, stylesheet))
}

/// Follows what other nodes and the operator's commands do.
async fn look_again(state: AppState) {
    let mut ticks = tokio::time::interval(LOOK_AGAIN);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is at once, and everything has just been read.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        if let Err(error) = state.keys.refresh().await {
            tracing::error!(
                error = chain(&error),
                "the signing keys could not be read again"
            );
        }
        if let Err(error) = state.sites.refresh(&*state.store).await {
            tracing::error!(error = chain(&error), "the games could not be read again");
        }
        state.guest_limiter.sweep();
        state.sign_in_limiter.sweep();
        state.rename_limiter.sweep();
        state.log_limits.sweep();
        state.presence.sweep(state.clock.now()).await;
    }
}

/// How long [`Running::stop`] may take, with some room.
pub const STOP: Duration = DRAIN.saturating_add(Duration::from_secs(2));
