//! `GET /__platform/runtime.js` and its source map, on every game's address.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use crate::hosting::HostingState;

/// Returns the script.
pub async fn script(State(state): State<Arc<HostingState>>, headers: HeaderMap) -> Response {
    state.runtime.script.answer(&headers)
}

/// Returns the source map.
pub async fn source_map(State(state): State<Arc<HostingState>>, headers: HeaderMap) -> Response {
    state.runtime.source_map.answer(&headers)
}
