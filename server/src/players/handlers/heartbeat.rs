//! `POST /__platform/heartbeat` on a game's address: this page's player is
//! playing, or the page goes away.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use platform_protocol::heartbeat::Heartbeat;
use platform_protocol::limits::HEARTBEAT_BYTES;
use platform_protocol::problem::ProblemCode;

use crate::domain::page::PageId;
use crate::games::catalogue::Game;
use crate::players::PlayersState;
use crate::web::api_error::ApiError;
use crate::web::json;

/// Answers 204. Where a session of the player has ended since the token was
/// made, it is as good as none: `not-signed-in`, and the page finds out whom it
/// is played by now.
///
/// # Errors
/// `not-allowed`, `unsupported-media-type`, `payload-too-large`,
/// `invalid-request`, `not-signed-in`, `account-suspended`.
pub async fn handle(
    State(state): State<Arc<PlayersState>>,
    Extension(game): Extension<Arc<Game>>,
    headers: HeaderMap,
    request_body: Body,
) -> Result<Response, ApiError> {
    json::refuse_cross_site(&headers)?;
    let bytes = json::read(&headers, request_body, HEARTBEAT_BYTES).await?;
    let heartbeat: Heartbeat = json::parse(&bytes)?;
    let page = PageId::parse(&heartbeat.page).ok_or(ProblemCode::InvalidRequest)?;
    let token = state.auth.tokens.of(&headers, &game.audience);

    if heartbeat.leaving == Some(true) {
        // A beacon on the way out cannot carry a token, and nobody but the
        // page knows its 128 random bits.
        let known = state.games.presence.leave(&game.audience, page).await?;
        if !known && token.is_none() {
            return Err(not_signed_in());
        }
    } else {
        let token = token.ok_or_else(not_signed_in)?;
        // The page drops its token on this.
        state.auth.suspensions.check(&token.player)?;
        // So does it on this, and asks for the next one at once.
        if state
            .auth
            .endings
            .any_since(&token.player, token.claims.iat)
        {
            return Err(not_signed_in());
        }
        let now = state.platform.clock.now();
        let (audience, player) = (&game.audience, token.player);
        state
            .games
            .presence
            .beat(audience, player, page, now)
            .await?;
        state.counting.beat(&game, player, now);
    }
    Ok(json::nothing())
}

/// RFC 6750 §3: with how to authenticate.
fn not_signed_in() -> ApiError {
    ApiError::new(ProblemCode::NotSignedIn)
        .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}
