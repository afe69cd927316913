//! `/api/admin/players/<sub>/suspension`: suspending a player, and lifting it.

use std::sync::Arc;

use axum::extract::State;
use platform_protocol::problem::ProblemCode;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::caller::AdminCaller;
use super::player::details;
use super::views::PlayerDetailsView;
use super::{NamedPlayer, PlayerPath};
use crate::admin::AdminState;
use crate::domain::player::{PlayerState, REASON_CHARS, parse_reason};
use crate::web::api::{ApiJson, invalid};
use crate::web::api_error::ApiError;

/// The reason for a suspension.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSuspension {
    /// The sentence that the player sees: one line of at most 500 characters. Null for the
    /// platform's default sentence.
    #[schema(max_length = 500)]
    pub reason: Option<String>,
}

/// Suspends a player, or changes the reason.
///
/// # Errors
/// `not-allowed` for one's own account, `not-found`, `invalid-request`.
#[utoipa::path(
    put,
    path = "/api/admin/players/{player}/suspension",
    operation_id = "suspendPlayer",
    params(PlayerPath),
    request_body = NewSuspension,
    responses((status = 200, description = "The player, who is suspended.", body = PlayerDetailsView))
)]
pub async fn suspend(
    State(state): State<Arc<AdminState>>,
    admin: AdminCaller,
    NamedPlayer(player): NamedPlayer,
    ApiJson(new): ApiJson<NewSuspension>,
) -> Result<ApiJson<PlayerDetailsView>, ApiError> {
    let reason = new.reason.as_deref().map(|reason| {
        parse_reason(reason).ok_or_else(|| {
            invalid(format!(
                "A reason must be one line of at most {REASON_CHARS} characters. The player can \
                 read it."
            ))
        })
    });
    let reason = reason.transpose()?;
    if player.id == admin.player {
        return Err(ApiError::new(ProblemCode::NotAllowed)
            .with_detail("You would suspend yourself. Ask another administrator."));
    }
    let (id, now) = (player.id, state.platform.clock.now());
    if !state
        .platform
        .store
        .suspend_player(id, reason, admin.by(), now)
        .await?
    {
        return Err(match player.state {
            PlayerState::Merged { into } => invalid(format!(
                "This guest was merged into {into} and cannot play any more; suspend that player \
                 instead."
            )),
            _ => ProblemCode::NotFound.into(),
        });
    }
    changed(&state, player.id).await
}

/// Lifts a suspension. Without a suspension, nothing changes.
///
/// # Errors
/// `not-allowed`, `not-found`.
#[utoipa::path(
    delete,
    path = "/api/admin/players/{player}/suspension",
    operation_id = "liftSuspension",
    params(PlayerPath),
    responses((status = 200, description = "The player, who is not suspended.", body = PlayerDetailsView))
)]
pub async fn lift(
    State(state): State<Arc<AdminState>>,
    admin: AdminCaller,
    NamedPlayer(player): NamedPlayer,
) -> Result<ApiJson<PlayerDetailsView>, ApiError> {
    let now = state.platform.clock.now();
    state
        .platform
        .store
        .unsuspend_player(player.id, admin.by(), now)
        .await?;
    changed(&state, player.id).await
}

/// Returns the player's new state, after the caches of all nodes have been updated.
async fn changed(state: &AdminState, player: Uuid) -> Result<ApiJson<PlayerDetailsView>, ApiError> {
    state
        .auth
        .suspensions
        .refresh(
            &*state.platform.store,
            state.platform.config.token_seconds,
            state.platform.clock.now(),
        )
        .await?;
    // The games of a suspended player are taken down.
    let mut refreshed = Ok(());
    for project in state.platform.store.list_projects_of(player).await? {
        // An error does not keep the other games from being refreshed.
        refreshed = refreshed.and(state.hosting.read(&project.slug).await);
    }
    refreshed?;
    state.platform.nodes.settle().await;
    let player = state.platform.store.find_player(player).await?;
    let player = player.ok_or(ProblemCode::NotFound)?;
    Ok(ApiJson(details(state, player).await?))
}
