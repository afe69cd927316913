//! `GET {auth_url}/.well-known/jwks.json`: the keys that verify game tokens
//! (RFC 7517).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;

use crate::auth::AuthState;

/// Returns the key set, for everyone.
pub async fn handle(State(state): State<Arc<AuthState>>) -> Response {
    public_json(Bytes::copy_from_slice(state.keys.key_set().as_bytes()))
}

/// Returns JSON that everyone may read and cache for ten minutes
/// ([`platform_protocol::limits::KEY_SET_CACHE_SECONDS`]).
pub(crate) fn public_json(json: Bytes) -> Response {
    let mut response = Response::new(Body::from(json));
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "public, max-age=600"),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::ACCESS_CONTROL_EXPOSE_HEADERS, "X-Request-Id"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
