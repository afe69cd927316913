//! Errors, as Problem Details (RFC 9457).

use axum::Json;
use axum::extract::Request;
use axum::extract::rejection::{BytesRejection, JsonRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use platform_protocol::limits::REQUEST_ID_CHARS;
use platform_protocol::problem::{MEDIA_TYPE, ProblemCode};
use serde::Serialize;

/// A problem without the request id. It is added to the response's extensions for
/// [`with_request_id`], which knows the id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    slug: ProblemCode,
    detail: &'static str,
}

#[derive(Serialize)]
struct Body<'a> {
    /// A relative URI reference: the slug alone identifies the problem.
    #[serde(rename = "type")]
    type_uri: &'a str,
    title: &'a str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

impl Problem {
    /// Creates a problem with a sentence that can be shown to a player.
    pub(crate) const fn new(slug: ProblemCode, detail: &'static str) -> Self {
        Self { slug, detail }
    }

    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.slug.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn response(&self, request_id: Option<&str>) -> Response {
        let body = Body {
            type_uri: self.slug.as_str(),
            title: self.slug.title(),
            status: self.slug.status(),
            detail: self.detail,
            request_id,
        };
        let content_type = [(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))];
        (self.status(), content_type, Json(body)).into_response()
    }
}

impl From<ProblemCode> for Problem {
    fn from(slug: ProblemCode) -> Self {
        Self::new(slug, slug.default_detail())
    }
}

impl From<BytesRejection> for Problem {
    fn from(rejection: BytesRejection) -> Self {
        by_status(rejection.status())
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        by_status(rejection.status())
    }
}

/// Any other error of axum about a body is an invalid request.
fn by_status(status: StatusCode) -> Problem {
    Problem::from(match status {
        StatusCode::PAYLOAD_TOO_LARGE => ProblemCode::PayloadTooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ProblemCode::UnsupportedMediaType,
        _ => ProblemCode::InvalidRequest,
    })
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.response(None);
        response.extensions_mut().insert(self);
        response
    }
}

/// Adds the id under which the platform forwarded the request to the problem body, so that a
/// player's report leads to the log.
pub(crate) async fn with_request_id(request: Request, next: Next) -> Response {
    let id = request
        .headers()
        .get("x-request-id")
        .and_then(|id| id.to_str().ok())
        .filter(|id| (1..=REQUEST_ID_CHARS).contains(&id.len()))
        .filter(|id| {
            id.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        })
        .map(str::to_owned);
    let mut response = next.run(request).await;
    let (Some(id), Some(problem)) = (id, response.extensions_mut().remove::<Problem>()) else {
        return response;
    };
    let mut rewritten = problem.response(Some(&id));
    // Headers such as `Allow` of a 405 are kept; the length is that of the new body.
    for (name, value) in response.headers() {
        if name != header::CONTENT_LENGTH && name != header::CONTENT_TYPE {
            rewritten.headers_mut().insert(name, value.clone());
        }
    }
    rewritten
}
