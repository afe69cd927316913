//! `POST {auth_url}/sign-out`: ends the session and clears the cookie, in
//! every game at once.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::token::{IGNORED_BODY_BYTES, two_cookies};
use crate::http::body;
use crate::http::cookies::{self, SessionCookie};
use crate::http::cors::Caller;
use crate::http::refusal::Refusal;
use crate::state::AppState;

/// Answers 204, whether there was a session or not.
///
/// # Errors
/// `unknown-origin`, `invalid-request`; the store's.
pub async fn handle(
    State(state): State<AppState>,
    _: Caller,
    headers: HeaderMap,
    request_body: Body,
) -> Result<Response, Refusal> {
    body::read(request_body, IGNORED_BODY_BYTES).await?;
    let secure = state.origin.is_secure();
    match cookies::read_session(&headers, secure) {
        SessionCookie::Ambiguous => return Err(two_cookies()),
        SessionCookie::Absent => {}
        SessionCookie::Present(secret) => {
            state
                .store
                .end_session(&secret.hash(), state.clock.now())
                .await?;
        }
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::SET_COOKIE, cookies::clear_session(secure));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
