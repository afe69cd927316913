//! TLS of the platform's own: the listeners, and the certificates.
//!
//! | module | contents |
//! |---|---|
//! | [`files`] | certificates from files, which are read again when they change |
//! | [`redirect`] | plain HTTP, redirected to https |

pub mod files;
mod redirect;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::files::{CertificateFiles, ReadCertificates};
use self::redirect::Redirect;
use crate::app::entry::App;
use crate::app::start::{StartError, listen};
use crate::config::Config;
use crate::config::tls::TlsMode;
use crate::platform::jobs::{Leases, spawn};
use crate::web::https::Https;
use crate::web::serve::{ConnectionLimits, serve};

/// What TLS needs while the server runs.
#[derive(Debug)]
pub struct Tls {
    /// The certificates.
    pub certificates: Arc<CertificateFiles>,
    /// The address of the listener that redirects plain HTTP, if there is one.
    pub redirecting: Option<SocketAddr>,
    https: Https,
    redirect: Option<TcpListener>,
}

impl Tls {
    /// Reads the certificates and listens for plain HTTP, if the settings ask for TLS.
    ///
    /// # Errors
    /// [`StartError`]
    pub(super) async fn prepare(config: &Config) -> Result<Option<Self>, StartError> {
        match config.tls.mode {
            TlsMode::Off => return Ok(None),
            TlsMode::Files => {}
        }
        let certificates = CertificateFiles::open(&config.tls).await?;
        let certificates = Arc::new(certificates);
        let https = Https::new(certificates.certificates())?;
        let redirect = match config.tls.redirect_listen {
            Some(address) => Some(listen(None, address, "PLATFORM_REDIRECT_LISTEN").await?),
            None => None,
        };
        let (redirect, redirecting) = redirect.unzip();
        Ok(Some(Self {
            certificates,
            redirecting,
            https,
            redirect,
        }))
    }

    /// Returns what accepts connections.
    #[must_use]
    pub fn https(&self) -> Https {
        self.https.clone()
    }

    /// Redirects plain HTTP, and reads the certificates again when they change.
    pub(super) fn start(
        &mut self,
        app: &App,
        limits: ConnectionLimits,
        stopped: &watch::Receiver<bool>,
        (server, background): (&mut JoinSet<()>, &mut JoinSet<()>),
    ) {
        if let Some(listener) = self.redirect.take() {
            let redirect = Redirect::new(app.state.clone());
            server.spawn(serve(listener, redirect, limits, stopped.clone()));
        }
        let leases: Arc<dyn Leases> = Arc::clone(&app.state.platform.nodes) as _;
        let job = ReadCertificates::new(Arc::clone(&self.certificates), &app.state.platform.clock);
        spawn(job, leases, background);
    }
}
