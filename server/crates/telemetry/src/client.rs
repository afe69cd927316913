//! The HTTP client of an exporter. It works on the exporter's own thread, with a runtime of its own, so
//! that it never takes anything from requests; with the TLS that every client of the server has.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use platform_loopback::Resolver;
use rustls::ClientConfig;
use tokio::runtime::Runtime;

use crate::Receiver;
use crate::backlog::Backlog;

/// The time limit for connecting.
const CONNECT: Duration = Duration::from_secs(3);
/// The time limit for one request as a whole.
pub(crate) const EXPORT: Duration = Duration::from_secs(10);
/// How items are written (OTLP Specification, "Binary Protobuf Encoding").
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
/// The maximum size of a response, which says at most what was refused.
const RESPONSE_BYTES: usize = 64 * 1024;

type Hyper =
    hyper_util::client::legacy::Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>;

/// The client of one exporter.
#[derive(Debug)]
pub(crate) struct Client {
    tls: ClientConfig,
    /// What every request has. Headers that the SDK finds in the environment are not among them: they
    /// may be a key for somebody else.
    headers: HeaderMap,
    backlog: Arc<Backlog>,
    /// Made with the first request, so on the exporter's thread, where it is dropped as well.
    running: OnceLock<Result<Running, String>>,
}

#[derive(Debug)]
struct Running {
    /// There until the end.
    runtime: Option<Runtime>,
    client: Hyper,
}

impl Drop for Running {
    /// A runtime's own end would wait for the system's resolver, which may take half a minute if no name
    /// server answers.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Client {
    pub(crate) fn new(receiver: &Receiver, backlog: Arc<Backlog>) -> Self {
        let mut headers = receiver.headers.clone();
        headers.insert(header::CONTENT_TYPE, PROTOBUF);
        Self {
            tls: receiver.tls.clone(),
            headers,
            backlog,
            running: OnceLock::new(),
        }
    }

    fn start(&self) -> Result<Running, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let mut plain = HttpConnector::new_with_resolver(Resolver::default());
        plain.set_connect_timeout(Some(CONNECT));
        plain.set_nodelay(true);
        plain.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(self.tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(plain);
        Ok(Running {
            runtime: Some(runtime.map_err(|error| error.to_string())?),
            // Nobody reads from an idle connection, so none is kept.
            client: hyper_util::client::legacy::Client::builder(TokioExecutor::new())
                .pool_max_idle_per_host(0)
                .build(connector),
        })
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let running = self.running.get_or_init(|| self.start());
        let Running { runtime, client } = running.as_ref().map_err(Clone::clone)?;
        let runtime = runtime.as_ref().ok_or("it has ended")?;
        let exchange = async {
            let response = client.request(request.map(Full::new)).await?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, RESPONSE_BYTES).collect().await?;
            Ok::<_, HttpError>(Response::from_parts(parts, body.to_bytes()))
        };
        runtime.block_on(async {
            let exchanged = tokio::time::timeout(EXPORT, exchange).await;
            exchanged
                .unwrap_or_else(|_| Err(format!("no answer within {} s", EXPORT.as_secs()).into()))
        })
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        *request.headers_mut() = self.headers.clone();
        let sent = self.send(request);
        match &sent {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => self
                .backlog
                .explain(format!("the answer has status {}", response.status())),
            // The outer causes only say that sending failed.
            Err(error) => self.backlog.explain(innermost(&**error)),
        }
        sent
    }
}

fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use crate::backlog::Signal;

    use super::*;

    #[test]
    fn its_end_does_not_wait_for_a_name_server() {
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(ring)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let client = Client {
            tls,
            headers: HeaderMap::new(),
            backlog: Backlog::new(Signal::Spans),
            running: OnceLock::new(),
        };
        let running = client.start().unwrap();
        let (_answer, asked) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let resolver = running.runtime.as_ref().unwrap();
        resolver.spawn_blocking(move || {
            begin.send(()).unwrap();
            asked.recv()
        });
        begun.recv().unwrap();
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || {
            drop(running);
            ended.send(())
        });
        assert_eq!(end.recv_timeout(EXPORT), Ok(()));
    }
}
