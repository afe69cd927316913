//! `{game}/__platform/continue`, on the address of a game that is apart: where a browser comes back
//! from the auth service with a code, and gets a session of the game for it.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use platform_protocol::problem::ProblemCode;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::auth::AuthState;
use crate::auth::game_visits::{Held, OwnPage};
use crate::auth::hand_off::{self, CODE, HandOffState, STATE, TO, is_path, opens_tab};
use crate::domain::game_session::{GameSessionSecret, HandOffCode, Redemption};
use crate::games::catalogue::Game;
use crate::store::StoreError;
use crate::web::api_error::ApiError;
use crate::web::cookies::{self, Embedding, decode};
use crate::web::form::Form;
use crate::web::json;
use crate::web::redirects::see_other;

/// The maximum size of the body of a redemption in bytes.
const BODY_BYTES: usize = 1_024;

/// Responds to `GET /__platform/continue`: with a code and a state, redeems the code; with `to`, a
/// path of this game, begins a hand-off to it, as after a sign-in. Every way ends at a page of the
/// game.
///
/// # Errors
/// `not-found` for a game that is not apart; `invalid-request`; errors of the store.
pub async fn handle(
    State(state): State<Arc<AuthState>>,
    Extension(game): Extension<Arc<Game>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if !game.is_apart || game.deployment.is_none() {
        return Err(ProblemCode::NotFound.into());
    }
    let query = Form::of_query(query.as_deref());
    if let Some(to) = query.field(TO)? {
        if !is_path(to) {
            return Err(ProblemCode::InvalidRequest.into());
        }
        return if opens_tab(&headers) {
            hand_off::begin(&state, &game, to.to_owned())
        } else {
            see_other(&format!("{}{to}", game.origin))
        };
    }
    let wanted = query.field(STATE)?.and_then(HandOffState::parse);
    let wanted = wanted.ok_or(ProblemCode::InvalidRequest)?;
    let secure = state.platform.origin.is_secure();
    if wanted.is_of(&headers, secure) != Some(true) {
        return without_nonce(&state, &game, &wanted, &headers).await;
    }
    let before = Held::of(&state, &game, (&headers, Embedding::Top)).await?;
    let arrived = match query.field(CODE)?.and_then(decode) {
        Some(code) => arrive(&state, &game, (code, wanted.nonce), before).await?,
        None => None,
    };
    let mut response = see_other(&wanted.page(&game))?;
    let set = response.headers_mut();
    set.append(header::SET_COOKIE, wanted.clear_nonce(secure));
    if let Some(Arrived { session, .. }) = &arrived {
        let cookie = cookies::set_game(session, secure, Embedding::Top);
        set.append(header::SET_COOKIE, cookie);
    }
    // Without a player, the next page would begin the next hand-off.
    if !arrived.is_some_and(|arrived| arrived.has_player) {
        set.append(header::SET_COOKIE, cookies::set_tried(secure));
    }
    Ok(response)
}

/// A session of the game that a browser has got.
struct Arrived {
    session: GameSessionSecret,
    /// Whether its player may play. Also of a blank one, whose player comes with the first token.
    has_player: bool,
}

/// Redeems a code for a browser that had the session `before`. Returns nothing if the code is not
/// valid, or the auth service knows no player while the game knows a guest of its own.
async fn arrive(
    state: &AuthState,
    game: &Game,
    (code, nonce): ([u8; 32], [u8; 32]),
    before: Held,
) -> Result<Option<Arrived>, StoreError> {
    let Some(session) = redeem(state, game, code, nonce).await? else {
        return Ok(None);
    };
    let (store, now) = (&state.platform.store, state.platform.clock.now());
    let hash = session.hash();
    let Some(found) = store.lookup_game_session(&hash).await? else {
        return Ok(None);
    };
    if found.session.is_none() && matches!(before, Held::Lone(..)) && before.is_usable(now) {
        store.end_game_session(&hash).await?;
        return Ok(None);
    }
    if let Held::Child(_, old) = before {
        store.end_game_session(&old.hash).await?;
    }
    let held = Held::Child(session.clone(), Box::new(found));
    let has_player = held.is_usable(now);
    Ok(Some(Arrived {
        session,
        has_player,
    }))
}

/// Responds to a browser that brings no nonce: it has no cookies, or was never sent away. It must
/// not be sent away again, and nothing is stored in it: any page may lead a browser here.
async fn without_nonce(
    state: &AuthState,
    game: &Game,
    wanted: &HandOffState,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    // Somebody went back to this address, or opened it twice.
    let held = Held::of(state, game, (headers, Embedding::Top)).await?;
    let address = if held.is_usable(state.platform.clock.now()) {
        wanted.page(game)
    } else {
        wanted.marked_page(game)
    };
    see_other(&address)
}

/// Redeems a code. Returns the session of the game, if the code is valid.
async fn redeem(
    state: &AuthState,
    game: &Game,
    code: [u8; 32],
    nonce: [u8; 32],
) -> Result<Option<GameSessionSecret>, StoreError> {
    let session = GameSessionSecret::generate(&*state.platform.entropy);
    let redemption = Redemption {
        code: HandOffCode::from_bytes(code).hash(),
        game: game.audience.to_string(),
        origin: game.origin.clone(),
        state: nonce,
        session: session.hash(),
        now: state.platform.clock.now(),
    };
    let redeemed = state.platform.store.redeem_hand_off(redemption).await?;
    Ok(redeemed.then_some(session))
}

/// What the page in a frame got from the page of the auth service that it opened.
#[derive(Debug, Deserialize)]
struct FromTab {
    code: String,
    state: String,
}

/// Responds to `POST /__platform/continue` with `{"code","state"}`, from the game in a frame of
/// another site: 204, and the session of the game in that site's frames.
///
/// # Errors
/// `not-found`, `unknown-origin`, `unsupported-media-type`, `payload-too-large`, `invalid-request`;
/// `not-allowed` if the code is not valid; errors of the store.
pub async fn redeem_in_frame(
    State(state): State<Arc<AuthState>>,
    Extension(game): Extension<Arc<Game>>,
    headers: HeaderMap,
    request_body: Body,
) -> Result<Response, ApiError> {
    OwnPage::of(&game, &headers, None)?;
    // Browsers name the origin of every `POST`.
    if !headers.contains_key(header::ORIGIN) {
        return Err(ProblemCode::UnknownOrigin.into());
    }
    let bytes = json::read(&headers, request_body, BODY_BYTES).await?;
    let from_tab: FromTab = json::parse(&bytes)?;
    let code = decode(&from_tab.code).ok_or(ProblemCode::InvalidRequest)?;
    let wanted = decode(&from_tab.state).ok_or(ProblemCode::InvalidRequest)?;
    let nonce: [u8; 32] = Sha256::digest(wanted).into();
    let Some(session) = redeem(&state, &game, code, nonce).await? else {
        return Err(ApiError::new(ProblemCode::NotAllowed)
            .with_detail("This code is not valid any more. Please open the sign-in page again."));
    };
    let secure = state.platform.origin.is_secure();
    let mut response = json::nothing();
    let cookie = cookies::set_game(&session, secure, Embedding::Framed);
    response.headers_mut().append(header::SET_COOKIE, cookie);
    Ok(response)
}
