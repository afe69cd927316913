//! `POST {game}/__platform/token`, on the address of a game that is apart: exchanges the game's own
//! cookie for a game token, as `POST {auth_url}/token` does for other games.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;

use super::guest::{self, First, Made};
use super::token::{self, Counting, Granted, IGNORED_BODY_BYTES, token_answer, too_many_guests};
use crate::auth::AuthState;
use crate::auth::game_visits::{Held, OwnPage};
use crate::clock::Millis;
use crate::domain::errors::chain;
use crate::domain::game_session::{BLANK_MILLIS, GameSession, GameSessionHash, GameSessionSecret};
use crate::domain::session::{RENEW_MILLIS, Session, SessionSecret};
use crate::games::catalogue::Game;
use crate::games::takedown;
use crate::web::api_error::ApiError;
use crate::web::body;
use crate::web::client_address::Network;
use crate::web::cookies;
use crate::web::request_context::Context;

/// Responds to `POST /__platform/token`. A visitor without a usable session of the game becomes a
/// guest of this game alone.
///
/// # Errors
/// `not-found`, `unknown-origin`, `project-disabled`, `invalid-request`, `session-expired`,
/// `account-suspended`, `guest-limit-reached`; errors of the store.
pub async fn handle(
    State(state): State<Arc<AuthState>>,
    Extension(game): Extension<Arc<Game>>,
    context: Context,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    request_body: Body,
) -> Result<Response, ApiError> {
    let page = OwnPage::of(&game, &headers, query.as_deref())?;
    if game.taken_down {
        return Err(takedown::refusal());
    }
    body::read(request_body, IGNORED_BODY_BYTES).await?;
    let visit = Visit {
        state: &state,
        page,
        headers: &headers,
        network: Network::of(context.client),
        now: state.platform.clock.now(),
    };
    let embedding = visit.page.embedding;
    match Held::of(&state, &game, (&headers, embedding)).await? {
        Held::Child(secret, found) => visit.child(secret, *found).await,
        Held::Lone(secret, session) => visit.lone(secret, &session).await,
        held @ (Held::Nothing | Held::Unknown(_)) => visit.new_guest(held.swept(&game)).await,
    }
}

/// A request for a token.
struct Visit<'request> {
    state: &'request AuthState,
    page: OwnPage<'request>,
    headers: &'request HeaderMap,
    network: Network,
    now: Millis,
}

