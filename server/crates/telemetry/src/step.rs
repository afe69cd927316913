//! The spans of what is done for a request. They belong to the request of the current task; without one
//! that is traced, nothing is made.

use std::sync::Arc;

use http::HeaderMap;
use opentelemetry::global::{BoxedSpan, BoxedTracer};
use opentelemetry::trace::{Span as _, SpanBuilder, SpanKind, Status, Tracer as _};
use opentelemetry::{Context, KeyValue, Value};

use crate::{Telemetry, trace_context};

/// What makes the spans of a request; a value in its context.
pub(crate) struct Maker(pub(crate) Arc<BoxedTracer>);

/// A step on the way to an answer, or nothing. Its span ends when it is dropped.
#[derive(Debug, Default)]
#[must_use = "dropping it ends the span"]
pub struct Step(Option<BoxedSpan>);

impl Step {
    /// Begins a request to another server.
    pub fn outgoing(name: &'static str) -> Self {
        Self::of_request(name, SpanKind::Client)
    }

    /// Begins a step inside of the server.
    pub fn inside(name: &'static str) -> Self {
        Self::of_request(name, SpanKind::Internal)
    }

    fn of_request(name: &'static str, kind: SpanKind) -> Self {
        Self(Context::map_current(|context| {
            let Maker(tracer) = context.get()?;
            let span = SpanBuilder::from_name(name).with_kind(kind);
            Some(tracer.build_with_context(span, context))
        }))
    }

    /// Whether it is traced.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.as_ref().is_some_and(BoxedSpan::is_recording)
    }

    /// Notes what it is about. No value may be one that a visitor chooses.
    pub fn note(&mut self, key: &'static str, value: impl Into<Value>) {
        if let Some(span) = &mut self.0 {
            span.set_attribute(KeyValue::new(key, value));
        }
    }

    /// Notes that something happens now.
    pub fn reached(&mut self, name: &'static str) {
        if let Some(span) = &mut self.0 {
            span.add_event(name, Vec::new());
        }
    }

    /// Notes the status of a response.
    pub fn answered(&mut self, status: u16) {
        self.note("http.response.status_code", i64::from(status));
        if status >= 400 && self.0.is_some() {
            self.fail(status.to_string());
        }
    }

    /// Notes that it failed, with the kind of the error, such as `timeout`.
    pub fn fail(&mut self, kind: impl Into<Value>) {
        if let Some(span) = &mut self.0 {
            span.set_attribute(KeyValue::new("error.type", kind));
            span.set_status(Status::error(""));
        }
    }

    /// Names it as the caller of a request with these headers.
    pub fn pass_on(&self, headers: &mut HeaderMap) {
        if let Some(span) = &self.0 {
            trace_context::write(span.span_context(), headers);
        }
    }
}

impl Telemetry {
    /// Begins a request to another server: part of the current task's request, or else of a trace of its
    /// own. Whether or not that is traced, [`Step::pass_on`] says so.
    pub fn begin(&self, name: &'static str) -> Step {
        let Some(on) = self.pipeline() else {
            return Step::default();
        };
        let step = Step::outgoing(name);
        if step.0.is_some() {
            return step;
        }
        let span = SpanBuilder::from_name(name).with_kind(SpanKind::Client);
        Step(Some(on.tracer.build_with_context(span, &Context::new())))
    }
}
