//! `GET {auth_url}/.well-known/oauth-authorization-server`: where things are
//! on the auth service (RFC 8414 §2).

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use platform_protocol::paths;
use serde::Serialize;

use super::key_set::public_json;
use crate::http::refusal::Refusal;
use crate::state::AppState;

/// The members that there are already. `POST /token` is no OAuth token
/// endpoint (it takes a cookie, not a grant), so none is named.
#[derive(Serialize)]
struct Metadata<'a> {
    issuer: &'a str,
    jwks_uri: String,
    response_types_supported: [&'static str; 0],
    grant_types_supported: [&'static str; 0],
}

/// Answers the metadata, for anyone.
pub async fn handle(State(state): State<AppState>) -> Response {
    let metadata = Metadata {
        issuer: &state.auth_url,
        jwks_uri: format!("{}{}", state.auth_url, paths::JWKS),
        response_types_supported: [],
        grant_types_supported: [],
    };
    match serde_json::to_vec(&metadata) {
        Ok(json) => public_json(json.into()),
        Err(error) => Refusal::internal(&error).into_response(),
    }
}
