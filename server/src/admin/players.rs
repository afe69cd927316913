//! `GET /api/admin/players`: players by id or by the start of their names.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use uuid::Uuid;

use super::caller::AdminCaller;
use super::views::{PlayerView, PlayersView};
use crate::admin::AdminState;
use crate::domain::username::{self, MAX_CHARS};
use crate::http::api::query::limit;
use crate::http::api::{answer, invalid};
use crate::http::api_error::ApiError;

/// Players of one answer where nothing else is asked for.
const PLAYERS: usize = 20;
/// Players of one answer, at most.
const MAX_PLAYERS: usize = 100;

/// Finds players.
///
/// # Errors
/// `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/admin/players",
    operation_id = "findPlayers",
    params(
        ("query" = String, Query, description = "A player's id, or how a name begins, without regard to case."),
        ("limit" = Option<u32>, Query, description = "20 if not given.", minimum = 1, maximum = 100),
    ),
    responses((status = 200, description = "The players.", body = PlayersView))
)]
pub async fn handle(
    State(state): State<Arc<AdminState>>,
    _admin: AdminCaller,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let (mut wanted, mut most) = (String::new(), PLAYERS);
    let query = query.unwrap_or_default();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "query" => wanted = value.trim().to_owned(),
            "limit" => most = limit(&value, MAX_PLAYERS).map_err(invalid)?,
            _ => return Err(invalid("The query may have query and limit.")),
        }
    }
    let players = if let Ok(id) = wanted.parse::<Uuid>() {
        state
            .platform
            .store
            .find_player(id)
            .await?
            .into_iter()
            .collect()
    } else if wanted.chars().count() <= MAX_CHARS && !username::unique_key(&wanted).is_empty() {
        state
            .platform
            .store
            .list_players_by_name(&wanted, most)
            .await?
    } else {
        return Err(invalid(
            "Players are found by their id, or by how their name begins: 24 characters at most.",
        ));
    };
    let players = players.into_iter().map(PlayerView::from).collect();
    answer(StatusCode::OK, &PlayersView { players })
}
