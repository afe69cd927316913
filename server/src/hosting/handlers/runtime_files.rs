//! `GET /__platform/runtime.js` and its source map, on every game's address.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use platform_protocol::paths;

use crate::games::catalogue::Game;
use crate::games::panes::Pane;
use crate::hosting::{HostingState, runtime};
use crate::web::api_error::ApiError;

/// Returns the script.
///
/// # Errors
/// `internal`, if the script was not built.
pub async fn script(
    State(state): State<Arc<HostingState>>,
    Extension(game): Extension<Arc<Game>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if game.traced {
        let script = state.runtime.traced().await;
        let script = script.map_err(|error| ApiError::internal(&error))?;
        return Ok(script.answer(&headers));
    }
    Ok(state.runtime.script.answer(&headers))
}

/// Returns the script for a pane of the Build page, whose own address issues its tokens.
///
/// # Errors
/// `internal`, if the script was not built.
pub async fn script_of_pane(
    State(state): State<Arc<HostingState>>,
    Extension(pane): Extension<Pane>,
) -> Result<Response, ApiError> {
    let platform = &state.platform;
    let auth_url = format!("{}{}", pane.origin, paths::PANE);
    let script = runtime::script_for(
        &auth_url,
        &platform.origin,
        platform.config.heartbeat_seconds,
    );
    let script = script.map_err(|error| ApiError::internal(&error))?;
    let kind = HeaderValue::from_static("text/javascript; charset=utf-8");
    let cache = HeaderValue::from_static("no-cache");
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, cache)];
    Ok((headers, script).into_response())
}

/// Returns the source map.
pub async fn source_map(State(state): State<Arc<HostingState>>, headers: HeaderMap) -> Response {
    state.runtime.source_map.answer(&headers)
}
