//! Redirects that lead a person on, of pages that are about one player.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::api_error::ApiError;

/// Returns a redirect that is never stored. The current address may contain a code, so the browser
/// does not send it as a referrer.
///
/// # Errors
/// Returns an error if the address cannot be a header.
pub fn redirect(status: StatusCode, address: &str) -> Result<Response, ApiError> {
    let location = HeaderValue::from_str(address).map_err(|error| ApiError::internal(&error))?;
    let mut response = status.into_response();
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, location);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    Ok(response)
}

/// Returns 303 (RFC 9110 §15.4.4), which turns a form into a `GET`.
///
/// # Errors
/// Returns an error if the address cannot be a header.
pub fn see_other(address: &str) -> Result<Response, ApiError> {
    redirect(StatusCode::SEE_OTHER, address)
}
