//! `GET {auth_url}/continue`: hands a visitor to a game that is apart, which has sent the browser
//! here. A visitor who is new gets a blank session: the first token in any game makes its guest.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;
use url::form_urlencoded;
use uuid::Uuid;

use super::token::renew;
use super::{browser_session, guest};
use crate::auth::AuthState;
use crate::auth::hand_off::{CODE, STATE, TO, opens_tab};
use crate::clock::Millis;
use crate::domain::game_session::{GameSession, HandOff, HandOffCode, Purpose};
use crate::domain::session::{RENEW_MILLIS, SessionHash, SessionSecret, SessionStatus};
use crate::games::catalogue::Game;
use crate::store::StoreError;
use crate::web::api_error::ApiError;
use crate::web::client_address::Network;
use crate::web::cookies;
use crate::web::form::Form;
use crate::web::hand_off_state::HandOffState;
use crate::web::redirects::see_other;
use crate::web::request_context::Context;

/// The visitor of the auth service.
pub(super) struct Parent {
    /// The session.
    pub(super) session: SessionHash,
    /// Its player, or the guest-to-be.
    pub(super) player: Uuid,
    /// The cookie to set, if it is new or old enough to be set again.
    pub(super) cookie: Option<HeaderValue>,
}

impl Parent {
    /// Returns the session of a browser, or a blank one that its cookie then is.
    ///
    /// # Errors
    /// `invalid-request` if the browser's own cookie cannot be determined; errors of the store.
    pub(super) async fn of(state: &AuthState, headers: &HeaderMap) -> Result<Self, ApiError> {
        let now = state.platform.clock.now();
        let Some(secret) = browser_session::secret(state, headers).await? else {
            return Ok(Self::blank(state));
        };
        let hash = secret.hash();
        let store = &state.platform.store;
        let mut session = store.lookup_session(&hash).await?;
        if session.is_none() {
            if let Some(player) = store.find_blank_session(&hash).await? {
                return Ok(Self {
                    session: hash,
                    player,
                    cookie: None,
                });
            }
            // A first token may just have made its guest.
            session = store.lookup_session(&hash).await?;
        }
        let Some(session) = session else {
            // Clients must not choose their secret, but the guest whose row was swept comes back.
            let returning = guest::returning(state, &secret, now).await?;
            return Ok(Self::blank_for(state, returning));
        };
        let renewed = match session.status(now) {
            SessionStatus::Stranger => return Ok(Self::blank(state)),
            SessionStatus::Good => {
                guest::see(state, &session.player, now).await;
                if session.wants_renewal(now) {
                    renew(state, &hash, now).await;
                }
                // Tokens of games renew the session as well, but not the cookie.
                now - session.created_at >= RENEW_MILLIS
            }
            SessionStatus::Expired | SessionStatus::Leaving(_) | SessionStatus::Suspended(_) => {
                false
            }
        };
        let secure = state.platform.origin.is_secure();
        Ok(Self {
            session: hash,
            player: session.player.id,
            cookie: renewed.then(|| cookies::set_session(&secret, secure)),
        })
    }

    fn blank(state: &AuthState) -> Self {
        Self::blank_for(state, None)
    }

    /// Returns a blank session whose guest-to-be is `returning`, or a new one.
    fn blank_for(state: &AuthState, returning: Option<Uuid>) -> Self {
        let secret = SessionSecret::generate(&*state.platform.entropy);
        let secure = state.platform.origin.is_secure();
        Self {
            session: secret.hash(),
            player: returning.unwrap_or_else(|| secret.guest_id()),
            cookie: Some(cookies::set_session(&secret, secure)),
        }
    }

    /// Returns a code with which this game gets a session of this visitor, if the browser has what
    /// `state` is the SHA-256 of.
    ///
    /// # Errors
    /// Errors of the store.
    pub(super) async fn code(
        &self,
        state: &AuthState,
        game: &Game,
        nonce: [u8; 32],
    ) -> Result<String, StoreError> {
        let now = state.platform.clock.now();
        let whose = (self.player, self.session);
        add_code(state, game, (Purpose::Play, nonce), whose, now).await
    }
}

