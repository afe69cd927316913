//! `POST {auth_url}/device/revoke`: a device signs out (RFC 7009).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::read_parameters;
use crate::auth::AuthState;
use crate::domain::device::TokenHash;
use crate::web::oauth::OauthError;
use crate::web::request_context::Context;

/// Returns 200, also for an unknown token, which counts as revoked (RFC 7009 §2.2). The device's
/// access tokens end with it.
///
/// # Errors
/// `invalid_request`, `invalid_client`, `slow_down` with status 429; errors of the store.
pub async fn handle(
    State(state): State<Arc<AuthState>>,
    context: Context,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, OauthError> {
    let parameters = read_parameters(&state, &context, &headers, body).await?;
    let token = TokenHash::of(parameters.required("token")?);
    let now = state.platform.clock.now();
    state
        .platform
        .store
        .revoke_refresh_token(&token, context.own(), now)
        .await?;
    let mut response = StatusCode::OK.into_response();
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
