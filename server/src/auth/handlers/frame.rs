//! `GET {auth_url}/frame`: hands a visitor to the game in a frame of another site, which opened the
//! sign-in page in a tab. The page sends the code to its opener, to exactly the game's origin.

use std::sync::Arc;

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use platform_protocol::problem::ProblemCode;
use sha2::{Digest as _, Sha256};

use super::hand_off::{Parent, game_to};
use crate::auth::AuthState;
use crate::auth::hand_off::{STATE, decode, opens_tab};
use crate::games::page_metadata;
use crate::web::api_error::ApiError;
use crate::web::client_address::Network;
use crate::web::form::Form;
use crate::web::limiter::too_many_requests;
use crate::web::page::{self, Layout};
use crate::web::request_context::Context;

/// The path of the page's script.
pub const SCRIPT: &str = "/static/frame.js";

#[derive(Template)]
#[template(path = "frame.html")]
struct Page {
    frame: Layout,
    script: &'static str,
    /// The name of the game.
    game: String,
    /// The origin of the game.
    to: String,
    code: String,
    /// The secret of the frame, which says that the code is for it.
    state: String,
    /// Where the game is played in a tab of its own.
    address: String,
}

/// Responds to `GET /frame?to=<origin of the game>&state=<secret of the frame>`.
///
/// # Errors
/// `invalid-redirect`, `invalid-request`, `not-allowed` for what is no navigation,
/// `too-many-requests`; errors of the store.
pub async fn handle(
    State(state): State<Arc<AuthState>>,
    context: Context,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let query = Form::of_query(query.as_deref());
    let game = game_to(&state, &query)?;
    let wanted = query.field(STATE)?.unwrap_or_default();
    let secret = decode(wanted).ok_or(ProblemCode::InvalidRequest)?;
    if headers.contains_key("sec-fetch-dest") && !opens_tab(&headers) {
        return Err(ProblemCode::NotAllowed.into());
    }
    let network = Network::of(context.client);
    let counted = state.limits.hand_offs.count(&network).await;
    counted.map_err(too_many_requests)?;
    let parent = Parent::of(&state, &headers).await?;
    let nonce = Sha256::digest(secret).into();
    let page = Page {
        frame: Layout::new(&state.platform.origin),
        script: SCRIPT,
        game: page_metadata::title(&game),
        to: game.origin.clone(),
        code: parent.code(&state, &game, nonce).await?,
        state: wanted.to_owned(),
        address: format!("{}/", game.origin),
    };
    let mut response = page::render_opened(&page);
    if let Some(cookie) = parent.cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Returns the page's script.
pub async fn script() -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/javascript; charset=utf-8"),
        ),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=300"),
        ),
    ];
    (headers, include_str!("../../../../www/auth/frame.js")).into_response()
}
