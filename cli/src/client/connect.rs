//! Connections: resolves names under `localhost`, uses a proxy if the environment names one, and
//! trusts the machine's certificates for TLS.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use platform_loopback::Resolver;
use tokio::net::TcpStream;
use tower_service::Service;

use super::BoxError;
use crate::failure::Failure;
use crate::origin::PlatformOrigin;

/// For one connection attempt, at most.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to a platform.
pub(super) type Connector = HttpsConnector<Route>;

/// A connector for one platform.
///
/// # Errors
/// TLS is needed and this machine has no certificates.
pub(super) fn connector(origin: &PlatformOrigin, timeout: Duration) -> Result<Connector, Failure> {
    let mut direct = HttpConnector::new_with_resolver(Resolver::default());
    direct.set_connect_timeout(Some(timeout.min(CONNECT_TIMEOUT)));
    direct.set_nodelay(true);
    direct.enforce_http(false);
    let provider = rustls::crypto::ring::default_provider();
    if origin.is_secure() {
        let route = Route {
            direct,
            proxies: Some(Arc::new(Matcher::from_env())),
        };
        let builder = HttpsConnectorBuilder::new()
            .with_provider_and_platform_verifier(provider)
            .map_err(|error| {
                Failure::failed(format!(
                    "This machine's certificates cannot be used: {error}. Install them \
                     (Debian: ca-certificates)."
                ))
            })?;
        return Ok(builder.https_only().enable_http1().wrap_connector(route));
    }
    // Plain http never leaves this machine: no certificates, no proxy.
    let unused = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::failed(format!("TLS cannot be set up: {error}.")))?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let route = Route {
        direct,
        proxies: None,
    };
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(unused)
        .https_or_http()
        .enable_http1()
        .wrap_connector(route))
}

/// The way to a server: direct, or through a proxy's tunnel.
#[derive(Clone, Debug)]
pub(super) struct Route {
    direct: HttpConnector<Resolver>,
    proxies: Option<Arc<Matcher>>,
}

impl Service<Uri> for Route {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.direct.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let proxies = self.proxies.as_ref();
        let proxy = proxies.and_then(|proxies| proxies.intercept(&target));
        let mut direct = self.direct.clone();
        Box::pin(async move {
            let Some(proxy) = proxy else {
                return Ok(direct.call(target).await?);
            };
            if proxy.uri().scheme_str() != Some("http") {
                return Err("the proxy's address must begin with http://".into());
            }
            let mut tunnel = Tunnel::new(proxy.uri().clone(), direct);
            if let Some(authorization) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(authorization.clone());
            }
            Ok(tunnel.call(target).await?)
        })
    }
}
