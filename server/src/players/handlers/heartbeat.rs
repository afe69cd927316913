//! `POST /__platform/heartbeat` on a game's address: the player of this page is playing, or leaves
//! the page.

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
use crate::players::recording::Beat;
use crate::web::api_error::ApiError;
use crate::web::json;

/// Returns 204. If a session of the player has ended since the token was issued, the token is
/// rejected: `not-signed-in`, and the page finds out who its player is now.
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
        // A beacon at the end of a page cannot contain a token, and only the page knows its 128
        // random bits.
        let known = state.games.presence.leave(&game.audience, page).await;
        if known == Some(false) && token.is_none() {
            return Err(not_signed_in());
        }
    } else {
        let token = token.ok_or_else(not_signed_in)?;
        // The page drops its token after this error.
        state.auth.suspensions.check(&token.player)?;
        // The page drops its token after this error, too, and requests a new one at once.
        let apart = state.platform.nodes.clocks_apart();
        let endings = &state.auth.endings;
        if endings.any_since(&token.player, token.issued_at, apart) {
            return Err(not_signed_in());
        }
        if !token.counts {
            // A guest with a cookie that has not come back: a client without cookies could be any number
            // of players.
            return Ok(json::nothing());
        }
        let beat = Beat {
            game,
            player: token.player,
            page,
            now: state.platform.clock.now(),
        };
        beat.record(&state).await;
    }
    Ok(json::nothing())
}

/// RFC 6750 §3: includes how to authenticate.
fn not_signed_in() -> ApiError {
    ApiError::new(ProblemCode::NotSignedIn)
        .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}
