//! `POST {auth_url}/sign-out`: ends the session and clears the cookie, in every game at once. A
//! suspended player's browser keeps the cookie. Any game may call it, so a guest can be restored:
//! `restore_guest.rs`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::token::IGNORED_BODY_BYTES;
use super::{browser_session, guest, leave};
use crate::auth::AuthState;
use crate::web::api_error::ApiError;
use crate::web::body;
use crate::web::client_address::Network;
use crate::web::cors::AllowedOrigin;
use crate::web::request_context::Context;

/// Returns 204, whether there was a session or not.
///
/// # Errors
/// `unknown-origin`, `invalid-request`; errors of the store.
pub async fn handle(
    State(state): State<Arc<AuthState>>,
    _: AllowedOrigin,
    context: Context,
    headers: HeaderMap,
    request_body: Body,
) -> Result<Response, ApiError> {
    body::read(request_body, IGNORED_BODY_BYTES).await?;
    let mut session = None;
    if let Some(secret) = browser_session::secret(&state, &headers).await? {
        // A guest whose row was swept can be restored as well.
        let network = Network::of(context.client);
        session = state.platform.store.lookup_session(&secret.hash()).await?;
        if session.is_none() {
            let counted = state.limits.guests.count(network);
            if counted.await.is_ok() {
                session = guest::find_or_make(&state, network, &secret).await?;
            }
        }
    }
    let ended = leave::end(&state, &headers, session, context.own()).await?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    for cookie in ended {
        headers.append(header::SET_COOKIE, cookie);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
