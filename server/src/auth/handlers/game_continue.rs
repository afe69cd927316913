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
use crate::auth::hand_off::{self, CODE, STATE, TO, opens_tab};
use crate::clock::Millis;
use crate::domain::errors::chain;
use crate::domain::game_session::{GameSession, GameSessionSecret, HandOffCode, Redemption};
use crate::domain::session::SessionStatus;
use crate::games::catalogue::Game;
use crate::store::StoreError;
use crate::web::api_error::ApiError;
use crate::web::cookies::{self, Embedding, Pause, decode};
use crate::web::form::Form;
use crate::web::hand_off_state::{HandOffState, is_path};
use crate::web::json;
use crate::web::redirects::see_other;

/// The maximum size of the body of a redemption in bytes.
const BODY_BYTES: usize = 1_024;

/// Responds to `GET /__platform/continue`: with a code and a state, redeems the code; with `to`, a
/// path of this game, begins a hand-off to it, as after a sign-in. Every way ends at a page of the
/// game.
///
/// # Errors
/// `not-found` for a game that is not apart; `invalid-request`.
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
        if !opens_tab(&headers) {
            return see_other(&format!("{}{to}", game.origin));
        }
        let mut response = hand_off::begin(&state, &game, to.to_owned(), false)?;
        // Any site can lead a browser here, again and again: then only the last time counts.
        let secure = state.platform.origin.is_secure();
        for cookie in cookies::clear_many_nonces(&headers, secure) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        return Ok(response);
    }
    let wanted = query.field(STATE)?.and_then(HandOffState::parse);
    let wanted = wanted.ok_or(ProblemCode::InvalidRequest)?;
    let secure = state.platform.origin.is_secure();
    if wanted.is_of(&headers, secure) != Some(true) {
        return without_nonce(&state, &game, &wanted, &headers).await;
    }
    let arrived = match query.field(CODE)?.and_then(decode) {
        Some(code) => arrive(&state, &game, (code, &wanted), &headers).await,
        // The auth service could not say who it is.
        None => Ok(Arrived::Without(Some(Pause::Minute))),
    };
    let arrived = arrived.unwrap_or_else(|error| {
        let error = chain(&error);
        tracing::warn!(error, "a visitor of a game could not be taken over");
        Arrived::Without(Some(Pause::Minute))
    });
    let page = wanted.page(&game.origin);
    let (mut response, pause) = match arrived {
        Arrived::Again => (
            hand_off::begin(&state, &game, wanted.path.clone(), true)?,
            None,
        ),
        Arrived::Without(pause) => (see_other(&page)?, pause),
        Arrived::With { session, pause } => {
            let mut response = see_other(&page)?;
            let cookie = cookies::set_game(&session, secure, Embedding::Top);
            response.headers_mut().append(header::SET_COOKIE, cookie);
            (response, pause)
        }
    };
    let set = response.headers_mut();
    set.append(header::SET_COOKIE, wanted.clear_nonce(secure));
    if let Some(pause) = pause {
        set.append(header::SET_COOKIE, cookies::set_tried(secure, pause));
    } else if cookies::was_tried(&headers, secure) {
        set.append(header::SET_COOKIE, cookies::clear_tried(secure));
    }
    Ok(response)
}

/// What comes of a browser's return from the auth service. A pause keeps the next page from
/// beginning the next hand-off.
enum Arrived {
    /// It has got a session of the game.
    With {
        session: GameSessionSecret,
        pause: Option<Pause>,
    },
    /// It stays as it was.
    Without(Option<Pause>),
    /// It must go over the auth service once more.
    Again,
}

/// What a browser does with a session that it could have.
enum Choice {
    Take,
    Keep(Option<Pause>),
    AskAgain,
}

/// Redeems a code for a browser with a nonce.
async fn arrive(
    state: &AuthState,
    game: &Game,
    (code, wanted): ([u8; 32], &HandOffState),
    headers: &HeaderMap,
) -> Result<Arrived, StoreError> {
    let (store, now) = (&state.platform.store, state.platform.clock.now());
    let before = Held::of(state, game, (headers, Embedding::Top)).await?;
    let Some(session) = redeem(state, game, code, wanted.nonce).await? else {
        return Ok(Arrived::Without(Some(Pause::Hour)));
    };
    let hash = session.hash();
    let Some(found) = store.lookup_game_session(&hash).await? else {
        return Ok(Arrived::Without(Some(Pause::Minute)));
    };
    let has_another = wanted.has_another(headers, state.platform.origin.is_secure());
    match choose(&before, &found, (wanted.is_again, has_another), now) {
        // What was redeemed stays: by it, the auth service still knows the blank session.
        Choice::AskAgain => Ok(Arrived::Again),
        Choice::Keep(pause) => {
            store.end_game_session(&hash).await?;
            Ok(Arrived::Without(pause))
        }
        Choice::Take => {
            if let Held::Child(_, old) = before
                && old.parent != found.parent
            {
                store.end_game_session(&old.hash).await?;
            }
            let held = Held::Child(session.clone(), Box::new(found));
            // Also the player of a blank session may play: the first token makes it.
            let pause = (!held.is_usable(now)).then_some(Pause::Hour);
            Ok(Arrived::With { session, pause })
        }
    }
}

/// Decides what a browser that had the session `before` does with one that it could have, `found`.
///
/// Two tabs that are opened together by a new visitor get two blank sessions at the auth service, of
/// which the browser keeps one. Each tab sees the other's nonce or the game's session that the other
/// got, and goes once more: now both have the session that the browser has kept.
fn choose(
    before: &Held,
    found: &GameSession,
    (is_again, has_another): (bool, bool),
    now: Millis,
) -> Choice {
    let is_usable = before.is_usable(now);
    let child = match before {
        Held::Child(_, child) if is_usable => Some(child),
        _ => None,
    };
    match child {
        // Another tab was faster, and its page may use that session at this moment.
        Some(child) if child.parent == found.parent && !child.wants_hand_off(now) => {
            Choice::Keep(None)
        }
        Some(child) if would_lose_player(child, found, now) => Choice::Keep(Some(Pause::Hour)),
        _ if found.session.is_some() => Choice::Take,
        // The auth service knows no player.
        _ if !is_again && (has_another || child.is_some()) => Choice::AskAgain,
        Some(_) => Choice::Keep(Some(Pause::Month)),
        None if is_usable => Choice::Keep(Some(Pause::Hour)),
        None => Choice::Take,
    }
}

/// Whether a game would forget its player for another one whom the browser has become without its
/// knowledge: the auth service's cookie was lost, and another game made the next guest. Who has
/// signed in wants to be that account everywhere.
fn would_lose_player(child: &GameSession, found: &GameSession, now: Millis) -> bool {
    let (Some(old), Some(new)) = (&child.session, &found.session) else {
        return false;
    };
    let has_signed_in =
        !new.player.is_anonymous() && matches!(new.status(now), SessionStatus::Good);
    old.player.id != new.player.id && !has_signed_in
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
    let held = Held::of(state, game, (headers, Embedding::Top)).await;
    let address = match held {
        Ok(held) if held.is_usable(state.platform.clock.now()) => wanted.page(&game.origin),
        Ok(_) | Err(_) => wanted.marked_page(&game.origin),
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