/// Returns a code with which a browser ends the session from which a game's session comes.
///
/// # Errors
/// Errors of the store.
pub(super) async fn code_to_sign_out(
    state: &AuthState,
    game: &Game,
    found: &GameSession,
    now: Millis,
) -> Result<String, StoreError> {
    let whose = (found.player, found.parent);
    add_code(state, game, (Purpose::SignOut, [0; 32]), whose, now).await
}

async fn add_code(
    state: &AuthState,
    game: &Game,
    (purpose, nonce): (Purpose, [u8; 32]),
    (player, parent): (Uuid, SessionHash),
    now: Millis,
) -> Result<String, StoreError> {
    let code = HandOffCode::generate(&*state.platform.entropy);
    let hand_off = HandOff {
        code: code.hash(),
        purpose,
        player,
        parent,
        game: game.audience.to_string(),
        origin: game.origin.clone(),
        state: nonce,
        made_at: now,
    };
    state.platform.store.add_hand_off(hand_off).await?;
    Ok(URL_SAFE_NO_PAD.encode(code.expose()))
}

/// Returns the game that is apart whose origin a query names.
///
/// # Errors
/// `invalid-request` if it is named twice; `invalid-redirect` if there is no such game.
pub(super) fn game_to(state: &AuthState, query: &Form) -> Result<Arc<Game>, ApiError> {
    let to = query.field(TO)?.unwrap_or_default();
    let game = state.games.catalogue.game_at(to);
    let game = game.filter(|game| game.is_apart && game.deployment.is_some() && !game.taken_down);
    game.ok_or_else(|| ProblemCode::InvalidRedirect.into())
}

async fn parent_with_code(
    state: &AuthState,
    headers: &HeaderMap,
    game: &Game,
    nonce: [u8; 32],
) -> Result<(Parent, String), ApiError> {
    let parent = Parent::of(state, headers).await?;
    let code = parent.code(state, game, nonce).await?;
    Ok((parent, code))
}

/// Responds to `GET /continue?to=<origin of the game>&state=<state>` with 303 to the game, with a
/// code. If there are too many of these from one network, or the visitor cannot be determined, the
/// code is left out, and the game is shown without its player.
///
/// # Errors
/// `invalid-redirect`, `invalid-request`, `not-allowed` for what is no navigation.
pub async fn handle(
    State(state): State<Arc<AuthState>>,
    context: Context,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let query = Form::of_query(query.as_deref());
    let game = game_to(&state, &query)?;
    let wanted = query.field(STATE)?.and_then(HandOffState::parse);
    let wanted = wanted.ok_or(ProblemCode::InvalidRequest)?;
    // Whoever sends no such headers gets there by its own means.
    if headers.contains_key("sec-fetch-dest") && !opens_tab(&headers) {
        return Err(ProblemCode::NotAllowed.into());
    }
    let (mut with_code, mut cookie) = (None, None);
    let network = Network::of(context.client);
    if state.limits.hand_offs.count(&network).await.is_ok() {
        match parent_with_code(&state, &headers, &game, wanted.nonce).await {
            Ok((parent, code)) => {
                with_code = Some(code);
                cookie = parent.cookie;
            }
            Err(refusal) => tracing::warn!(
                request_id = context.id.as_str(),
                cause = refusal.cause(),
                "a visitor could not be handed to a game"
            ),
        }
    }
    let back = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(with_code.map(|code| (CODE, code)))
        .append_pair(STATE, &wanted.text())
        .finish();
    let address = format!("{}{}?{back}", game.origin, paths::GAME_CONTINUE);
    let mut response = see_other(&address)?;
    if let Some(cookie) = cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}
