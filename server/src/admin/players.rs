//! `GET /api/admin/players`: players by id or by the start of their names.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::caller::AdminCaller;
use super::views::{PlayerView, PlayersView};
use crate::admin::AdminState;
use crate::domain::username::{self, MAX_CHARS};
use crate::web::api::query::Within;
use crate::web::api::{ApiJson, ApiQuery, invalid};
use crate::web::api_error::ApiError;

/// The default number of players in a response.
const PLAYERS: usize = 20;

/// Which players are looked for.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PlayersQuery {
    /// A player's id, or the beginning of a name, case-insensitive.
    #[param(required = true)]
    query: String,
    /// The maximum number of players; default 20.
    #[param(inline)]
    limit: Option<Within<1, 100>>,
}

/// Finds players.
///
/// # Errors
/// `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/admin/players",
    operation_id = "findPlayers",
    params(PlayersQuery),
    responses((status = 200, description = "The players.", body = PlayersView))
)]
pub async fn handle(
    State(state): State<Arc<AdminState>>,
    _admin: AdminCaller,
    ApiQuery(query): ApiQuery<PlayersQuery>,
) -> Result<ApiJson<PlayersView>, ApiError> {
    let wanted = query.query.trim();
    let most = query.limit.map_or(PLAYERS, Within::count);
    let players = if let Ok(id) = wanted.parse::<Uuid>() {
        state
            .platform
            .store
            .find_player(id)
            .await?
            .into_iter()
            .collect()
    } else if wanted.chars().count() <= MAX_CHARS && !username::unique_key(wanted).is_empty() {
        state
            .platform
            .store
            .list_players_by_name(wanted, most)
            .await?
    } else {
        return Err(invalid(
            "Search for players by id, or by the beginning of the name (at most 24 characters).",
        ));
    };
    let players = players.into_iter().map(PlayerView::from).collect();
    Ok(ApiJson(PlayersView { players }))
}
