//! Traces and logs of the server for OpenTelemetry, sent over OTLP (HTTP with protobuf).
//!
//! Nothing of this is global: a [`Telemetry`] is a value, and the spans of a request find it in the
//! request's context. If it is off, no span is made and nothing is formatted or allocated.
//!
//! What is named here has few values, none of which a visitor chooses: a span has no path, no query, no
//! header, no address and no name. Whatever the receiver does, no request waits for it.
//!
//! | module | contents |
//! |---|---|
//! | `own_lines` | which log lines are sent |
//! | [`pipeline`] | [`Telemetry`]: what is sent, to whom, and the end of it |
//! | `backlog` | how many items may wait; counts of those that were sent and that were not |
//! | `client` | the HTTP client, on the thread of each exporter |
//! | [`request`] | the span of a request, and the trace of whoever sent it |
//! | [`step`] | the spans of what is done for a request |
//! | [`traced`] | a future that belongs to a request |
//! | [`trace_context`] | the headers of W3C Trace Context |

mod backlog;
mod client;
mod own_lines;
pub mod pipeline;
pub mod request;
pub mod step;
pub mod trace_context;
pub mod traced;

pub use self::pipeline::{OpenError, Receiver, SignalFigures, Telemetry};
pub use self::request::{Answered, TracedRequest};
pub use self::step::Step;
pub use self::traced::Traced;

/// Returns the name of a request's method; `_OTHER` for those of strangers, as the semantic conventions
/// for HTTP spans want it.
#[must_use]
pub fn method_name(method: &http::Method) -> &'static str {
    const KNOWN: [&str; 9] = [
        "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
    ];
    let known = KNOWN.iter().find(|known| **known == method.as_str());
    known.copied().unwrap_or("_OTHER")
}
