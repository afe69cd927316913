//! Errors of handlers as Problem Details (RFC 9457).
//!
//! A handler returns an [`ApiError`], which knows neither the request's id nor the auth service's
//! address. The entry converts it into the body.

use std::borrow::Cow;
use std::error::Error;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use platform_domain::errors::chain;
use platform_protocol::problem::{MEDIA_TYPE, Problem, ProblemCode};

use super::request_id::RequestId;
use platform_store::StoreError;

/// A request that fails with a problem.
#[derive(Clone, Debug)]
pub struct ApiError {
    slug: ProblemCode,
    status: StatusCode,
    detail: Cow<'static, str>,
    headers: Vec<(HeaderName, HeaderValue)>,
    cause: Option<String>,
}

impl ApiError {
    /// Creates the problem `slug` with its default status and sentence.
    #[must_use]
    pub fn new(slug: ProblemCode) -> Self {
        let status =
            StatusCode::from_u16(slug.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let detail = Cow::Borrowed(slug.default_detail());
        Self {
            slug,
            status,
            detail,
            headers: Vec::new(),
            cause: None,
        }
    }

    /// An internal error. Only the log contains the cause.
    #[must_use]
    pub fn internal(cause: &(dyn Error + 'static)) -> Self {
        Self::new(ProblemCode::Internal).with_cause(chain(cause))
    }

    /// The platform cannot respond at the moment. Only the log contains the cause.
    #[must_use]
    pub fn unavailable(cause: &(dyn Error + 'static)) -> Self {
        Self::new(ProblemCode::Unavailable)
            .with_cause(chain(cause))
            .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// The player is suspended; `reason` is shown to the player, if there is one.
    #[must_use]
    pub fn suspended(reason: Option<String>) -> Self {
        let refusal = Self::new(ProblemCode::AccountSuspended);
        match reason {
            Some(reason) => refusal.with_detail(reason),
            None => refusal,
        }
    }

    /// The request took too long to arrive (RFC 9110 §15.5.9).
    #[must_use]
    pub fn request_timeout() -> Self {
        let mut refusal = Self::new(ProblemCode::InvalidRequest)
            .with_detail("The request took too long to arrive.");
        refusal.status = StatusCode::REQUEST_TIMEOUT;
        refusal.with_header(header::CONNECTION, HeaderValue::from_static("close"))
    }

    /// The request's head could not be parsed; the response has this status.
    #[must_use]
    pub fn unread(status: StatusCode) -> Self {
        let mut refusal = Self::new(ProblemCode::InvalidRequest).with_detail(match status {
            StatusCode::URI_TOO_LONG => "The address of the request is too long.",
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
                "The request's header is too large. Often there are too many cookies: delete \
                 those of this site in the browser, then try again."
            }
            StatusCode::REQUEST_TIMEOUT => {
                "The responses to other requests of the same connection were not read for too long. \
                 Read them, then try again."
            }
            StatusCode::MISDIRECTED_REQUEST => {
                "This connection is secured by a certificate for another name. Open a new one for this \
                 name."
            }
            _ => "The request does not follow HTTP/1.1 and could not be read.",
        });
        refusal.status = status;
        refusal
    }

    /// Sets a more specific sentence, which may be shown to a player.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Sets a cause that only the log contains.
    #[must_use]
    pub fn with_cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Returns the problem's code.
    #[must_use]
    pub const fn slug(&self) -> ProblemCode {
        self.slug
    }

    /// Returns the status of the response.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the sentence for the player.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the cause, which only the log contains.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    /// Returns the body of the response.
    pub fn body(&self, auth_url: &str, id: &RequestId) -> Body {
        Body::from(self.problem(auth_url, id))
    }

    /// Returns the problem as JSON (RFC 9457 §3).
    pub fn problem(&self, auth_url: &str, id: &RequestId) -> Vec<u8> {
        let problem = Problem {
            type_uri: format!(
                "{auth_url}{}{}",
                platform_protocol::paths::PROBLEMS,
                self.slug.as_str()
            ),
            title: self.slug.title().to_owned(),
            status: self.status.as_u16(),
            detail: self.detail.clone().into_owned(),
            request_id: id.as_str().to_owned(),
        };
        // Five plain members cannot fail to serialize.
        serde_json::to_vec(&problem).unwrap_or_default()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for (name, value) in &self.headers {
            headers.append(name.clone(), value.clone());
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<ProblemCode> for ApiError {
    fn from(slug: ProblemCode) -> Self {
        Self::new(slug)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::GuestCap => ProblemCode::GuestLimitReached.into(),
            StoreError::ProjectCap => ProblemCode::NotAllowed.into(),
            StoreError::Busy | StoreError::Unavailable(_) | StoreError::Uncertain(_) => {
                Self::unavailable(&error)
            }
            _ => Self::internal(&error),
        }
    }
}
