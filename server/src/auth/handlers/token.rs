//! `POST {auth_url}/token`: exchanges the session cookie for a game token. A visitor without a
//! valid cookie becomes a guest in the same response.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use platform_protocol::claims::{GameTokenClaims, PrincipalKind};
use platform_protocol::names::{CONSOLE_AUDIENCE, Environment, label_of_audience};
use platform_protocol::problem::ProblemCode;
use platform_protocol::token::{BEARER, TokenAnswer};

use super::browser_session;
use super::guest::{self, Made};
use super::page_visitor::note_browser;
use crate::auth::AuthState;
use crate::clock::Millis;
use crate::domain::console_token::{self, Hold};
use crate::domain::player::Player;
use crate::domain::session::{Session, SessionHash, SessionSecret, SessionStatus};
use crate::domain::token_id::new_token_id;
use crate::games::takedown;
use crate::platform::metrics::TokenKind;
use crate::web::api_error::ApiError;
use crate::web::body;
use crate::web::client_address::Network;
use crate::web::cookies;
use crate::web::cors::{self, AllowedOrigin};
use crate::web::foreign_cookies;
use crate::web::limiter::retry_after;
use crate::web::request_context::Context;

/// The endpoint takes no body. Bodies up to this number of bytes are accepted and ignored.
pub(super) const IGNORED_BODY_BYTES: usize = 1_024;
/// The query of a page that only wants to know who visits it: a visitor without a session gets no
/// guest and no token.
const NO_GUEST: &str = "guest=no";

/// Responds to `POST /token`.
///
/// # Errors
/// `unknown-origin`, `project-disabled`, `invalid-request`, `session-expired`, `account-suspended`,
/// `guest-limit-reached`.
pub async fn handle(
    State(state): State<Arc<AuthState>>,
    caller: AllowedOrigin,
    context: Context,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    request_body: Body,
) -> Result<Response, ApiError> {
    let may_be_new = query.as_deref() != Some(NO_GUEST);
    body::read(request_body, IGNORED_BODY_BYTES).await?;
    let now = state.platform.clock.now();
    let secure = state.platform.origin.is_secure();
    if caller.taken_down {
        return Err(takedown::refusal());
    }

    let held = browser_session::secret(&state, &headers).await?;
    if held.is_none()
        && foreign_cookies::are_many(&headers, secure)
        && !cookies::was_healed(&headers, secure)
    {
        return Err(pushed_out(secure));
    }
    let session = match &held {
        Some(secret) => state.platform.store.lookup_session(&secret.hash()).await?,
        None => None,
    };
    let (session, secret) = match (session, held) {
        (Some(session), Some(secret)) => (session, secret),
        _ if !may_be_new => return Ok(nobody()),
        (_, held) => return new_guest(&state, &caller, &context, held).await,
    };
    match grant(&state, &caller.audience, &headers, (&session, now)).await? {
        // The session has ended, so its secret leads to no guest any more.
        Granted::Stranger if !may_be_new => Ok(nobody()),
        Granted::Stranger => new_guest(&state, &caller, &context, None).await,
        Granted::Player { renewed, standing } => {
            let cookie = renewed.then(|| cookies::set_session(&secret, secure));
            let whose = (&session.player, session.hash, standing);
            token_answer(&state, &caller, whose, now, cookie)
        }
    }
}

/// Whether the player of a token counts: is among the players of a game, now and over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// It does.
    Counts,
    /// It does not: a guest with an address that holds as many guests as it may.
    DoesNotCount,
    /// It does not yet: a guest whom this response begins, with a cookie that is yet to come back.
    New,
}

/// What a session gives.
pub(super) enum Granted {
    /// It counts as no session.
    Stranger,
    /// Its player gets a token.
    Player {
        /// Whether its use was stored, so that the cookie is to be set again.
        renewed: bool,
        /// Whether the player counts.
        standing: Counting,
    },
}

/// Decides whether the player of a session gets a token for `audience`, and records its use.
///
/// # Errors
/// `session-expired`, `account-suspended`.
pub(super) async fn grant(
    state: &AuthState,
    audience: &str,
    headers: &HeaderMap,
    (session, now): (&Session, Millis),
) -> Result<Granted, ApiError> {
    match session.status(now) {
        SessionStatus::Stranger => Ok(Granted::Stranger),
        SessionStatus::Expired => Err(ProblemCode::SessionExpired.into()),
        SessionStatus::Leaving(_) => Err(ApiError::new(ProblemCode::SessionExpired).with_detail(
            "You asked to be deleted. Until that happens, you can take it back on the sign-in page.",
        )),
        SessionStatus::Suspended(reason) => Err(suspended(reason)),
        SessionStatus::Good => {
            let wants_renewal = session.wants_renewal(now);
            // None of them is needed for the answer, so together they may take as long as one.
            let (standing, _noted, _game, renewed) = tokio::join!(
                guest::see(state, &session.player, now),
                note_browser(state, headers, session, wants_renewal),
                note_game(state, &session.player, audience),
                async { wants_renewal && renew(state, &session.hash, now).await },
            );
            Ok(Granted::Player { renewed, standing })
        }
    }
}

/// Notes that a player gets a token of a game: if the player is deleted, the game's webhook learns of it.
/// If this fails, the player still gets the token, and the next one is noted.
pub(super) async fn note_game(state: &AuthState, player: &Player, audience: &str) {
    // The console is no game.
    let Some(label) = label_of_audience(audience) else {
        return;
    };
    let (_, slug) = Environment::split_label(label);
    if let Err(error) = state.platform.store.note_token(player.id, slug).await {
        let error = crate::domain::errors::chain(&error);
        tracing::warn!(error, "the game of a token could not be noted");
    }
}

