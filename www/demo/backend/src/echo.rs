//! `POST /api/echo`: returns what arrived, for checking that a body arrives unchanged.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use platform_verifier::Player;
use serde::Serialize;

use crate::problem::Problem;

/// The body as it arrived: as text if it is UTF-8, otherwise in base64 (RFC 4648 §4). The other
/// member is `null`.
#[derive(Debug, Serialize)]
pub(crate) struct Echo {
    sub: String,
    /// The request's `Content-Type`, `null` without one.
    content_type: Option<String>,
    body: Option<String>,
    body_base64: Option<String>,
}

/// Returns the body, whatever it is: multipart is not parsed.
pub(crate) async fn handler(
    Player(player): Player,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Echo>, Problem> {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let (body, body_base64) = match String::from_utf8(body?.into()) {
        Ok(text) => (Some(text), None),
        Err(error) => (None, Some(STANDARD.encode(error.as_bytes()))),
    };
    Ok(Json(Echo {
        sub: player.sub,
        content_type,
        body,
        body_base64,
    }))
}
