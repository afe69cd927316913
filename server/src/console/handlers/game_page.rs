//! `GET /games/<slug>` on the platform origin: the page of a listed game.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;

use super::build::sign_in;
use super::console::{Card, TagLink, cards, tag_link};
use crate::console::ConsoleState;
use crate::console::files::Scripts;
use crate::web::api_error::ApiError;
use crate::web::page::{self, Layout};

#[derive(Template)]
#[template(path = "game.html")]
struct Page<'a> {
    frame: Layout,
    scripts: Scripts,
    sign_in: String,
    auth_url: &'a str,
    card: Card<'a>,
    tags: Vec<TagLink<'a>>,
}

/// Returns the page of a game.
///
/// # Errors
/// `not-found` if there is no such game, or it is not listed: nobody learns which.
pub async fn handle(
    State(state): State<Arc<ConsoleState>>,
    Path(slug): Path<String>,
) -> Result<Response, ApiError> {
    let front = state.storefronts.load(&state.players).await;
    let Some(entry) = front.find(&slug) else {
        return Err(ProblemCode::NotFound.into());
    };
    let here = format!("{}/{slug}", paths::GAME_PAGES);
    let card = cards(&state.players, &[entry]).await.pop();
    let page = Page {
        frame: Layout::new(&state.platform.origin),
        scripts: state.files.scripts("front"),
        sign_in: sign_in(&state, &here),
        auth_url: &state.platform.auth_url,
        card: card.unwrap_or(Card { entry, playing: 0 }),
        tags: entry.listing.tags.iter().map(|tag| tag_link(tag)).collect(),
    };
    let addresses = (&state.platform.games_origin, &*state.platform.auth_url);
    Ok(page::render_games(StatusCode::OK, &page, addresses))
}
