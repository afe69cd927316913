//! Fetching the key set over HTTP: one kept client, short timeouts, a bounded
//! body, no redirects, no proxy.
//!
//! hyper's own client does no more than that. A client with more features would share its TLS
//! settings with the rest of the program, which should not depend on each other.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::TokioExecutor;
use platform_loopback::Resolver;
use url::Url;

use crate::config::{ConfigError, is_loopback};
use crate::error::KeySetError;
use crate::key_set::{KeySet, MAX_KEY_SET_BYTES};

/// For one whole fetch. Players wait while it runs, so it is short.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// For the connection alone.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

const USER_AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));

type Plain = HttpConnector<Resolver>;
#[cfg(feature = "tls")]
type Connector = hyper_rustls::HttpsConnector<Plain>;
#[cfg(not(feature = "tls"))]
type Connector = Plain;

/// Fetches one key set.
#[derive(Clone, Debug)]
pub(crate) struct Fetcher {
    client: Client<Connector, Empty<Bytes>>,
    uri: Uri,
}

impl Fetcher {
    /// A client for the key set at `url`.
    ///
    /// # Errors
    /// [`ConfigError::Client`] where TLS has no usable configuration.
    pub(crate) fn new(url: &Url) -> Result<Self, ConfigError> {
        if url.scheme() == "http" && !is_loopback(url) {
            tracing::warn!(
                "the key set is fetched without TLS: whoever controls the network chooses the keys"
            );
        }
        let uri = url.as_str().parse().map_err(|_| ConfigError::JwksUrl)?;
        let client = Client::builder(TokioExecutor::new()).build(connector()?);
        Ok(Self { client, uri })
    }

    /// Fetches and reads the key set.
    ///
    /// # Errors
    /// Why there is none; see [`KeySetError`].
    pub(crate) async fn fetch(&self) -> Result<KeySet, KeySetError> {
        tokio::time::timeout(FETCH_TIMEOUT, self.fetch_in_any_time())
            .await
            .unwrap_or_else(|_| Err(KeySetError::Transport("no answer in time".to_owned())))
    }

    async fn fetch_in_any_time(&self) -> Result<KeySet, KeySetError> {
        let request = Request::get(self.uri.clone())
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, USER_AGENT)
            .body(Empty::new())
            .map_err(|error| KeySetError::Transport(error.to_string()))?;
        let response = self
            .client
            .request(request)
            .await
            .map_err(|error| transport(&error))?;
        // A redirect is refused: the party that can redirect must not choose the keys.
        if response.status() != StatusCode::OK {
            return Err(KeySetError::Status(response.status().as_u16()));
        }
        // The bytes are counted as they arrive: `Content-Length` may be absent.
        match Limited::new(response.into_body(), MAX_KEY_SET_BYTES)
            .collect()
            .await
        {
            Ok(body) => KeySet::parse(&body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(KeySetError::TooLarge),
            Err(error) => Err(KeySetError::Transport(error.to_string())),
        }
    }
}

/// The innermost cause says what happened; the outer ones say only that sending failed.
fn transport(error: &ClientError) -> KeySetError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    KeySetError::Transport(cause.to_string())
}

fn plain() -> Plain {
    let mut connector = HttpConnector::new_with_resolver(Resolver::default());
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_nodelay(true);
    connector
}

/// TLS by rustls with ring and the machine's own certificates.
#[cfg(feature = "tls")]
fn connector() -> Result<Connector, ConfigError> {
    let mut plain = plain();
    plain.enforce_http(false);
    Ok(hyper_rustls::HttpsConnectorBuilder::new()
        .with_provider_and_platform_verifier(rustls::crypto::ring::default_provider())
        .map_err(|error| ConfigError::Client(error.to_string()))?
        .https_or_http()
        .enable_http1()
        .wrap_connector(plain))
}

/// Only `http://` addresses get this far.
#[cfg(not(feature = "tls"))]
#[expect(clippy::unnecessary_wraps, reason = "with TLS it can fail")]
fn connector() -> Result<Connector, ConfigError> {
    Ok(plain())
}
