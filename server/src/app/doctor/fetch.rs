//! Requests to the platform's own addresses and to providers, as a visitor would send them.

use std::time::Duration;

use axum::http::{HeaderMap, Request, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use platform_loopback::Resolver;

use crate::domain::errors::innermost;
use crate::web::tls;

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The maximum number of bytes of a response.
const MOST: usize = 1_024 * 1_024;

/// Sends requests.
#[derive(Debug)]
pub(super) struct Fetcher(Client<HttpsConnector<HttpConnector<Resolver>>, Empty<Bytes>>);

/// A complete response.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Fetched {
    /// Returns a header, if it is text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns a member of the JSON that the body is.
    pub(super) fn member(&self, name: &str) -> Option<String> {
        let json: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        Some(json.get(name)?.as_str()?.to_owned())
    }
}

impl Fetcher {
    /// Creates it. With `over_tls` it trusts the machine's certificates.
    pub(super) fn new(over_tls: bool) -> Result<Self, String> {
        let mut plain = HttpConnector::new_with_resolver(Resolver);
        plain.enforce_http(false);
        let tls = tls::client(over_tls);
        let tls = tls.map_err(|error| format!("TLS cannot be set up: {error}"))?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(plain);
        Ok(Self(Client::builder(TokioExecutor::new()).build(connector)))
    }

    /// Sends `GET url`, with the id `id` if there is one.
    pub(super) async fn get(&self, url: &str, id: Option<&str>) -> Result<Fetched, String> {
        let mut request = Request::get(url).header(header::USER_AGENT, "platform-server doctor");
        if let Some(id) = id {
            request = request.header("x-request-id", id);
        }
        let request = request.body(Empty::new());
        let request = request.map_err(|error| error.to_string())?;
        let fetched = async {
            let response = self.0.request(request).await;
            let response = response.map_err(|error| innermost(&error).to_string())?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, MOST).collect().await;
            Ok::<_, String>(Fetched {
                status: parts.status,
                headers: parts.headers,
                body: body.map_err(|error| error.to_string())?.to_bytes(),
            })
        };
        let fetched = tokio::time::timeout(PATIENCE, fetched).await;
        fetched.unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs())))
    }
}
