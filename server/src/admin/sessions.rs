//! `POST /api/admin/players/<sub>/end-sessions`: signs a player out everywhere.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::AdminCaller;
use super::{NamedPlayer, PlayerPath};
use crate::admin::AdminState;
use crate::web::api::ApiJson;
use crate::web::api_error::ApiError;

/// The result of ending sessions.
#[derive(Debug, Serialize, ToSchema)]
pub struct EndedSessions {
    /// The number of ended sessions, in browsers and on devices.
    pub ended: usize,
}

/// Ends every session of a player, also on devices. An account can sign in again; a guest is lost
/// for good.
///
/// # Errors
/// `not-allowed`, `not-found`.
#[utoipa::path(
    post,
    path = "/api/admin/players/{player}/end-sessions",
    operation_id = "endSessions",
    params(PlayerPath),
    responses((status = 200, description = "The sessions are ended.", body = EndedSessions))
)]
pub async fn end(
    State(state): State<Arc<AdminState>>,
    admin: AdminCaller,
    NamedPlayer(player): NamedPlayer,
) -> Result<ApiJson<EndedSessions>, ApiError> {
    let ended = state
        .platform
        .store
        .end_other_sessions(player.id, None, admin.by(), state.platform.clock.now())
        .await?;
    let (life, now) = (
        state.platform.config.token_seconds,
        state.platform.clock.now(),
    );
    let store = &*state.platform.store;
    state.auth.endings.refresh(store, life, now).await?;
    state.platform.nodes.settle().await;
    Ok(ApiJson(EndedSessions { ended }))
}
