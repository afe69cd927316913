//! `GET /__platform/platform.json`, on a game's address and on the auth service: names the platform
//! to which the address belongs. A client that only has a game's address, such as the command line,
//! finds the platform with it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

use crate::auth::handlers::key_set::public_json;
use crate::hosting::HostingState;
use crate::web::api_error::ApiError;

#[derive(Serialize)]
struct Whereabouts<'a> {
    /// The platform origin.
    origin: String,
    /// The origin below which games have their addresses.
    games_origin: String,
    /// `{auth_url}`
    auth_url: &'a str,
}

/// Returns the platform's origin, for everyone.
pub async fn handle(State(state): State<Arc<HostingState>>) -> Response {
    let whereabouts = Whereabouts {
        origin: state.platform.origin.to_string(),
        games_origin: state.platform.games_origin.to_string(),
        auth_url: &state.platform.auth_url,
    };
    match serde_json::to_vec(&whereabouts) {
        Ok(json) => public_json(json.into()),
        Err(error) => ApiError::internal(&error).into_response(),
    }
}
