//! Small JSON documents that a game's page posts to the platform.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use platform_protocol::problem::ProblemCode;
use serde::Deserialize;

use super::api_error::ApiError;
use super::body;

/// Rejects requests that a page of another site makes a browser send. A request without the header
/// does not come from a current browser, so no such page can have caused it.
///
/// # Errors
/// `not-allowed`
pub fn refuse_cross_site(headers: &HeaderMap) -> Result<(), ApiError> {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    if sites.any(|site| site.as_bytes() == b"cross-site") {
        return Err(ProblemCode::NotAllowed.into());
    }
    Ok(())
}

/// Reads a body of type `application/json` of at most `limit` bytes.
///
/// # Errors
/// `unsupported-media-type`, and the errors of [`body::read`].
pub async fn read(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, ApiError> {
    if !is_json(headers) {
        return Err(ProblemCode::UnsupportedMediaType.into());
    }
    body::read(body, limit).await
}

/// Parses a body.
///
/// # Errors
/// `invalid-request`
pub fn parse<'body, T: Deserialize<'body>>(body: &'body [u8]) -> Result<T, ApiError> {
    // The error is no secret, since the page sent the body. But it may quote the body, so it is not
    // logged.
    serde_json::from_slice(body).map_err(|_| ProblemCode::InvalidRequest.into())
}

fn is_json(headers: &HeaderMap) -> bool {
    body::is(headers, "application/json")
}

/// Returns a response without a body that no cache stores.
#[must_use]
pub fn nothing() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_is_json() {
        for (value, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/json;", true),
            ("application/json-seq", false),
            ("text/plain", false),
            ("text/plain; application/json", false),
            ("", false),
        ] {
            let value = HeaderValue::from_static(value);
            let mut headers = HeaderMap::from_iter([(header::CONTENT_TYPE, value.clone())]);
            assert_eq!(is_json(&headers), expected, "{value:?}");
            headers.append(header::CONTENT_TYPE, value);
            assert!(!is_json(&headers), "two of them");
        }
        assert!(!is_json(&HeaderMap::new()));
    }

    #[test]
    fn cross_site_is_refused_and_nothing_else() {
        for (site, refused) in [
            ("cross-site", true),
            ("same-origin", false),
            ("same-site", false),
            ("none", false),
        ] {
            let value = HeaderValue::from_static(site);
            let headers = HeaderMap::from_iter([("sec-fetch-site".parse().unwrap(), value)]);
            assert_eq!(refuse_cross_site(&headers).is_err(), refused, "{site}");
        }
        assert!(refuse_cross_site(&HeaderMap::new()).is_ok());
    }
}
