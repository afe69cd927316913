//! Fetching the key set over HTTP: one kept client, short timeouts, a bounded
//! body, no redirects.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Url;

use crate::config::{ConfigError, is_localhost_name, is_loopback};
use crate::error::KeySetError;
use crate::key_set::{KeySet, MAX_KEY_SET_BYTES};

/// For one fetch as a whole. Players wait while it runs, so it is short.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// For the connection alone.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Fetches one key set.
#[derive(Clone, Debug)]
pub(crate) struct Fetcher {
    client: reqwest::Client,
    url: Url,
}

impl Fetcher {
    /// A client for the key set at `url`.
    ///
    /// # Errors
    /// [`ConfigError::Client`] where TLS has no usable configuration.
    pub(crate) fn new(url: Url) -> Result<Self, ConfigError> {
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!(
                env!("CARGO_PKG_NAME"),
                "/",
                env!("CARGO_PKG_VERSION")
            ))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(FETCH_TIMEOUT)
            // Whoever can redirect the address must not choose our keys.
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(LoopbackResolver);
        if is_loopback(&url) {
            // A proxy would look for `localhost` on its own machine.
            builder = builder.no_proxy();
        } else if url.scheme() == "http" {
            tracing::warn!(
                "the key set is fetched without TLS: whoever controls the network chooses the keys"
            );
        }
        let client = with_tls(builder)?
            .build()
            .map_err(|error| ConfigError::Client(error.without_url().to_string()))?;
        Ok(Self { client, url })
    }

    /// Fetches and reads the key set.
    ///
    /// # Errors
    /// Why there is none; see [`KeySetError`].
    pub(crate) async fn fetch(&self) -> Result<KeySet, KeySetError> {
        let request = self
            .client
            .get(self.url.clone())
            .header("accept", "application/json");
        let mut response = request.send().await.map_err(transport)?;
        if response.status() != reqwest::StatusCode::OK {
            return Err(KeySetError::Status(response.status().as_u16()));
        }
        // The length is counted as it arrives: `Content-Length` may be absent.
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(transport)? {
            if body.len() + chunk.len() > MAX_KEY_SET_BYTES {
                return Err(KeySetError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        KeySet::parse(&body)
    }
}

/// The innermost cause says what happened; the outer ones only that sending
/// failed. The address stays out: it is in the configuration already.
fn transport(error: reqwest::Error) -> KeySetError {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    KeySetError::Transport(cause.to_string())
}

/// TLS by rustls with ring and the machine's own certificates.
#[cfg(feature = "tls")]
fn with_tls(builder: reqwest::ClientBuilder) -> Result<reqwest::ClientBuilder, ConfigError> {
    use std::sync::Arc;

    use rustls_platform_verifier::BuilderVerifierExt as _;

    let failed = |error: rustls::Error| ConfigError::Client(error.to_string());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_platform_verifier()
        .map_err(failed)?
        .with_no_client_auth();
    Ok(builder.tls_backend_preconfigured(config))
}

/// Only `http://` addresses get this far.
#[cfg(not(feature = "tls"))]
#[expect(clippy::unnecessary_wraps, reason = "with TLS it can fail")]
fn with_tls(builder: reqwest::ClientBuilder) -> Result<reqwest::ClientBuilder, ConfigError> {
    Ok(builder)
}

/// Names under `localhost` are loopback by definition (RFC 6761 §6.3), but a
/// plain `getaddrinfo` may not know them, and a name server must not be asked.
struct LoopbackResolver;

impl Resolve for LoopbackResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let addresses: Addrs = if is_localhost_name(name.as_str()) {
                // Port 0 is replaced by the port of the URL.
                let loopback = [
                    IpAddr::V4(Ipv4Addr::LOCALHOST),
                    IpAddr::V6(Ipv6Addr::LOCALHOST),
                ];
                Box::new(
                    loopback
                        .map(|address| SocketAddr::new(address, 0))
                        .into_iter(),
                )
            } else {
                let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
                Box::new(found.collect::<Vec<_>>().into_iter())
            };
            Ok(addresses)
        })
    }
}
