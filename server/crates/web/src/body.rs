//! Request bodies with a small size limit and a short time limit.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body as _;
use platform_protocol::problem::ProblemCode;

use super::api_error::ApiError;

/// The time limit for a small body to arrive.
const ARRIVAL: Duration = Duration::from_secs(10);

/// Whether there is exactly one `Content-Type`, with `media_type` in any case (RFC 9110 §8.3.1) and
/// any parameters.
#[must_use]
pub fn is(headers: &HeaderMap, media_type: &str) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(only), None) = (types.next(), types.next()) else {
        return false;
    };
    let essence = only.as_bytes().split(|byte| *byte == b';').next();
    essence.is_some_and(|essence| {
        essence
            .trim_ascii()
            .eq_ignore_ascii_case(media_type.as_bytes())
    })
}

/// Reads a whole body of at most `limit` bytes.
///
/// # Errors
/// `payload-too-large`, 408, or `invalid-request` if the connection breaks.
pub async fn read(body: Body, limit: usize) -> Result<Bytes, ApiError> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    if body.size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX) {
        return Err(ProblemCode::PayloadTooLarge.into());
    }
    match tokio::time::timeout(ARRIVAL, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(ProblemCode::PayloadTooLarge.into())
        }
        Ok(Err(_)) => {
            Err(ApiError::new(ProblemCode::InvalidRequest).with_detail("The request was cut off."))
        }
        Err(_) => Err(ApiError::request_timeout()),
    }
}
