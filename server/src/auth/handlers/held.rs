//! The session that a browser holds, also where another page has tossed a
//! second cookie in (RFC 6265 §8.6).

use axum::http::HeaderMap;
use platform_protocol::problem::ProblemCode;

use crate::auth::AuthState;
use crate::domain::session::SessionSecret;
use crate::http::api_error::ApiError;
use crate::http::cookies::{self, SessionCookie};

/// The secret of the session cookie. Of several that of the one which names a
/// session; the tossed one expires with the answer
/// (`web/foreign_cookies.rs`).
///
/// # Errors
/// `invalid-request` where nobody can tell which one is the browser's own. With
/// that answer the tossed one expires as well, so the next request is good.
pub(super) async fn secret(
    state: &AuthState,
    headers: &HeaderMap,
) -> Result<Option<SessionSecret>, ApiError> {
    let secrets = match cookies::read_session(headers, state.platform.origin.is_secure()) {
        SessionCookie::Absent => return Ok(None),
        SessionCookie::Present(secret) => return Ok(Some(secret)),
        SessionCookie::Several(secrets) => secrets,
    };
    if secrets.is_empty() {
        return Ok(None);
    }
    let mut known = Vec::new();
    for secret in secrets {
        if state
            .platform
            .store
            .lookup_session(&secret.hash())
            .await?
            .is_some()
        {
            known.push(secret);
        }
    }
    match <[SessionSecret; 1]>::try_from(known) {
        Ok([secret]) => Ok(Some(secret)),
        Err(_) => Err(ApiError::new(ProblemCode::InvalidRequest).with_detail(
            "Your browser sent two sessions at once, one of which another page has set. That one \
             is removed now. Please try again.",
        )),
    }
}
