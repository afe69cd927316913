//! Request bodies that must be small, and must arrive soon.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body as _;
use platform_protocol::problem::Slug;

use super::refusal::Refusal;

/// How long a small body may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(10);

/// Reads a whole body of at most `limit` bytes.
///
/// # Errors
/// `payload-too-large`, 408, or `invalid-request` where it breaks off.
pub async fn read(body: Body, limit: usize) -> Result<Bytes, Refusal> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    if body.size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX) {
        return Err(Slug::PayloadTooLarge.into());
    }
    match tokio::time::timeout(ARRIVAL, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Slug::PayloadTooLarge.into()),
        Ok(Err(_)) => Err(Refusal::new(Slug::InvalidRequest).with_detail("The request broke off.")),
        Err(_) => Err(Refusal::request_timeout()),
    }
}
