//! `POST /api/admin/players/<sub>/end-sessions`: signs a player out everywhere.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::NamedPlayer;
use super::caller::AdminCaller;
use crate::admin::AdminState;
use crate::http::api::answer;
use crate::http::api_error::ApiError;

/// What was ended.
#[derive(Debug, Serialize, ToSchema)]
pub struct EndedSessions {
    /// How many sessions, in browsers and on devices.
    pub ended: usize,
}

/// Ends every session of a player, on devices too. An account signs in again;
/// a guest is gone for good.
///
/// # Errors
/// `not-allowed`, `not-found`.
#[utoipa::path(
    post,
    path = "/api/admin/players/{player}/end-sessions",
    operation_id = "endSessions",
    params(("player" = String, Path, description = "The player's id.")),
    responses((status = 200, description = "They are ended.", body = EndedSessions))
)]
pub async fn end(
    State(state): State<Arc<AdminState>>,
    admin: AdminCaller,
    NamedPlayer(player): NamedPlayer,
) -> Result<Response, ApiError> {
    let ended = state
        .platform
        .store
        .end_other_sessions(player.id, None, admin.by(), state.platform.clock.now())
        .await?;
    answer(StatusCode::OK, &EndedSessions { ended })
}
