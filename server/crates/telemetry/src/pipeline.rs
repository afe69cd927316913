//! What is sent, to whom, and the end of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::HeaderMap;
use opentelemetry::global::BoxedTracer;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, Protocol, RetryPolicy, SpanExporter, WithExportConfig,
    WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::{self, BatchLogProcessor, SdkLoggerProvider};
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{self, BatchSpanProcessor, Sampler, SdkTracerProvider};
use rustls::ClientConfig;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::backlog::{Backlog, Bounded, Counted, QUEUE, Signal};
use crate::client::{Client, EXPORT};
use crate::own_lines::OwnLines;

/// The name of the service, unless the operator gives another one.
const SERVICE: &str = "platform-server";
/// How long items are collected for one request.
const COLLECTED: Duration = Duration::from_secs(1);
/// How long the end waits for the receiver.
const FLUSH: Duration = Duration::from_secs(2);

/// Who receives traces and logs.
pub struct Receiver {
    /// The address below which OTLP has its paths `/v1/traces` and `/v1/logs`.
    pub endpoint: String,
    /// Headers of every request, such as a key.
    pub headers: HeaderMap,
    /// The share of requests that are traced, 0 to 1, where the sender has not decided.
    pub sample: f64,
    /// `service.name`, if it is another one.
    pub service: Option<String>,
    /// `service.version`
    pub version: &'static str,
    /// The TLS of its client.
    pub tls: ClientConfig,
}

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct OpenError(#[from] ExporterBuildError);

/// Sends traces and logs, or nothing. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Telemetry(Option<Arc<Pipeline>>);

/// What became of the spans, or of the log records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalFigures {
    /// `spans` or `logs`.
    pub signal: &'static str,
    /// How many the receiver has taken.
    pub sent: u64,
    /// How many were dropped, because too many waited.
    pub dropped: u64,
    /// How many were given up, because the receiver did not take them.
    pub failed: u64,
}

pub(crate) struct Pipeline {
    pub(crate) tracer: Arc<BoxedTracer>,
    spans: SdkTracerProvider,
    logs: SdkLoggerProvider,
    backlogs: [Arc<Backlog>; 2],
    is_closed: AtomicBool,
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pipeline").field(&self.backlogs).finish()
    }
}

impl Telemetry {
    /// Begins to send to `receiver`, which is not asked yet.
    ///
    /// # Errors
    /// [`OpenError`], if its address is none.
    pub fn open(receiver: &Receiver) -> Result<Self, OpenError> {
        let resource = resource(receiver);
        let backlogs = [Backlog::new(Signal::Spans), Backlog::new(Signal::Logs)];
        let [of_spans, of_logs] = &backlogs;
        let spans = SdkTracerProvider::builder()
            .with_span_processor(span_processor(receiver, of_spans)?)
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(
                receiver.sample,
            ))))
            .with_resource(resource.clone())
            .build();
        let logs = SdkLoggerProvider::builder()
            .with_log_processor(log_processor(receiver, of_logs)?)
            .with_resource(resource)
            .build();
        let scope = InstrumentationScope::builder(SERVICE)
            .with_version(receiver.version)
            .build();
        let tracer = spans.tracer_with_scope(scope);
        Ok(Self(Some(Arc::new(Pipeline {
            tracer: Arc::new(BoxedTracer::new(Box::new(tracer))),
            spans,
            logs,
            backlogs,
            is_closed: AtomicBool::new(false),
        }))))
    }

    pub(crate) fn pipeline(&self) -> Option<&Pipeline> {
        self.0.as_deref()
    }

    /// Whether anything is sent.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Returns what became of spans and log records; nothing if it is off.
    pub fn figures(&self) -> impl Iterator<Item = SignalFigures> {
        let backlogs = self.pipeline().map(|on| &on.backlogs);
        backlogs.into_iter().flatten().map(|backlog| {
            let (sent, dropped, failed) = backlog.counts();
            SignalFigures {
                signal: backlog.signal.name(),
                sent,
                dropped,
                failed,
            }
        })
    }

    /// Returns the layer that sends the server's own log lines; `None` if it is off. Lines about single
    /// requests are left out: they have the host and the path that a visitor chose.
    pub fn log_layer<S>(&self) -> Option<impl Layer<S> + Send + Sync + 'static>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let logs = &self.pipeline()?.logs;
        Some(OwnLines(OpenTelemetryTracingBridge::new(logs)))
    }

    /// Sends what waits, for two seconds at most, and ends. What comes later is not sent.
    pub async fn close(&self) {
        let Some(on) = &self.0 else { return };
        let (spans, logs) = (Arc::clone(on), Arc::clone(on));
        on.is_closed.store(true, Ordering::Relaxed);
        // What it could not send is counted, and there is nothing else to do about it.
        let spans = tokio::task::spawn_blocking(move || spans.spans.shutdown_with_timeout(FLUSH));
        let logs = tokio::task::spawn_blocking(move || logs.logs.shutdown_with_timeout(FLUSH));
        let _ = tokio::join!(spans, logs);
    }
}

