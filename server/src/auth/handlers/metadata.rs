//! `GET {auth_url}/.well-known/oauth-authorization-server`: the metadata of the auth service (RFC
//! 8414 §2).

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use platform_protocol::paths;
use serde::Serialize;

use super::device;
use super::key_set::public_json;
use crate::auth::AuthState;
use crate::web::api_error::ApiError;

/// The token endpoint is the one for devices: `POST /token` is not an OAuth token endpoint, since
/// it uses a cookie and not a grant.
#[derive(Serialize)]
struct Metadata<'a> {
    issuer: &'a str,
    jwks_uri: String,
    device_authorization_endpoint: String,
    token_endpoint: String,
    token_endpoint_auth_methods_supported: [&'static str; 1],
    revocation_endpoint: String,
    revocation_endpoint_auth_methods_supported: [&'static str; 1],
    response_types_supported: [&'static str; 0],
    grant_types_supported: [&'static str; 2],
}

/// Returns the metadata, for everyone.
pub async fn handle(State(state): State<Arc<AuthState>>) -> Response {
    let at = |path: &str| format!("{}{path}", state.platform.auth_url);
    let metadata = Metadata {
        issuer: &state.platform.auth_url,
        jwks_uri: at(paths::JWKS),
        device_authorization_endpoint: at(device::AUTHORIZATION),
        token_endpoint: at(device::TOKEN),
        // A client that everyone can download cannot keep a secret (RFC 6749 §2.1).
        token_endpoint_auth_methods_supported: ["none"],
        revocation_endpoint: at(device::REVOKE),
        revocation_endpoint_auth_methods_supported: ["none"],
        response_types_supported: [],
        grant_types_supported: [device::DEVICE_GRANT, device::REFRESH_GRANT],
    };
    match serde_json::to_vec(&metadata) {
        Ok(json) => public_json(json.into()),
        Err(error) => ApiError::internal(&error).into_response(),
    }
}
