//! Requests to the ACME server, and what verifies it: https alone, with time limits and limited bodies, no redirects and no proxy.

use std::error::Error as StdError;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use axum::http::Request;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use platform_loopback::Resolver;
use rustls::ClientConfig;

use crate::config::tls::AcmeSettings;
use crate::domain::errors::innermost;
use crate::web::tls;

/// The maximum number of names that are looked up at the same time, so that a silent name server takes few of the
/// threads for blocking work.
const LOOKUPS: usize = 2;
/// The time limit for connecting.
const CONNECT: Duration = Duration::from_secs(5);
/// The time limit for a request with its response.
const TOTAL: Duration = Duration::from_secs(20);
/// The maximum number of bytes of a response: a chain of certificates has a few KiB.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// Why the ACME server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AcmeError {
    /// The file of the root certificates cannot be read.
    #[error("PLATFORM_ACME_CA: {path} cannot be read")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// It contains none.
    #[error("PLATFORM_ACME_CA: {path} cannot be used")]
    Roots {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rustls::Error,
    },
    /// The machine's own cannot be read.
    #[error("TLS cannot be set up; install the machine's CA certificates")]
    Machine(#[source] rustls::Error),
}

/// Returns what verifies the ACME server: the operator's root certificates, or those of the machine.
///
/// # Errors
/// [`AcmeError`]
pub(in crate::app::tls) async fn trust(settings: &AcmeSettings) -> Result<ClientConfig, AcmeError> {
    let Some(path) = &settings.ca else {
        return tls::client(true).map_err(AcmeError::Machine);
    };
    let file = path.clone();
    let read = tokio::task::spawn_blocking(move || std::fs::read(file)).await;
    let read = read.unwrap_or_else(|error| Err(error.into()));
    let roots = read.map_err(|source| AcmeError::Read {
        path: path.clone(),
        source,
    })?;
    tls::client_of_roots(&roots).map_err(|source| AcmeError::Roots {
        path: path.clone(),
        source,
    })
}

/// Sends requests.
#[derive(Clone)]
pub(super) struct Http(Client<HttpsConnector<HttpConnector<Resolver>>, BodyWrapper<Bytes>>);

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Http")
    }
}

impl Http {
    /// Trusts what `tls` trusts.
    pub(super) fn new(tls: ClientConfig) -> Self {
        let mut plain = HttpConnector::new_with_resolver(Resolver::with_limit(LOOKUPS));
        plain.set_connect_timeout(Some(CONNECT));
        plain.set_nodelay(true);
        plain.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_http1()
            .wrap_connector(plain);
        Self(Client::builder(TokioExecutor::new()).build(connector))
    }
}

fn other(problem: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::Other(problem.into())
}

impl HttpClient for Http {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let sent = self.0.request(request);
        let answered = async move {
            // The outer causes only say that sending failed.
            let response = sent.await.map_err(|error| {
                let problem = format!("the request failed: {}", innermost(&error));
                other(problem)
            })?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, MAX_BODY_BYTES).collect().await;
            let body: Bytes = body.map_err(Error::Other)?.to_bytes();
            Ok(BytesResponse {
                parts,
                body: Box::new(body),
            })
        };
        Box::pin(async move {
            let answered = tokio::time::timeout(TOTAL, answered).await;
            answered.unwrap_or_else(|_| {
                Err(other(format!(
                    "no complete answer within {} s",
                    TOTAL.as_secs()
                )))
            })
        })
    }
}