impl Drop for Pipeline {
    /// The SDK's own end waits for the receiver, which must not be on the thread of anybody else.
    fn drop(&mut self) {
        if !self.is_closed.load(Ordering::Relaxed) {
            let (spans, logs) = (self.spans.clone(), self.logs.clone());
            std::thread::spawn(move || {
                let _ = spans.shutdown_with_timeout(FLUSH);
                let _ = logs.shutdown_with_timeout(FLUSH);
            });
        }
    }
}

/// Returns what sends spans.
fn span_processor(
    receiver: &Receiver,
    backlog: &Arc<Backlog>,
) -> Result<Bounded<BatchSpanProcessor>, OpenError> {
    let exporter = SpanExporter::builder().with_http();
    let exporter = Counted {
        inner: sent_to(receiver, "v1/traces", backlog, exporter).build()?,
        backlog: Arc::clone(backlog),
    };
    let batches = trace::BatchConfigBuilder::default()
        .with_max_queue_size(QUEUE)
        .with_scheduled_delay(COLLECTED)
        .build();
    let processor = BatchSpanProcessor::builder(exporter);
    Ok(Bounded {
        inner: processor.with_batch_config(batches).build(),
        backlog: Arc::clone(backlog),
    })
}

/// Returns what sends log records.
fn log_processor(
    receiver: &Receiver,
    backlog: &Arc<Backlog>,
) -> Result<Bounded<BatchLogProcessor>, OpenError> {
    let exporter = LogExporter::builder().with_http();
    let exporter = Counted {
        inner: sent_to(receiver, "v1/logs", backlog, exporter).build()?,
        backlog: Arc::clone(backlog),
    };
    let batches = logs::BatchConfigBuilder::default()
        .with_max_queue_size(QUEUE)
        .with_scheduled_delay(COLLECTED)
        .build();
    let processor = BatchLogProcessor::builder(exporter);
    Ok(Bounded {
        inner: processor.with_batch_config(batches).build(),
        backlog: Arc::clone(backlog),
    })
}

/// Has an exporter send to the address of its signal, `path` (OTLP Specification, "OTLP/HTTP
/// Request").
fn sent_to<E: WithExportConfig + WithHttpConfig>(
    receiver: &Receiver,
    path: &str,
    backlog: &Arc<Backlog>,
    exporter: E,
) -> E {
    let base = receiver.endpoint.trim_end_matches('/');
    exporter
        .with_http_client(Client::new(receiver, Arc::clone(backlog)))
        .with_retry_policy(RetryPolicy::recommended())
        .with_endpoint(format!("{base}/{path}"))
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(EXPORT)
}

/// Returns what is said of this server with everything: its name and version, and what the operator
/// adds with `OTEL_RESOURCE_ATTRIBUTES`.
fn resource(receiver: &Receiver) -> Resource {
    let resource = Resource::builder_empty()
        .with_service_name(SERVICE)
        .with_attribute(KeyValue::new("service.version", receiver.version))
        .with_detectors(&[
            Box::new(TelemetryResourceDetector),
            Box::new(EnvResourceDetector::new()),
        ]);
    match &receiver.service {
        Some(name) => resource.with_service_name(name.clone()).build(),
        None => resource.build(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_made_if_it_is_off() {
        let telemetry = Telemetry::default();
        assert!(!telemetry.is_on());
        assert_eq!(telemetry.figures().count(), 0);
        assert!(telemetry.request(None).is_none());
        assert!(!telemetry.begin("webhook delivery").is_on());
        assert!(!crate::Step::outgoing("request").is_on());
        let layer = telemetry.log_layer::<tracing_subscriber::Registry>();
        assert!(layer.is_none());
    }
}
