//! The span of a request, and the trace of whoever sent it.

use std::sync::Arc;

use http::{HeaderMap, Method};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanKind, Status, TraceContextExt as _, Tracer as _,
};
use opentelemetry::{Context, ContextGuard, KeyValue};

use crate::step::Maker;
use crate::{Telemetry, method_name, trace_context};

/// A request that is traced. Its span ends with [`TracedRequest::end`], or when the visitor goes away.
#[derive(Clone, Debug)]
pub struct TracedRequest(Context);

/// What is known of a request when it is answered. None of it is chosen by a visitor.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// The method; those that nobody knows are not told apart.
    pub method: &'a Method,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// The host name of the platform.
    pub address: &'a str,
    /// The kind of host that was asked.
    pub host: &'static str,
    /// The pattern of the route that has answered.
    pub route: &'a str,
    /// The status.
    pub status: u16,
}

impl Telemetry {
    /// Begins the span of a request, if it is traced. `trusted` are its headers, if it comes from a
    /// trusted proxy: then the request belongs to the trace that they name, and whether it is traced is
    /// decided (W3C Trace Context §3.2.2.5). Everybody else gets a trace of its own.
    #[must_use]
    pub fn request(&self, trusted: Option<&HeaderMap>) -> Option<TracedRequest> {
        let on = self.pipeline()?;
        let parent = trusted.map_or_else(Context::new, trace_context::read);
        let span = SpanBuilder::from_name("request").with_kind(SpanKind::Server);
        let span = on.tracer.build_with_context(span, &parent);
        span.is_recording().then(|| {
            let maker = Maker(Arc::clone(&on.tracer));
            TracedRequest(Context::new().with_value(maker).with_span(span))
        })
    }
}

impl TracedRequest {
    /// Makes what happens until the guard is dropped, on this thread, part of the request.
    #[must_use = "dropping the guard ends it"]
    pub fn enter(&self) -> ContextGuard {
        self.0.clone().attach()
    }

    pub(crate) const fn context(&self) -> &Context {
        &self.0
    }

    /// Ends the span. The names are those of the semantic conventions for HTTP spans; `platform.host` is
    /// the platform's own.
    pub fn end(&self, answered: &Answered<'_>) {
        let span = self.0.span();
        let method = method_name(answered.method);
        span.update_name(format!("{method} {}", answered.route));
        span.set_attributes([
            KeyValue::new("http.request.method", method),
            KeyValue::new("http.response.status_code", i64::from(answered.status)),
            KeyValue::new("http.route", answered.route.to_owned()),
            KeyValue::new("platform.host", answered.host),
            KeyValue::new("server.address", answered.address.to_owned()),
            KeyValue::new("url.scheme", answered.scheme),
        ]);
        if answered.status >= 500 {
            span.set_attribute(KeyValue::new("error.type", answered.status.to_string()));
            span.set_status(Status::error(""));
        }
        span.end();
    }
}
