//! `GET /static/platform.css`: how the platform's own pages look.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use crate::console::ConsoleState;

/// Answers the stylesheet.
pub async fn handle(State(state): State<Arc<ConsoleState>>, headers: HeaderMap) -> Response {
    state.stylesheet.answer(&headers)
}
