//! `GET /api/me`: who is playing.

use axum::Json;
use platform_verifier::Player;
use serde::Serialize;

/// What the game's page may know about its player.
#[derive(Debug, Serialize)]
pub(crate) struct Me {
    sub: String,
    username: String,
    is_anon: bool,
}

/// Answers what the verified token says. Guests are players like any other.
pub(crate) async fn handler(Player(player): Player) -> Json<Me> {
    Json(Me {
        sub: player.sub,
        username: player.username,
        is_anon: player.is_anon,
    })
}
