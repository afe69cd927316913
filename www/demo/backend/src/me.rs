//! `GET /api/me`: the current player.

use axum::Json;
use platform_verifier::Player;
use serde::Serialize;

/// The data about the player for the game's page.
#[derive(Debug, Serialize)]
pub(crate) struct Me {
    sub: String,
    username: String,
    is_anon: bool,
}

/// Returns claims of the verified token. Guests are players like any other.
pub(crate) async fn handler(Player(player): Player) -> Json<Me> {
    Json(Me {
        sub: player.sub,
        username: player.username,
        is_anon: player.is_anon,
    })
}
