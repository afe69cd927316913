//! How many spans or log records may wait for the receiver. What comes then is dropped, and counted:
//! who makes it must not wait, and memory stays bounded.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry::logs::{LogRecord as _, Severity};
use opentelemetry::{Context, InstrumentationScope};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{
    BatchLogProcessor, LogBatch, LogExporter, LogProcessor, SdkLogRecord,
};
use opentelemetry_sdk::trace::{BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor};
use tokio::time::Instant;

/// How many items may wait, those that are being sent included.
pub(crate) const QUEUE: usize = 2_048;
/// How often the log says that items are not sent.
const SAID: Duration = Duration::from_secs(60 * 60);

/// What is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Spans,
    Logs,
}

impl Signal {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Spans => "spans",
            Self::Logs => "logs",
        }
    }
}

/// The items of one signal that wait, and what became of the others.
#[derive(Debug)]
pub(crate) struct Backlog {
    pub(crate) signal: Signal,
    waiting: AtomicUsize,
    sent: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
    /// Why the present request failed, if it has.
    cause: Mutex<Option<String>>,
    said_at: Mutex<Option<Instant>>,
}

impl Backlog {
    pub(crate) fn new(signal: Signal) -> Arc<Self> {
        Arc::new(Self {
            signal,
            waiting: AtomicUsize::new(0),
            sent: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            cause: Mutex::default(),
            said_at: Mutex::default(),
        })
    }

    /// Takes an item in. Returns whether there is room for it.
    fn admit(&self) -> bool {
        let more = |waiting| (waiting < QUEUE).then_some(waiting + 1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let admitted = self.waiting.fetch_update(set, fetch, more).is_ok();
        if !admitted {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        admitted
    }

    /// Notes why the present request failed. [`Backlog::finish`] says it.
    pub(crate) fn explain(&self, cause: String) {
        *self.cause.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause);
    }

    /// Counts items that were sent or given up.
    fn finish(&self, items: usize, result: &OTelSdkResult) {
        self.waiting.fetch_sub(items, Ordering::Relaxed);
        let counter = if result.is_ok() {
            &self.sent
        } else {
            &self.failed
        };
        counter.fetch_add(items as u64, Ordering::Relaxed);
        let cause = self.take_cause();
        if let Err(error) = result
            && self.may_say()
        {
            let cause = cause.unwrap_or_else(|| error.to_string());
            tracing::warn!(
                signal = self.signal.name(),
                cause,
                failed = self.failed.load(Ordering::Relaxed),
                dropped = self.dropped.load(Ordering::Relaxed),
                "telemetry could not be sent and is lost; visitors do not notice. Look at \
                 otlp_endpoint and its receiver; this is said once an hour at most"
            );
        }
    }

    fn take_cause(&self) -> Option<String> {
        let mut cause = self.cause.lock().unwrap_or_else(PoisonError::into_inner);
        cause.take()
    }

    /// Whether the log has not said it for long enough.
    fn may_say(&self) -> bool {
        let mut said_at = self.said_at.lock().unwrap_or_else(PoisonError::into_inner);
        let may = said_at.is_none_or(|at| at.elapsed() >= SAID);
        if may {
            *said_at = Some(Instant::now());
        }
        may
    }

    /// Returns how many were sent, dropped because too many waited, and given up.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (read(&self.sent), read(&self.dropped), read(&self.failed))
    }
}

/// Hands what there is room for to a processor of the SDK, whose own queue is as long and so never
/// full: it would not say how much it drops.
#[derive(Debug)]
pub(crate) struct Bounded<P> {
    pub(crate) inner: P,
    pub(crate) backlog: Arc<Backlog>,
}

impl SpanProcessor for Bounded<BatchSpanProcessor> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.inner.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.backlog.admit() {
            self.inner.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

impl LogProcessor for Bounded<BatchLogProcessor> {
    fn emit(&self, record: &mut SdkLogRecord, scope: &InstrumentationScope) {
        if self.backlog.admit() {
            // A line is made when it is seen. Some receivers show 1970 if they are told the latter alone.
            if let (None, Some(seen)) = (record.timestamp(), record.observed_timestamp()) {
                record.set_timestamp(seen);
            }
            self.inner.emit(record, scope);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn event_enabled(&self, level: Severity, target: &str, name: Option<&str>) -> bool {
        self.inner.event_enabled(level, target, name)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

/// Counts what an exporter does.
#[derive(Debug)]
pub(crate) struct Counted<E> {
    pub(crate) inner: E,
    pub(crate) backlog: Arc<Backlog>,
}

impl<E: SpanExporter> SpanExporter for Counted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let items = batch.len();
        let result = self.inner.export(batch).await;
        self.backlog.finish(items, &result);
        result
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.inner.shutdown()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

impl<E: LogExporter> LogExporter for Counted<E> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        let items = batch.iter().count();
        let result = self.inner.export(batch).await;
        self.backlog.finish(items, &result);
        result
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.inner.shutdown()
    }

    fn event_enabled(&self, level: Severity, target: &str, name: Option<&str>) -> bool {
        self.inner.event_enabled(level, target, name)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_sdk::error::OTelSdkError;

    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_dropped_and_counted() {
        let backlog = Backlog::new(Signal::Spans);
        let admitted = (0..QUEUE + 3).filter(|_| backlog.admit()).count();
        assert_eq!(admitted, QUEUE);
        assert_eq!(backlog.counts(), (0, 3, 0));
        backlog.finish(2, &Ok(()));
        assert!(backlog.admit() && backlog.admit() && !backlog.admit());
        backlog.finish(5, &Err(OTelSdkError::InternalFailure("down".to_owned())));
        assert_eq!(backlog.counts(), (2, 4, 5));
    }

    #[test]
    fn a_request_that_fails_says_no_cause_of_an_earlier_one() {
        let backlog = Backlog::new(Signal::Logs);
        backlog.explain("the answer has status 500".to_owned());
        backlog.finish(0, &Err(OTelSdkError::InternalFailure("failed".to_owned())));
        assert_eq!(backlog.take_cause(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_said_once_an_hour() {
        let backlog = Backlog::new(Signal::Logs);
        assert!(backlog.may_say());
        assert!(!backlog.may_say());
        tokio::time::advance(SAID - Duration::from_secs(1)).await;
        assert!(!backlog.may_say());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(backlog.may_say());
    }
}