/// Responds to a page that wants a token only for a player who exists.
fn nobody() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Responds to `OPTIONS` on the paths that games' pages request with the player's cookie.
pub async fn preflight(_: AllowedOrigin) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    response.headers_mut().extend(cors::preflight_headers());
    response
}

pub(super) fn suspended(reason: Option<String>) -> ApiError {
    ApiError::suspended(reason)
}

/// Other pages have set so many cookies that the player's own may have been evicted. The player
/// would not notice a new guest, so they are informed once. The response expires the cookies, and
/// the next request is handled normally.
fn pushed_out(secure: bool) -> ApiError {
    ApiError::new(ProblemCode::InvalidRequest)
        .with_header(header::SET_COOKIE, cookies::set_healed(secure))
        .with_detail(
            "Other pages have stored so many cookies for this site that your browser may have \
             dropped your session. These cookies are now being removed. Please load the page \
             again; if you have an account, sign in to get the same player back.",
        )
}

/// A renewal is for the next 400 days, not for this response: if it fails, the player still gets a
/// token.
pub(super) async fn renew(state: &AuthState, session: &SessionHash, now: Millis) -> bool {
    match state.platform.store.renew_session(session, now).await {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(
                error = crate::domain::errors::chain(&error),
                "a session was not renewed"
            );
            false
        }
    }
}

/// Creates a guest, derived from the cookie without a session if there is one.
async fn new_guest(
    state: &AuthState,
    caller: &AllowedOrigin,
    context: &Context,
    held: Option<SessionSecret>,
) -> Result<Response, ApiError> {
    let network = Network::of(context.client);
    let fresh = SessionSecret::generate(&*state.platform.entropy);
    match guest::make(state, &caller.audience, network, (held, fresh)).await? {
        Made::TooFast(wait) => Ok(too_many_guests(wait)),
        Made::Guest(player, secret, standing) => {
            note_game(state, &player, &caller.audience).await;
            let cookie = cookies::set_session(&secret, state.platform.origin.is_secure());
            let now = state.platform.clock.now();
            let whose = (&player, secret.hash(), standing);
            token_answer(state, caller, whose, now, Some(cookie))
        }
    }
}

/// The only 429 without a problem body: the player is not at fault, and the runtime only has to
/// repeat the request.
pub(super) fn too_many_guests(wait: Duration) -> Response {
    let mut response = (
        StatusCode::TOO_MANY_REQUESTS,
        "Too many new guests. Try again in a moment.\n",
    )
        .into_response();
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, retry_after(wait));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns a player's token for `audience`, which is valid for `life` seconds.
///
/// # Errors
/// Returns an error if it cannot be signed.
fn mint(
    state: &AuthState,
    (player, counts): (&Player, bool),
    audience: &Arc<str>,
    life: u64,
    now: Millis,
) -> Result<String, ApiError> {
    let mut claims = claims(state, player, audience, life, now);
    claims.jti = new_token_id(&*state.platform.entropy, counts).to_string();
    let token = state.tokens.sign(player.id, Arc::clone(audience), claims);
    let token = token.map_err(|error| ApiError::internal(&error))?;
    state.platform.metrics.token(TokenKind::Game);
    Ok(token)
}

/// Returns a player's token for the platform's own API, which ends with `hold`, and its lifetime in
/// seconds.
///
/// # Errors
/// Returns an error if it cannot be signed.
pub(super) fn mint_console(
    state: &AuthState,
    player: &Player,
    hold: Hold,
    now: Millis,
) -> Result<(String, u64), ApiError> {
    let life = console_token::life(state.platform.config.token_seconds);
    let claims = hold.claims(claims(state, player, CONSOLE_AUDIENCE, life, now));
    let token = state.keys.sign(&claims);
    let token = token.map_err(|error| ApiError::internal(&error))?;
    state.platform.metrics.token(TokenKind::Console);
    Ok((token, life))
}

/// Returns the claims that every token has about its player.
fn claims(
    state: &AuthState,
    player: &Player,
    audience: &str,
    life: u64,
    now: Millis,
) -> GameTokenClaims {
    let issued = u64::try_from(now / 1_000).unwrap_or(0);
    GameTokenClaims {
        sub: player.id.to_string(),
        username: player.username.clone(),
        aud: audience.to_owned(),
        iss: state.platform.auth_url.clone(),
        is_anon: player.is_anonymous(),
        principal_kind: PrincipalKind::Human,
        exp: issued + life,
        iat: issued,
        jti: state.platform.entropy.uuid_v4().to_string(),
    }
}

/// Returns the token of a player as the response to a caller, and sets `cookie`.
///
/// # Errors
/// Returns an error if the token cannot be signed.
pub(super) fn token_answer(
    state: &AuthState,
    caller: &AllowedOrigin,
    (player, session, standing): (&Player, SessionHash, Counting),
    now: Millis,
    cookie: Option<HeaderValue>,
) -> Result<Response, ApiError> {
    let (access_token, life) = if &*caller.audience == CONSOLE_AUDIENCE {
        mint_console(state, player, Hold::Session(session), now)?
    } else {
        let life = state.platform.config.token_seconds;
        let counts = standing == Counting::Counts;
        let token = mint(state, (player, counts), &caller.audience, life, now)?;
        (token, life)
    };
    let answer = TokenAnswer {
        access_token,
        token_type: BEARER.to_owned(),
        expires_in: life,
        is_new: standing == Counting::New,
    };
    let mut response = json_answer(&answer)?;
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Returns a token as a response that no cache stores.
pub(super) fn json_answer(answer: &TokenAnswer) -> Result<Response, ApiError> {
    let json = serde_json::to_vec(answer).map_err(|error| ApiError::internal(&error))?;
    let mut response = Response::new(Body::from(json));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
