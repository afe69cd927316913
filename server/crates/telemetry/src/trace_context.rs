//! The headers of W3C Trace Context: `traceparent` and `tracestate`.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::{SpanContext, TraceContextExt as _, TraceFlags};
use opentelemetry_sdk::propagation::TraceContextPropagator;

/// The header that names trace and span.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The header with what tracing systems add.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The longest `tracestate` that is passed on (W3C Trace Context §3.3.1.5).
const STATE_BYTES: usize = 512;

/// The two headers of a request.
struct Headers<'request> {
    parent: Option<&'request str>,
    state: Option<String>,
}

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => self.parent,
            "tracestate" => self.state.as_deref(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

/// Returns a context with the span that the headers name; an empty one if they name none, or are
/// malformed.
pub(crate) fn read(headers: &HeaderMap) -> Context {
    let mut parents = headers.get_all(&TRACEPARENT).iter();
    let parent = parents.next().and_then(|value| value.to_str().ok());
    // More than one header is invalid (§4.2). Several `tracestate` are one (§3.3).
    let parent = parent.filter(|parent| is_well_formed(parent) && parents.next().is_none());
    let states = headers.get_all(&TRACESTATE).iter();
    let states: Option<Vec<&str>> = states.map(|value| value.to_str().ok()).collect();
    let state = states.map(|states| states.join(","));
    let headers = Headers {
        parent,
        state: state.filter(|state| (1..=STATE_BYTES).contains(&state.len())),
    };
    TraceContextPropagator::new().extract_with_context(&Context::new(), &headers)
}

/// Whether a `traceparent` has the form that the specification gives it (§3.2.2): the library fills
/// shorter ids up, and so makes the trace of somebody else of them.
fn is_well_formed(parent: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let mut parts = parent.split('-');
    let whole = [2, 32, 16, 2].into_iter().all(|length| {
        let part = parts.next().unwrap_or_default();
        part.len() == length && part.bytes().all(is_hex)
    });
    // Later versions may have more parts (§4.3).
    whole && (parts.next().is_none() || !parent.starts_with("00"))
}

/// Names this span as the caller, in place of whatever the headers name. What tracing systems have added
/// is left out: it is the operator's, and most receivers are strangers (W3C Trace Context §6.2).
pub(crate) fn write(span: &SpanContext, headers: &mut HeaderMap) {
    if !span.is_valid() {
        return;
    }
    let parent = format!(
        "00-{}-{}-{:02x}",
        span.trace_id(),
        span.span_id(),
        span.trace_flags() & TraceFlags::SAMPLED
    );
    headers.remove(&TRACESTATE);
    if let Ok(parent) = HeaderValue::try_from(parent) {
        headers.insert(TRACEPARENT, parent);
    }
}

/// Returns the headers with which the caller that `headers` name would be named again. For the fuzz
/// targets: the program reads and writes with a request between.
#[doc(hidden)]
#[must_use]
pub fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let mut passed = HeaderMap::new();
    write(read(headers).span().span_context(), &mut passed);
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn headers(parents: &[&'static str], states: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for parent in parents {
            headers.append(TRACEPARENT, HeaderValue::from_static(parent));
        }
        for state in states {
            headers.append(TRACESTATE, HeaderValue::from_static(state));
        }
        headers
    }

    #[test]
    fn a_trace_is_read_and_passed_on_without_what_others_have_added() {
        let context = read(&headers(&[PARENT], &["a=1", "b=2"]));
        let state = context.span().span_context().trace_state().header();
        assert_eq!(state, "a=1,b=2");
        let mut sent = headers(&["00-x"], &["c=3"]);
        write(context.span().span_context(), &mut sent);
        assert_eq!(sent[TRACEPARENT], PARENT);
        assert_eq!(sent.len(), 1);
    }

    #[test]
    fn a_malformed_or_doubled_header_names_no_trace() {
        for parents in [
            &[][..],
            &["00-x"],
            &[PARENT, PARENT],
            &["00-00000000000000000000000000000000-b7ad6b7169203331-01"],
            &["00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"],
            &["ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
            &["00-0af7651916cd43dd8c-b7ad6b7169203331-01"],
            &["00-0af7651916cd43dd8448eb211c80319c-b7ad6b71-01"],
            &["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1"],
            &["00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"],
            &["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x"],
        ] {
            let context = read(&headers(parents, &[]));
            assert!(!context.has_active_span(), "{parents:?}");
        }
    }

    #[test]
    fn a_state_that_is_too_long_is_left_out() {
        let long: &'static str = "a=1,".repeat(200).leak();
        let context = read(&headers(&[PARENT], &[long]));
        assert_eq!(context.span().span_context().trace_state().header(), "");
    }
}
