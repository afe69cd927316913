//! `GET /` on the platform origin: the games that can be played here.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::http::page;
use crate::http::page::STYLESHEET;
use crate::state::AppState;

#[derive(Template)]
#[template(path = "console.html")]
struct Page {
    stylesheet: &'static str,
    games: Vec<Link>,
}

struct Link {
    slug: String,
    address: String,
}

/// Answers the list of games.
pub async fn handle(State(state): State<AppState>) -> Response {
    let games = state
        .sites
        .playable()
        .iter()
        .map(|game| Link {
            slug: game.slug.clone(),
            address: format!("{}/", game.origin),
        })
        .collect();
    page::render(
        StatusCode::OK,
        &Page {
            stylesheet: STYLESHEET,
            games,
        },
    )
}
