//! A receiver of OTLP over HTTP, for tests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::time::{interval, timeout};

const PATIENCE: Duration = Duration::from_secs(20);

/// What came.
#[derive(Default)]
struct Received {
    spans: Vec<Span>,
    logs: Vec<LogRecord>,
    /// What is said of the sender.
    resource: Vec<KeyValue>,
    headers: Vec<HeaderMap>,
    bodies: Vec<u8>,
}

type Shared = Arc<Mutex<Received>>;

/// A receiver on a port of its own.
pub(super) struct Collector {
    pub(super) endpoint: String,
    received: Shared,
}

impl Collector {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let received = Shared::default();
        let routes = Router::new()
            .route("/v1/traces", post(traces))
            .route("/v1/logs", post(logs))
            .with_state(Arc::clone(&received));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { endpoint, received }
    }

    /// Waits until something was received that `look` finds.
    async fn until<T>(&self, what: &str, mut look: impl FnMut(&Received) -> Option<T>) -> T {
        let mut looks = interval(Duration::from_millis(20));
        let waiting = async {
            loop {
                if let Some(found) = look(&self.received.lock().unwrap()) {
                    return found;
                }
                looks.tick().await;
            }
        };
        let found = timeout(PATIENCE, waiting).await;
        found.unwrap_or_else(|_| {
            let received = self.received.lock().unwrap();
            let names = received.spans.iter().map(|span| span.name.clone());
            panic!("{what} did not come: {:?}", names.collect::<Vec<_>>())
        })
    }

    /// Waits for a span, and takes it.
    pub(super) async fn span(&mut self, what: &str, is_it: impl Fn(&Span) -> bool) -> Span {
        let received = Arc::clone(&self.received);
        let found = self
            .until(what, |received| received.spans.iter().position(&is_it))
            .await;
        received.lock().unwrap().spans.remove(found)
    }

    /// Whether such a span came and was not taken.
    pub(super) fn has(&self, is_it: impl Fn(&Span) -> bool) -> bool {
        self.received.lock().unwrap().spans.iter().any(is_it)
    }

    /// Waits for a log record with this message.
    pub(super) async fn log(&self, message: &str) -> LogRecord {
        let is_it =
            |record: &&LogRecord| record.body.as_ref().and_then(text).as_deref() == Some(message);
        self.until(message, |received| {
            received.logs.iter().find(is_it).cloned()
        })
        .await
    }

    /// The attribute of the sender with this name.
    pub(super) fn of_sender(&self, name: &str) -> Option<String> {
        attribute(&self.received.lock().unwrap().resource, name)
    }

    /// The headers of the first request.
    pub(super) fn headers(&self) -> HeaderMap {
        self.received.lock().unwrap().headers[0].clone()
    }

    /// Whether nothing ever came.
    pub(super) fn is_empty(&self) -> bool {
        self.received.lock().unwrap().headers.is_empty()
    }

    /// The bytes of all requests.
    pub(super) fn everything(&self) -> Vec<u8> {
        self.received.lock().unwrap().bodies.clone()
    }
}

async fn traces(State(received): State<Shared>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let request = ExportTraceServiceRequest::decode(body.clone()).unwrap();
    let mut received = received.lock().unwrap();
    received.headers.push(headers);
    received.bodies.extend_from_slice(&body);
    for of_resource in request.resource_spans {
        received.resource = of_resource.resource.unwrap().attributes;
        for of_scope in of_resource.scope_spans {
            received.spans.extend(of_scope.spans);
        }
    }
    StatusCode::OK
}

async fn logs(State(received): State<Shared>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let request = ExportLogsServiceRequest::decode(body.clone()).unwrap();
    let mut received = received.lock().unwrap();
    received.headers.push(headers);
    received.bodies.extend_from_slice(&body);
    for of_resource in request.resource_logs {
        received.resource = of_resource.resource.unwrap().attributes;
        for of_scope in of_resource.scope_logs {
            received.logs.extend(of_scope.log_records);
        }
    }
    StatusCode::OK
}

/// The value of an attribute, as text.
pub(super) fn attribute(attributes: &[KeyValue], name: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == name);
    text(found?.value.as_ref()?)
}

fn text(value: &AnyValue) -> Option<String> {
    match value.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        Value::BoolValue(is) => Some(is.to_string()),
        _ => None,
    }
}
