//! Requests to the platform: one client, limits on time and size, no
//! redirects, and failures that say what to do.
//!
//! | module | holds |
//! |---|---|
//! | [`connect`] | names under `localhost`, proxies, TLS |
//! | [`answer`] | responses, and the failure that a bad one means |
//! | [`oauth`] | the auth service's device endpoints |

pub(crate) mod answer;
mod connect;
pub(crate) mod oauth;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::TokioExecutor;
use serde::Serialize;

use crate::failure::Failure;
use crate::newer::HandedOut;
use crate::origin::PlatformOrigin;
use answer::Answer;
use connect::Connector;

/// An error of the producer or consumer of a body.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// The body of a request.
pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// The limit for a response that is read as a whole.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

const USER_AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));

/// Sends requests to one platform.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    client: Client<Connector, Body>,
    origin: PlatformOrigin,
    timeout: Duration,
    handed_out: HandedOut,
}

impl Http {
    /// Makes a client for a platform; it waits for `timeout` at most. The version of this program
    /// that the platform hands out is noted in `handed_out`.
    ///
    /// # Errors
    /// TLS is needed and this machine has no certificates.
    pub(crate) fn new(
        origin: &PlatformOrigin,
        timeout: Duration,
        handed_out: HandedOut,
    ) -> Result<Self, Failure> {
        let connector = connect::connector(origin, timeout)?;
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            origin: origin.clone(),
            timeout,
            handed_out,
        })
    }

    /// The platform.
    pub(crate) const fn origin(&self) -> &PlatformOrigin {
        &self.origin
    }

    /// The longest time to wait for the platform.
    pub(crate) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sends a request and reads the whole response, within the time limit.
    ///
    /// # Errors
    /// No response, or one that is too large. A bad status is no error here.
    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Answer, Failure> {
        let whole = async { self.read(self.open_in_any_time(request).await?).await };
        match tokio::time::timeout(self.timeout, whole).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.no_answer_in_time()),
        }
    }

    /// Sends a request and waits for the head of the response, within the time limit.
    ///
    /// # Errors
    /// No response.
    pub(crate) async fn open(&self, request: Request<Body>) -> Result<Response<Incoming>, Failure> {
        match tokio::time::timeout(self.timeout, self.open_in_any_time(request)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.no_answer_in_time()),
        }
    }

    /// Sends a request and waits for the head of the response. The caller limits the time.
    ///
    /// # Errors
    /// No response.
    pub(crate) async fn open_in_any_time(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, Failure> {
        request
            .headers_mut()
            .insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        let sent = self.client.request(request).await;
        let response = sent.map_err(|error| self.unreachable(&error))?;
        self.handed_out.note(&self.origin, response.headers());
        Ok(response)
    }

    /// Reads the rest of a response. The caller limits the time.
    ///
    /// # Errors
    /// The response breaks off or is too large.
    pub(crate) async fn read(&self, response: Response<Incoming>) -> Result<Answer, Failure> {
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
        let body = body.map_err(|error| {
            let cause = innermost(&*error);
            self.unavailable(format!(
                "The platform's response was cut off: {cause}. Try again."
            ))
        })?;
        Ok(Answer::new(&self.origin, &head, body.to_bytes()))
    }

    /// The failure if the platform did not respond in time.
    pub(crate) fn no_answer_in_time(&self) -> Failure {
        self.unavailable(format!(
            "{} did not answer within {} seconds: try again, or wait longer with --timeout.",
            self.origin,
            self.timeout.as_secs()
        ))
    }

    /// The failure if the platform gave no usable response.
    pub(crate) fn unavailable(&self, sentence: String) -> Failure {
        Failure::unavailable(&self.origin, sentence)
    }

    fn unreachable(&self, error: &ClientError) -> Failure {
        let cause = innermost(error);
        self.unavailable(if error.is_connect() {
            format!(
                "{} cannot be reached: {cause}. Check that the platform runs there, or name \
                 another one with --origin.",
                self.origin
            )
        } else {
            format!(
                "The connection to {} was lost: {cause}. Try again.",
                self.origin
            )
        })
    }
}

/// The innermost cause says what happened; the outer ones say only that sending failed.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string().trim_end_matches('.').to_owned()
}

/// No body.
pub(crate) fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body from bytes in memory.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// A body of JSON, and its type.
///
/// # Errors
/// The value cannot be written as JSON, which is a fault of the program.
pub(crate) fn json(value: &impl Serialize) -> Result<Body, Failure> {
    serde_json::to_vec(value)
        .map(full)
        .map_err(|error| Failure::failed(format!("The request cannot be written: {error}.")))
}

/// Finishes a request.
///
/// # Errors
/// An address or header is not valid.
pub(crate) fn finish(
    request: http::request::Builder,
    body: Body,
) -> Result<Request<Body>, Failure> {
    request
        .body(body)
        .map_err(|error| Failure::usage(format!("The request cannot be sent: {error}.")))
}
