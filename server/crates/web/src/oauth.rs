//! Errors of the endpoints for OAuth clients (RFC 6749 §5.2), and the parameters of their requests.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use platform_protocol::problem::ProblemCode;
use serde::Serialize;

use super::api_error::ApiError;
use super::form::Form;
use super::limiter::retry_after;

/// The code of an error, as the standards name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// RFC 6749 §5.2
    InvalidRequest,
    /// RFC 6749 §5.2
    InvalidClient,
    /// RFC 6749 §5.2
    InvalidGrant,
    /// RFC 6749 §5.2
    UnsupportedGrantType,
    /// RFC 8628 §3.5
    AuthorizationPending,
    /// RFC 8628 §3.5
    SlowDown,
    /// RFC 8628 §3.5
    AccessDenied,
    /// RFC 8628 §3.5
    ExpiredToken,
}

impl Code {
    const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::InvalidGrant => "invalid_grant",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::AuthorizationPending => "authorization_pending",
            Self::SlowDown => "slow_down",
            Self::AccessDenied => "access_denied",
            Self::ExpiredToken => "expired_token",
        }
    }
}

/// A response without a token.
#[derive(Debug)]
pub enum OauthError {
    /// An error of the client, or a state in which it must wait.
    Error {
        /// The code.
        code: Code,
        /// The status; 400 unless HTTP has a more specific one.
        status: StatusCode,
        /// A sentence for the person.
        description: Cow<'static, str>,
        /// Headers that the status requires.
        headers: Vec<(HeaderName, HeaderValue)>,
    },
    /// An internal error, which is returned as everywhere else.
    Fault(ApiError),
}

#[derive(Serialize)]
struct Content<'a> {
    error: &'static str,
    error_description: &'a str,
}

impl OauthError {
    /// Creates an error with a sentence.
    pub fn new(code: Code, description: impl Into<Cow<'static, str>>) -> Self {
        Self::Error {
            code,
            status: StatusCode::BAD_REQUEST,
            description: description.into(),
            headers: Vec::new(),
        }
    }

    /// The client sends too many requests. It may try again after `wait`.
    #[must_use]
    pub fn too_many_requests(wait: Duration) -> Self {
        Self::Error {
            code: Code::SlowDown,
            status: StatusCode::TOO_MANY_REQUESTS,
            description: "Too many requests came from this network. Try again in a moment.".into(),
            headers: vec![(header::RETRY_AFTER, retry_after(wait))],
        }
    }
}

impl<R: Into<ApiError>> From<R> for OauthError {
    fn from(refusal: R) -> Self {
        let refusal = refusal.into();
        if refusal.status().is_server_error() {
            return Self::Fault(refusal);
        }
        Self::Error {
            code: Code::InvalidRequest,
            status: refusal.status(),
            description: match refusal.slug() {
                // The problem's own sentence is written for a person who opened a page.
                ProblemCode::InvalidRequest | ProblemCode::UnsupportedMediaType => {
                    "The request is not a valid form, or contains a parameter twice.".into()
                }
                _ => refusal.detail().to_owned().into(),
            },
            headers: Vec::new(),
        }
    }
}

impl IntoResponse for OauthError {
    fn into_response(self) -> Response {
        let (code, status, description, headers) = match self {
            Self::Fault(refusal) => return refusal.into_response(),
            Self::Error {
                code,
                status,
                description,
                headers,
            } => (code, status, description, headers),
        };
        let content = Content {
            error: code.as_str(),
            error_description: &description,
        };
        match answer(&content) {
            Ok(mut response) => {
                *response.status_mut() = status;
                response.headers_mut().extend(headers);
                response
            }
            Err(refusal) => refusal.into_response(),
        }
    }
}

/// Returns 200 with a document that is not cached (RFC 6749 §5.1).
///
/// # Errors
/// Returns an error if it cannot be written as JSON.
pub fn answer(content: &impl Serialize) -> Result<Response, ApiError> {
    let json = serde_json::to_vec(content).map_err(|error| ApiError::internal(&error))?;
    let mut response = Response::new(Body::from(json));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The parameters of a client's request.
#[derive(Debug)]
pub struct Parameters(Form);

impl Parameters {
    /// Reads the form of a client with this id.
    ///
    /// # Errors
    /// `invalid_request`, `invalid_client`.
    pub async fn read(
        headers: &HeaderMap,
        body: Body,
        client_id: &str,
    ) -> Result<Self, OauthError> {
        let parameters = Self(Form::read(headers, body).await?);
        // A public client only has its name (RFC 6749 §3.2.1).
        if parameters.required("client_id")? == client_id {
            return Ok(parameters);
        }
        Err(OauthError::new(
            Code::InvalidClient,
            "No client has this client_id.",
        ))
    }

    /// Returns a parameter. One without a value counts as missing (RFC 6749 §3.2).
    ///
    /// # Errors
    /// `invalid_request` if it is missing, or if there are two.
    pub fn required(&self, name: &str) -> Result<&str, OauthError> {
        let value = self.0.field(name)?.filter(|value| !value.is_empty());
        value.ok_or_else(|| {
            OauthError::new(
                Code::InvalidRequest,
                format!("The parameter {name} is missing."),
            )
        })
    }
}
