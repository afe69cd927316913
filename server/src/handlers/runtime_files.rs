//! `GET /__platform/runtime.js` and its source map, on every game's address.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use crate::state::AppState;

/// Answers the script.
pub async fn script(State(state): State<AppState>, headers: HeaderMap) -> Response {
    state.runtime.script.answer(&headers)
}

/// Answers the source map.
pub async fn source_map(State(state): State<AppState>, headers: HeaderMap) -> Response {
    state.runtime.source_map.answer(&headers)
}
