//! Problem Details (RFC 9457), which `platform.fetch` converts to a `PlatformError`.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// A problem. `detail` is a sentence for the player.
pub struct Problem {
    status: StatusCode,
    slug: &'static str,
    detail: &'static str,
}

impl Problem {
    pub const fn invalid(detail: &'static str) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            slug: "invalid-request",
            detail,
        }
    }

    pub const fn not_found() -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            slug: "not-found",
            detail: "There is nothing here.",
        }
    }

    pub const fn internal() -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            slug: "internal",
            detail: "Something went wrong. Try again in a moment.",
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": format!("urn:platform:{}", self.slug),
            "title": self.status.canonical_reason(),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let content_type = [(header::CONTENT_TYPE, "application/problem+json")];
        (self.status, content_type, body.to_string()).into_response()
    }
}
