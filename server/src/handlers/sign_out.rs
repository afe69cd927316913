//! `POST {auth_url}/sign-out`: ends the session and clears the cookie, in
//! every game at once. A suspended player's browser keeps the cookie.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::token::{IGNORED_BODY_BYTES, two_cookies};
use crate::domain::player::PlayerState;
use crate::http::body;
use crate::http::context::Context;
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
    context: Context,
    headers: HeaderMap,
    request_body: Body,
) -> Result<Response, Refusal> {
    body::read(request_body, IGNORED_BODY_BYTES).await?;
    let secure = state.origin.is_secure();
    let mut cleared = true;
    match cookies::read_session(&headers, secure) {
        SessionCookie::Ambiguous => return Err(two_cookies()),
        SessionCookie::Absent => {}
        SessionCookie::Present(secret) => {
            let hash = secret.hash();
            let now = state.clock.now();
            state.store.end_session(&hash, context.own(), now).await?;
            // A browser without a cookie would be a fresh guest, and that is no
            // way round a suspension. Lifted, the session has ended all the
            // same.
            let session = state.store.lookup_session(&hash).await?;
            cleared = !session.is_some_and(|session| {
                matches!(session.player.state, PlayerState::Suspended { .. })
            });
        }
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    if cleared {
        headers.insert(header::SET_COOKIE, cookies::clear_session(secure));
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
