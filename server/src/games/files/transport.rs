//! The HTTP client of the bucket: the same TLS as for every other server that the platform calls.

use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use platform_telemetry::{Step, method_name};

use crate::web::tls;

/// The time limit for connecting.
const CONNECT: Duration = Duration::from_secs(3);
/// The time limit from a request to the head of its response; it includes sending a part.
const RESPONSE: Duration = Duration::from_secs(30);
/// How long an unused connection is kept.
const KEPT: Duration = Duration::from_secs(60);
/// The number of unused connections that are kept.
const KEPT_CONNECTIONS: usize = 32;

/// The client. Clones share its connections.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    client: Client<HttpsConnector<TcpConnector>, HttpRequestBody>,
}

impl Transport {
    /// Creates it, for `https` if it is `secure`: the machine must then have certificates.
    pub(super) fn new(secure: bool) -> Result<Self, rustls::Error> {
        let mut plain = TcpConnector::new();
        plain.set_connect_timeout(Some(CONNECT));
        plain.set_nodelay(true);
        plain.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls::client(secure)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(plain);
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEPT)
            .pool_max_idle_per_host(KEPT_CONNECTIONS)
            .build(connector);
        Ok(Self { client })
    }
}

impl HttpConnector for Transport {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let mut step = Step::outgoing("bucket request");
        step.note("http.request.method", method_name(request.method()));
        let sent = tokio::time::timeout(RESPONSE, self.client.request(request)).await;
        match &sent {
            Ok(Ok(response)) => step.answered(response.status().as_u16()),
            Ok(Err(_)) | Err(_) => step.fail("no answer"),
        }
        drop(step);
        let sent = sent.map_err(|error| HttpError::new(HttpErrorKind::Timeout, error))?;
        let response = sent.map_err(|error| {
            let kind = if error.is_connect() {
                HttpErrorKind::Connect
            } else {
                HttpErrorKind::Interrupted
            };
            HttpError::new(kind, error)
        })?;
        Ok(response.map(|body| {
            let interrupted = |error| HttpError::new(HttpErrorKind::Interrupted, error);
            HttpResponseBody::new(body.map_err(interrupted))
        }))
    }
}
