//! `GET /api/ranking`: the games of the platform, for everybody.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, header};
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::date::rfc3339;
use crate::games::page_metadata::GameListing;
use crate::players::PlayersState;
use crate::web::api::ApiJson;

/// The maximum number of listed games; players of other games have their addresses.
const LISTED: usize = 200;

/// The games, those with the most players first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Ranking)]
pub struct RankingView {
    /// When it was created (RFC 3339).
    #[schema(format = DateTime)]
    pub time: String,
    /// The games that can be played, at most 200.
    pub games: Vec<RankedGame>,
}

/// One game.
#[derive(Debug, Serialize, ToSchema)]
pub struct RankedGame {
    /// The project.
    pub slug: String,
    /// The title of its page, or its slug.
    pub title: String,
    /// A picture of it, one of its own files: the `og:image` of its page, or an icon. Null if the
    /// page names none.
    #[schema(required)]
    pub picture: Option<String>,
    /// The environment for players.
    pub url: String,
    /// The number of players now; null if it is not known.
    #[schema(required)]
    pub players_now: Option<u64>,
    /// The number of different players who played for a minute or more in the last 24 hours.
    pub players_day: u64,
}

/// Returns the available games, the one with most players of the last day first; if equal, the one
/// with more current players.
pub async fn rank(state: &PlayersState) -> Vec<RankedGame> {
    let ranked = state.counting.ranking.load().await;
    let by_slug: HashMap<&str, u64> = ranked
        .iter()
        .map(|project| (project.slug.as_str(), project.players))
        .collect();
    let now = state.platform.clock.now();
    let playable = state.games.catalogue.playable();
    let audiences: Vec<&str> = playable.iter().map(|game| &*game.audience).collect();
    let playing = state.games.presence.playing_each(&audiences, now).await;
    let mut games = Vec::with_capacity(playable.len());
    for (game, playing) in playable.iter().zip(playing) {
        let day = by_slug.get(&*game.slug).copied().unwrap_or(0);
        games.push((day, playing, game));
    }
    // They are sorted by slug, and stay so if the numbers are equal.
    games.sort_by_key(|(day, playing, _)| std::cmp::Reverse((*day, *playing)));
    games.truncate(LISTED);
    let mut listed = Vec::with_capacity(games.len());
    for (players_day, playing, game) in games {
        let is_file = |path: &str| state.hosting.backends.find(game, path).is_none();
        let listing = GameListing::of(game, is_file);
        listed.push(RankedGame {
            title: listing.title,
            picture: listing.picture,
            url: format!("{}/", game.origin),
            players_now: playing.map(|playing| playing as u64),
            players_day,
            slug: game.slug.clone(),
        });
    }
    listed
}

/// Returns the ranking. No token is needed: everybody may read it, from any page.
#[utoipa::path(
    get,
    path = "/api/ranking",
    operation_id = "listRanking",
    security(()),
    responses((status = 200, description = "The games, those with the most players first.", body = RankingView))
)]
pub async fn handle(
    State(state): State<Arc<PlayersState>>,
) -> ([(HeaderName, &'static str); 1], ApiJson<RankingView>) {
    let view = RankingView {
        time: rfc3339(state.platform.clock.now()),
        games: rank(&state).await,
    };
    let any_page = [(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*")];
    (any_page, ApiJson(view))
}
