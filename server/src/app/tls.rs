//! TLS of the platform's own: the listeners, and the certificates.
//!
//! | module | contents |
//! |---|---|
//! | [`acme`] | certificates from an ACME server, obtained when somebody asks for their names |
//! | [`files`] | certificates from files, which are read again when they change |
//! | [`redirect`] | plain HTTP, redirected to https |

pub mod acme;
pub mod files;
mod redirect;

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::acme::Acme;
use self::acme::jobs::{FollowCertificates, RenewCertificates};
use self::files::{CertificateFiles, ReadCertificates};
use self::redirect::Redirect;
use crate::app::entry::App;
use crate::app::start::{Listening, StartError};
use crate::app::state::AppState;
use crate::config::Config;
use crate::config::tls::TlsMode;
use crate::platform::jobs::{Leases, spawn};
use crate::web::https::Https;
use crate::web::serve::{ConnectionLimits, serve};

/// What TLS needs, before the server has opened its store.
#[derive(Debug)]
pub(super) struct PreparedTls {
    source: PreparedSource,
    redirect: Option<Listening>,
}

/// Where certificates will come from.
#[derive(Debug)]
enum PreparedSource {
    /// They were read from files.
    Files(Arc<CertificateFiles>),
    /// An ACME server, which this verifies.
    Acme(Box<ClientConfig>),
}

/// Where certificates come from.
#[derive(Debug)]
enum Source {
    Files(Arc<CertificateFiles>),
    Acme(Acme),
}

/// What TLS needs while the server runs.
#[derive(Debug)]
pub struct Tls {
    source: Source,
    /// The address of the listener that redirects plain HTTP, if there is one.
    pub redirecting: Option<SocketAddr>,
    https: Https,
    redirect: Option<TcpListener>,
}

impl PreparedTls {
    /// Reads what the settings name, if they ask for TLS. Plain HTTP will be redirected from `redirect`.
    ///
    /// # Errors
    /// [`StartError`]
    pub(super) async fn prepare(
        config: &Config,
        redirect: Option<Listening>,
    ) -> Result<Option<Self>, StartError> {
        let source = match config.tls.mode {
            TlsMode::Off => return Ok(None),
            TlsMode::Files => {
                let files = CertificateFiles::open(&config.tls).await?;
                PreparedSource::Files(Arc::new(files))
            }
            TlsMode::Acme => {
                let settings = &config.tls.acme;
                if let Some(program) = &settings.dns_command {
                    acme::dns::require(program)?;
                }
                let trusted = acme::http::trust(settings).await?;
                PreparedSource::Acme(Box::new(trusted))
            }
        };
        Ok(Some(Self { source, redirect }))
    }

    /// Gives it the platform's state.
    ///
    /// # Errors
    /// [`StartError`]
    pub(super) fn assemble(self, state: &AppState) -> Result<Tls, StartError> {
        let (source, https) = match self.source {
            PreparedSource::Files(files) => {
                let https = Https::new(files.certificates())?;
                (Source::Files(files), https)
            }
            PreparedSource::Acme(trusted) => {
                let acme = Acme::new(&state.platform, &state.games, *trusted);
                let https = Https::on_demand(Arc::new(acme.clone()), Arc::new(acme.clone()))?;
                (Source::Acme(acme), https)
            }
        };
        let (redirect, redirecting) = self.redirect.unzip();
        Ok(Tls {
            source,
            redirecting,
            https,
            redirect,
        })
    }
}

impl Tls {
    /// Returns the certificates from files, if they come from there.
    #[must_use]
    pub const fn files(&self) -> Option<&Arc<CertificateFiles>> {
        match &self.source {
            Source::Files(files) => Some(files),
            Source::Acme(_) => None,
        }
    }

    /// Returns the certificates from an ACME server, if they come from there.
    #[must_use]
    pub const fn acme(&self) -> Option<&Acme> {
        match &self.source {
            Source::Files(_) => None,
            Source::Acme(acme) => Some(acme),
        }
    }

    /// Returns what accepts connections.
    #[must_use]
    pub fn https(&self) -> Https {
        self.https.clone()
    }

    /// Redirects plain HTTP, and starts the jobs of certificates.
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
        let platform = &app.state.platform;
        let leases = || Arc::clone(&platform.nodes) as Arc<dyn Leases>;
        match &self.source {
            Source::Files(files) => {
                let job = ReadCertificates::new(Arc::clone(files), platform);
                spawn(job, leases(), background);
            }
            Source::Acme(acme) => {
                spawn(RenewCertificates(acme.clone()), leases(), background);
                let follow = FollowCertificates::new(acme.clone());
                spawn(follow, leases(), background);
            }
        }
    }
}
