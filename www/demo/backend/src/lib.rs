//! The demo game's backend: a small axum program as a game developer would write it, with the
//! platform's own verifier.
//!
//! | request | response |
//! |---|---|
//! | `GET /api/me` | `{"sub","username","is_anon"}` |
//! | `POST /api/echo` | `{"sub","content_type","body","body_base64"}`: what arrived, byte for byte |
//! | `GET /api/score` | `{"best","rank","top":[{"username","best","you"}]}` |
//! | `POST /api/score` `{"score":n}` | the same, with the player's best score raised to `n` |
//!
//! Every call needs a game token; errors are returned as Problem Details (RFC 9457). Scores are
//! stored under the player's `sub`, which never changes. The username is stored for display only.
//!
//! | module | contents |
//! |---|---|
//! | `routes` | the table of paths, time and size limits |
//! | `echo`, `me`, `score` | one endpoint each |
//! | `store` | the scores, in SQLite |
//! | `problem` | errors as responses |

mod echo;
mod me;
mod problem;
mod routes;
mod score;
mod store;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::ListenerExt as _;
use platform_verifier::{Clock, ConfigError, SystemClock, Verifier, VerifierConfig};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::routes::AppState;
use crate::store::ScoreStore;

/// How long requests in progress may take to finish after the shutdown signal.
const DRAIN: Duration = Duration::from_secs(10);

/// The settings of the backend: the three that every game's backend receives, and the file of its
/// scores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoConfig {
    /// The expected `iss` (`AUTH_ISSUER`).
    pub issuer: String,
    /// The expected `aud` (`AUTH_AUDIENCE`).
    pub audience: String,
    /// The address of the key set (`AUTH_JWKS_URL`).
    pub jwks_url: String,
    /// The SQLite file with the scores. It is created if it does not exist; its directory must
    /// exist.
    pub database: PathBuf,
}

/// Why the backend did not start or stopped.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A setting of the verifier is invalid.
    #[error("the demo's backend cannot verify tokens: {0}")]
    Config(#[from] ConfigError),
    /// The file with the scores cannot be opened.
    #[error("the demo's scores cannot be opened: {0}")]
    Database(#[from] rusqlite::Error),
    /// The listener failed.
    #[error("the demo's backend stopped: {0}")]
    Serve(#[from] std::io::Error),
}

/// Serves until `shutdown` resolves, then lets requests in progress finish (10 s at most).
///
/// # Errors
/// Returns [`DemoError`] if it cannot start, or if the listener fails.
pub async fn serve(
    listener: TcpListener,
    config: DemoConfig,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), DemoError> {
    serve_with_clock(listener, config, Arc::new(SystemClock), shutdown).await
}

/// Like [`serve`], with the clock for checking tokens. A platform with a manual clock passes the
/// same clock, so that both agree.
///
/// # Errors
/// Returns [`DemoError`] if it cannot start, or if the listener fails.
pub async fn serve_with_clock(
    listener: TcpListener,
    config: DemoConfig,
    clock: Arc<dyn Clock>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), DemoError> {
    let DemoConfig {
        issuer,
        audience,
        jwks_url,
        database,
    } = config;
    let verifier = Verifier::with_clock(
        VerifierConfig {
            issuer,
            audience,
            jwks_url,
        },
        Arc::clone(&clock),
    )?;
    let state = AppState {
        verifier: Arc::new(verifier),
        scores: Arc::new(ScoreStore::open(&database)?),
        clock,
    };
    // Without TCP_NODELAY, a response in two segments waits for the peer's delayed acknowledgement,
    // 40 ms.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
    });
    let (stopping, stopped) = watch::channel(false);
    let server = axum::serve(listener, routes::app(state)).with_graceful_shutdown(async move {
        shutdown.await;
        stopping.send_replace(true);
    });
    tokio::select! {
        served = server => served.map_err(DemoError::from),
        () = drained(stopped) => Ok(()),
    }
}

/// Resolves when the time for finishing requests is over: a client that keeps its connection open
/// must not keep the program running.
async fn drained(mut stopping: watch::Receiver<bool>) {
    if stopping.wait_for(|stopping| *stopping).await.is_err() {
        // The sender was dropped with the server, which then returns.
        return std::future::pending().await;
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "a bound on real connections, not a wait in a test"
    )]
    tokio::time::sleep(DRAIN).await;
}
