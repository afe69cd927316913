//! `GET /static/platform.css`: how the platform's own pages look.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use crate::state::AppState;

/// Answers the stylesheet.
pub async fn handle(State(state): State<AppState>, headers: HeaderMap) -> Response {
    state.stylesheet.answer(&headers)
}
