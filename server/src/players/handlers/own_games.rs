//! `/api/me/games` and `/api/me/favourites/<slug>`: a player's favourites, and what they played lately.

use std::sync::Arc;

use axum::extract::{Path, State};
use platform_protocol::problem::ProblemCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::caller::ApiCaller;
use crate::domain::date::rfc3339;
use crate::domain::player_game::{FAVOURITES, PlayerGame, SetFavourite};
use crate::games::page_metadata::GameListing;
use crate::players::PlayersState;
use crate::web::api::ApiJson;
use crate::web::api_error::ApiError;

/// The number of games that were played lately in a response.
const PLAYED: usize = 24;

/// A player's games. Games that cannot be played now are left out.
#[derive(Debug, Serialize, ToSchema)]
pub struct OwnGames {
    /// The favourites, and at most 24 games that were played in the last 90 days: those played
    /// last first, and those that were not played lately at the end.
    pub games: Vec<OwnGame>,
}

/// A game of a player.
#[derive(Debug, Serialize, ToSchema)]
pub struct OwnGame {
    /// The project.
    pub slug: String,
    /// The title.
    pub title: String,
    /// The address of its cover: one of its own files; null if it has none.
    #[schema(required)]
    pub cover: Option<String>,
    /// The environment for players.
    pub url: String,
    /// Whether the public page lists it.
    pub listed: bool,
    /// Whether it is a favourite.
    pub favourite: bool,
    /// The start of the hour in which it was last played (RFC 3339); null if that is more than 90
    /// days ago.
    #[schema(required, format = DateTime)]
    pub played_at: Option<String>,
}

/// A path that names a game.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct GamePath {
    /// The project.
    #[param(example = "my-game")]
    pub slug: String,
}

/// Returns the caller's favourites, and what they played lately.
///
/// # Errors
/// `not-signed-in`.
#[utoipa::path(
    get,
    path = "/api/me/games",
    operation_id = "listOwnGames",
    responses((status = 200, description = "The caller's games.", body = OwnGames))
)]
pub async fn list(
    State(state): State<Arc<PlayersState>>,
    caller: ApiCaller,
) -> Result<ApiJson<OwnGames>, ApiError> {
    own_games(&state, &caller).await.map(ApiJson)
}

/// Makes a game a favourite of the caller.
///
/// # Errors
/// `not-signed-in`, `not-found`, `quota-exceeded`.
#[utoipa::path(
    put,
    path = "/api/me/favourites/{slug}",
    operation_id = "addFavourite",
    params(GamePath),
    responses((status = 200, description = "The caller's games, as they are now.", body = OwnGames))
)]
pub async fn add(
    State(state): State<Arc<PlayersState>>,
    caller: ApiCaller,
    Path(GamePath { slug }): Path<GamePath>,
) -> Result<ApiJson<OwnGames>, ApiError> {
    if !state
        .games
        .catalogue
        .find(&slug)
        .is_some_and(|game| game.is_playable())
    {
        return Err(ProblemCode::NotFound.into());
    }
    set(&state, &caller, &slug, true).await
}

/// Takes a game off the caller's favourites.
///
/// # Errors
/// `not-signed-in`, `not-found`.
#[utoipa::path(
    delete,
    path = "/api/me/favourites/{slug}",
    operation_id = "removeFavourite",
    params(GamePath),
    responses((status = 200, description = "The caller's games, as they are now.", body = OwnGames))
)]
pub async fn remove(
    State(state): State<Arc<PlayersState>>,
    caller: ApiCaller,
    Path(GamePath { slug }): Path<GamePath>,
) -> Result<ApiJson<OwnGames>, ApiError> {
    set(&state, &caller, &slug, false).await
}

async fn set(
    state: &PlayersState,
    caller: &ApiCaller,
    slug: &str,
    favourite: bool,
) -> Result<ApiJson<OwnGames>, ApiError> {
    let now = state.platform.clock.now();
    let store = &state.platform.store;
    let set = store.set_favourite(caller.player, slug, favourite, FAVOURITES, now);
    match set.await {
        Ok(SetFavourite::Done) => own_games(state, caller).await.map(ApiJson),
        Ok(SetFavourite::TooMany) => Err(ApiError::new(ProblemCode::QuotaExceeded).with_detail(
            format!(
                "You have {FAVOURITES} favourites, as many as there may be. Take one away first."
            ),
        )),
        Err(crate::store::StoreError::Missing { .. }) => Err(ProblemCode::NotFound.into()),
        Err(error) => Err(error.into()),
    }
}

async fn own_games(state: &PlayersState, caller: &ApiCaller) -> Result<OwnGames, ApiError> {
    let store = &state.platform.store;
    let games = store.list_player_games(caller.player, PLAYED).await?;
    let games = games.into_iter().filter_map(|game| view(state, game));
    Ok(OwnGames {
        games: games.collect(),
    })
}

/// Returns the view of a game, if it can be played now.
fn view(state: &PlayersState, kept: PlayerGame) -> Option<OwnGame> {
    let game = state.games.catalogue.find(&kept.slug)?;
    let game = game.is_playable().then_some(game)?;
    let is_file = |path: &str| state.hosting.backends.find(&game, path).is_none();
    let listing = GameListing::of(&game, is_file);
    Some(OwnGame {
        title: listing.title,
        cover: listing.picture,
        url: format!("{}/", game.origin),
        listed: game.is_listed(),
        favourite: kept.favourite_at.is_some(),
        played_at: kept.played_at.map(rfc3339),
        slug: kept.slug,
    })
}
