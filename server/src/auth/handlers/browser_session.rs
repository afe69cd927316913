//! The session of a browser, even if another page has set a second cookie (RFC 6265 §8.6).

use axum::http::HeaderMap;
use platform_protocol::problem::ProblemCode;

use crate::auth::AuthState;
use crate::domain::session::SessionSecret;
use crate::web::api_error::ApiError;
use crate::web::cookies::{self, SessionCookie};

/// Returns the secret of the session cookie. If there are several, returns the one that names a
/// session; the response expires the others (`web/foreign_cookies.rs`).
///
/// # Errors
/// `invalid-request` if the browser's own cookie cannot be determined. This response expires the
/// others, too, so the next request works.
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
            "Your browser sent two sessions at once, and another page set one of them. That one \
             has now been removed. Please try again.",
        )),
    }
}
