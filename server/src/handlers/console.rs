//! `GET /` on the platform origin: the games that can be played here.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use platform_protocol::paths;

use crate::http::page::{self, Frame};
use crate::state::AppState;

#[derive(Template)]
#[template(path = "console.html")]
struct Page<'a> {
    frame: Frame,
    games: Vec<Link>,
    auth_url: &'a str,
    key_set: &'static str,
    metadata: &'static str,
    profile: &'static str,
}

struct Link {
    title: Arc<str>,
    host: String,
    address: String,
}

/// Answers the list of games.
pub async fn handle(State(state): State<AppState>) -> Response {
    let mut games = Vec::new();
    for game in state.sites.playable() {
        let host = game.origin.split_once("://").map_or("", |(_, host)| host);
        games.push(Link {
            title: state.titles.of(&game, &state.files).await,
            host: host.to_owned(),
            address: format!("{}/", game.origin),
        });
    }
    page::render(
        StatusCode::OK,
        &Page {
            frame: Frame::new(&state.origin),
            games,
            auth_url: &state.auth_url,
            key_set: paths::JWKS,
            metadata: paths::METADATA,
            profile: paths::PROFILE,
        },
    )
}
