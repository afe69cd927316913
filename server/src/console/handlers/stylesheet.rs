//! `GET /static/platform.css`: the stylesheet of the platform's own pages.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use crate::console::ConsoleState;

/// Returns the stylesheet.
pub async fn handle(State(state): State<Arc<ConsoleState>>, headers: HeaderMap) -> Response {
    state.stylesheet.answer(&headers)
}
