//! `GET /` on the platform origin: the available games, the most played first.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use platform_protocol::paths;

use crate::console::ConsoleState;
use crate::players::handlers::ranking::{RankedGame, rank};
use crate::web::page::{self, Layout};

#[derive(Template)]
#[template(path = "console.html")]
struct Page<'a> {
    frame: Layout,
    games: Vec<Entry>,
    auth_url: &'a str,
    key_set: &'static str,
    metadata: &'static str,
    profile: &'static str,
}

struct Entry {
    game: RankedGame,
    /// The number of players now; 0 if it is not known, and then nothing is shown.
    playing: u64,
    host: String,
    /// Replaces the image of a game that has none.
    initial: String,
}

impl From<RankedGame> for Entry {
    fn from(game: RankedGame) -> Self {
        let host = game.url.split_once("://").map_or("", |(_, host)| host);
        let initial = game.title.chars().next().into_iter();
        Self {
            host: host.trim_end_matches('/').to_owned(),
            playing: game.players_now.unwrap_or(0),
            initial: initial.flat_map(char::to_uppercase).collect(),
            game,
        }
    }
}

/// Returns the list of games.
pub async fn handle(State(state): State<Arc<ConsoleState>>) -> Response {
    let games = rank(&state.players).await;
    let page = Page {
        frame: Layout::new(&state.platform.origin),
        games: games.into_iter().map(Entry::from).collect(),
        auth_url: &state.platform.auth_url,
        key_set: paths::JWKS,
        metadata: paths::METADATA,
        profile: paths::PROFILE,
    };
    page::render_games(StatusCode::OK, &page, &state.platform.origin)
}
