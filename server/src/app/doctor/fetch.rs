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
        let mut plain = HttpConnector::new_with_resolver(Resolver::default());
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

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use platform_test_ports::ReservedPort;
    use tokio::net::TcpListener;
    use tokio::task::JoinSet;
    use tokio::time::Instant;

    use super::*;

    fn large(more: usize) -> Vec<u8> {
        vec![b'x'; MOST + more]
    }

    /// A server that ends with the set. Returns its address, too.
    async fn server() -> (String, JoinSet<()>) {
        let told = |headers: HeaderMap| async move {
            let id = headers["x-request-id"].clone();
            let json = r#"{"origin":"http://play.example","count":1}"#;
            ([("x-request-id", id)], json)
        };
        let routes = Router::new()
            .route("/told", get(told))
            .route("/most", get(|| async { large(0) }))
            .route("/more", get(|| async { large(1) }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        (address, tasks)
    }

    #[tokio::test]
    async fn a_response_has_its_status_headers_and_json() {
        let (address, _server) = server().await;
        let fetcher = Fetcher::new(false).unwrap();
        let told = fetcher.get(&format!("{address}/told"), Some("an-id")).await;
        let told = told.unwrap();
        assert_eq!(told.status, StatusCode::OK);
        assert_eq!(told.header("x-request-id"), Some("an-id"));
        assert_eq!(told.header("x-other"), None);
        let origin = told.member("origin");
        assert_eq!(origin.as_deref(), Some("http://play.example"));
        // Neither a number nor what is not there is a text.
        assert_eq!(told.member("count"), None);
        assert_eq!(told.member("other"), None);
        let missing = fetcher.get(&format!("{address}/none"), None).await.unwrap();
        assert_eq!(missing.status, StatusCode::NOT_FOUND);
        assert_eq!(missing.member("origin"), None, "it is no JSON");
    }

    #[tokio::test]
    async fn a_response_that_is_too_large_is_an_error() {
        let (address, _server) = server().await;
        let fetcher = Fetcher::new(false).unwrap();
        let most = fetcher.get(&format!("{address}/most"), None).await.unwrap();
        assert_eq!(most.body.len(), MOST);
        let more = fetcher.get(&format!("{address}/more"), None).await;
        assert!(more.unwrap_err().contains("limit"));
    }

    #[tokio::test]
    async fn an_address_that_is_none_or_where_nobody_listens_is_an_error() {
        let fetcher = Fetcher::new(false).unwrap();
        let closed = ReservedPort::take().unwrap();
        let url = format!("http://{}/", closed.address());
        let refused = fetcher.get(&url, None).await.unwrap_err();
        assert!(refused.contains("refused"), "{refused}");
        assert!(fetcher.get("http://[::1/", None).await.is_err());
    }

    /// Time passes by itself here whenever everybody waits.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_stays_silent_is_given_up_after_ten_seconds() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent = format!("http://{}/", listener.local_addr().unwrap());
        let begun = Instant::now();
        let fetched = Fetcher::new(false).unwrap().get(&silent, None).await;
        assert_eq!(fetched.unwrap_err(), "no answer within 10 s");
        assert!(begun.elapsed() < 2 * PATIENCE);
    }
}
