//! The HTTP client for providers: short timeouts, limited bodies, no redirects, no proxy, and plain
//! http only to this machine.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, Uri, header};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use platform_loopback::Resolver;
use platform_telemetry::{Step, method_name};

use platform_domain::errors::innermost;
use platform_web::tls;

/// The timeout for connecting.
const CONNECT: Duration = Duration::from_secs(5);
/// The timeout for one request as a whole, including the body of its response. A player waits
/// during this time.
const TOTAL: Duration = Duration::from_secs(10);
/// The maximum number of bytes of a response: metadata, keys and tokens are much smaller.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// The maximum number of providers' names that are looked up at the same time: one for each sign-in that needs
/// a connection. A small part of the threads for blocking work, so that a silent name server holds up only
/// sign-ins.
const LOOKUPS: usize = 32;

const USER_AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));

type Connector = HttpsConnector<HttpConnector<Resolver>>;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// TLS is not available: the machine's certificates cannot be read.
    #[error("TLS cannot be set up; install the machine's CA certificates")]
    Tls(#[source] rustls::Error),
}

/// Why a request has no usable response. It contains no address, since an address may contain a
/// code.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    /// Plain http to another machine.
    #[error("an address is neither https nor on this machine")]
    Insecure,
    /// No response, or an incomplete one.
    #[error("the request failed: {0}")]
    Transport(String),
    /// No response in time.
    #[error("no complete answer within {} s", TOTAL.as_secs())]
    Timeout,
    /// The response is too large.
    #[error("the answer has more than {MAX_BODY_BYTES} bytes")]
    TooLarge,
    /// The server says that it is not available now.
    #[error("the answer has status {0}")]
    Status(StatusCode),
}

/// One client for all providers, with a pool of connections.
#[derive(Clone)]
pub(super) struct HttpClient {
    client: Client<Connector, Full<Bytes>>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpClient")
    }
}

impl HttpClient {
    /// Creates a client. Without `over_tls` it trusts no certificate, and the machine need not have
    /// any.
    ///
    /// # Errors
    /// [`ClientError::Tls`]
    pub(super) fn new(over_tls: bool) -> Result<Self, ClientError> {
        let mut plain = HttpConnector::new_with_resolver(Resolver::with_limit(LOOKUPS));
        plain.set_connect_timeout(Some(CONNECT));
        plain.set_nodelay(true);
        plain.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls::client(over_tls).map_err(ClientError::Tls)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(plain);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { client })
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if !is_safe(request.uri()) {
            return Err(HttpError::Insecure);
        }
        let mut request = request.map(|body| Full::new(Bytes::from(body)));
        request
            .headers_mut()
            .insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        let response = self.client.request(request).await.map_err(|error| {
            // The outer causes only say that sending failed.
            HttpError::Transport(innermost(&error).to_string())
        })?;
        let status = response.status();
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(HttpError::Status(status));
        }
        let (parts, body) = response.into_parts();
        match Limited::new(body, MAX_BODY_BYTES).collect().await {
            Ok(body) => Ok(HttpResponse::from_parts(parts, body.to_bytes().into())),
            Err(error) if error.is::<LengthLimitError>() => Err(HttpError::TooLarge),
            Err(error) => Err(HttpError::Transport(error.to_string())),
        }
    }
}

impl<'c> AsyncHttpClient<'c> for HttpClient {
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(async move {
            let mut step = Step::outgoing("identity provider request");
            step.note("http.request.method", method_name(request.method()));
            let sent = tokio::time::timeout(TOTAL, self.send(request)).await;
            let sent = sent.unwrap_or(Err(HttpError::Timeout));
            match &sent {
                Ok(response) => step.answered(response.status().as_u16()),
                Err(HttpError::Status(status)) => step.answered(status.as_u16()),
                Err(_) => step.fail("no answer"),
            }
            sent
        })
    }
}

/// Codes and secrets are sent over TLS (OpenID Connect Core 1.0 §3.1.2.1), or only within this
/// machine.
fn is_safe(uri: &Uri) -> bool {
    match uri.scheme_str() {
        Some("https") => true,
        Some("http") => uri.host().is_some_and(is_this_machine),
        _ => false,
    }
}

/// Whether a host, with an IPv6 address in brackets, is a loopback address or a name for one.
pub(super) fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => is_localhost_name(host),
    }
}

fn is_localhost_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_stays_on_this_machine() {
        for (address, safe) in [
            ("https://accounts.example/", true),
            ("https://10.0.0.1/", true),
            ("http://localhost:8080/", true),
            ("http://auth.platform.localhost:8787/x", true),
            ("http://AUTH.LOCALHOST/", true),
            ("http://127.0.0.1:1/", true),
            ("http://127.8.8.8/", true),
            ("http://[::1]:1/", true),
            ("http://accounts.example/", false),
            ("http://localhost.example/", false),
            ("http://notlocalhost/", false),
            ("http://10.0.0.1/", false),
            ("http://[::2]/", false),
            ("ftp://localhost/", false),
            ("/path", false),
        ] {
            assert_eq!(is_safe(&address.parse().unwrap()), safe, "{address}");
        }
    }

    #[test]
    fn without_tls_nobody_is_trusted_and_no_certificates_are_needed() {
        assert!(HttpClient::new(false).is_ok());
    }
}