impl Visit<'_> {
    /// Responds to a session that comes from one at the auth service.
    async fn child(
        &self,
        secret: GameSessionSecret,
        found: GameSession,
    ) -> Result<Response, ApiError> {
        let was_blank = found.session.is_none();
        let session = match found.session {
            Some(session) => session,
            None => {
                if self.now - found.used_at >= BLANK_MILLIS / 2 {
                    // Otherwise it might be swept before it has a player.
                    touch(self.state, &found.hash, self.now).await;
                }
                let first = (found.player, found.parent);
                match guest::make_first(self.state, self.network, first).await? {
                    First::TooFast(wait) => return Ok(too_many_guests(wait)),
                    First::Session(session) => *session,
                    // Another player has come to be with this id.
                    First::Taken => return self.new_guest(None).await,
                }
            }
        };
        match self.grant(&session).await? {
            Granted::Stranger => self.new_guest(None).await,
            Granted::Player { renewed, standing } => {
                let is_due = self.now - found.used_at >= RENEW_MILLIS;
                if was_blank || is_due || renewed {
                    touch(self.state, &found.hash, self.now).await;
                }
                let cookie = (is_due || renewed).then(|| self.cookie(&secret));
                self.answer(&session, standing, cookie)
            }
        }
    }

    /// Responds to the session of a guest who plays this game alone.
    async fn lone(
        &self,
        secret: GameSessionSecret,
        session: &Session,
    ) -> Result<Response, ApiError> {
        match self.grant(session).await? {
            Granted::Stranger => self.new_guest(None).await,
            Granted::Player { renewed, standing } => {
                let cookie = renewed.then(|| self.cookie(&secret));
                self.answer(session, standing, cookie)
            }
        }
    }

    async fn grant(&self, session: &Session) -> Result<Granted, ApiError> {
        let audience = &self.page.caller.audience;
        token::grant(self.state, audience, self.headers, (session, self.now)).await
    }

    /// Creates a guest who plays this game alone, derived from a cookie without a session if there
    /// is one.
    async fn new_guest(&self, held: Option<SessionSecret>) -> Result<Response, ApiError> {
        let secret = GameSessionSecret::generate(&*self.state.platform.entropy);
        let audience = &self.page.caller.audience;
        let fresh = secret.lone_session(audience);
        match guest::make(self.state, audience, self.network, (held, fresh)).await? {
            Made::TooFast(wait) => Ok(too_many_guests(wait)),
            Made::Guest(player, session, standing) => {
                token::note_game(self.state, &player, audience).await;
                let whose = (&player, session.hash(), standing);
                let cookie = Some(self.cookie(&secret));
                token_answer(self.state, self.page.caller, whose, self.now, cookie)
            }
        }
    }

    fn answer(
        &self,
        session: &Session,
        standing: Counting,
        cookie: Option<HeaderValue>,
    ) -> Result<Response, ApiError> {
        let whose = (&session.player, session.hash, standing);
        token_answer(self.state, self.page.caller, whose, self.now, cookie)
    }

    fn cookie(&self, secret: &GameSessionSecret) -> HeaderValue {
        let secure = self.state.platform.origin.is_secure();
        cookies::set_game(secret, secure, self.page.embedding)
    }
}

/// Records that a session of a game is used. If this fails, the player still gets a token.
async fn touch(state: &AuthState, hash: &GameSessionHash, now: Millis) {
    if let Err(error) = state.platform.store.touch_game_session(hash, now).await {
        let error = chain(&error);
        tracing::warn!(error, "the use of a game's session could not be stored");
    }
}

/// Responds to `POST /__platform/sign-out`: ends the session of the game, and returns the code with
/// which the auth service ends the session from which it comes, as JSON `{"code"}`; the code is null
/// if there is none. A suspended player's browser keeps its session: without it, the player would
/// become a new guest.
///
/// # Errors
/// `not-found`, `unknown-origin`, `invalid-request`; errors of the store.
pub async fn sign_out(
    State(state): State<Arc<AuthState>>,
    Extension(game): Extension<Arc<Game>>,
    context: Context,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    request_body: Body,
) -> Result<Response, ApiError> {
    let page = OwnPage::of(&game, &headers, query.as_deref())?;
    body::read(request_body, IGNORED_BODY_BYTES).await?;
    let (store, now) = (&state.platform.store, state.platform.clock.now());
    let held = Held::of(&state, &game, (&headers, page.embedding)).await?;
    let is_suspended = held.is_suspended(now);
    let mut code = None;
    match held {
        // Nothing ends, also not at the auth service.
        Held::Child(..) if is_suspended => {}
        Held::Child(_, found) => {
            code = Some(super::hand_off::code_to_sign_out(&state, &game, &found, now).await?);
            store.end_game_session(&found.hash).await?;
        }
        Held::Lone(_, session) => {
            store.end_session(&session.hash, context.own(), now).await?;
        }
        Held::Nothing | Held::Unknown(_) => {}
    }
    let json = serde_json::json!({ "code": code }).to_string();
    let mut response = Response::new(Body::from(json));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if !is_suspended {
        let secure = state.platform.origin.is_secure();
        let cleared = cookies::clear_game(secure, page.embedding);
        headers.append(header::SET_COOKIE, cleared);
        // The next visit finds whoever the auth service knows then.
        headers.append(header::SET_COOKIE, cookies::clear_tried(secure));
    }
    Ok(response)
}
