//! `{pane}/__platform/pane…`, on the address of a pane of the Build page: begins the pane's session,
//! and does for the game in it what the auth service does for others.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use platform_protocol::problem::ProblemCode;
use platform_protocol::token::{BEARER, TokenAnswer};
use url::{Url, form_urlencoded};

use super::token::{IGNORED_BODY_BYTES, json_answer};
use crate::auth::AuthState;
use crate::auth::panes::{self, Condition, PaneSession, SESSION_SECONDS, SLOW};
use crate::auth::redirect::REDIRECT;
use crate::games::GamesState;
use crate::games::panes::Pane;
use crate::web::api_error::ApiError;
use crate::web::body;
use crate::web::cookies::{self, Embedding};
use crate::web::cors::{AllowedOrigin, Origins, may_be_from};
use crate::web::json;

/// The maximum size of a session in bytes.
const SESSION_BYTES: usize = 2_048;

/// The console, the only origin that may begin a pane's session.
#[derive(Debug)]
pub struct ConsoleAlone(pub Arc<GamesState>);

impl Origins for ConsoleAlone {
    fn find(&self, origin: &str) -> Option<AllowedOrigin> {
        let console = self.0.platform.origin.to_string();
        (origin == console)
            .then(|| self.0.catalogue.caller(origin))
            .flatten()
    }
}

/// Responds to `POST /__platform/pane`: keeps the session in the body, which the project API
/// returned, in a cookie.
///
/// # Errors
/// `unknown-origin`, `payload-too-large`, `not-allowed`.
pub async fn begin(
    State(state): State<Arc<AuthState>>,
    Extension(pane): Extension<Pane>,
    _console: AllowedOrigin,
    request_body: Body,
) -> Result<Response, ApiError> {
    let bytes = body::read(request_body, SESSION_BYTES).await?;
    let session = std::str::from_utf8(&bytes).unwrap_or_default();
    PaneSession::open(&state.tokens, &pane.label, session).ok_or_else(|| {
        ApiError::new(ProblemCode::NotAllowed)
            .with_detail("This is no current session of this pane.")
    })?;
    let secure = state.platform.origin.is_secure();
    let embedding = match state.games.catalogue.is_apart() {
        true => Embedding::Framed,
        false => Embedding::Top,
    };
    let cookie = cookies::set_pane(session.to_owned(), secure, embedding, SESSION_SECONDS);
    let mut response = json::nothing();
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// Responds to `POST /__platform/pane/token` of the game in the pane.
///
/// # Errors
/// `unknown-origin`, `invalid-request`, `session-expired`, and what the condition wants; errors of
/// the store.
pub async fn token(
    State(state): State<Arc<AuthState>>,
    Extension(pane): Extension<Pane>,
    session: Option<Extension<PaneSession>>,
    headers: HeaderMap,
    request_body: Body,
) -> Result<Response, ApiError> {
    refuse_others(&pane, &headers)?;
    body::read(request_body, IGNORED_BODY_BYTES).await?;
    let Some(Extension(session)) = session else {
        return Err(ApiError::new(ProblemCode::SessionExpired)
            .with_detail("This pane's session has ended. Open the Build page again."));
    };
    if session.condition == Condition::Slow {
        panes::wait(SLOW).await;
    }
    // The session outlives the right of whoever opened the pane.
    if !session.opener.develops(&state, &pane.game.slug).await? {
        return Err(ApiError::new(ProblemCode::SessionExpired).with_detail(
            "Whoever opened this pane is signed out, or may no longer develop the project. Open \
             the Build page again.",
        ));
    }
    let now = state.platform.clock.now();
    let (access_token, life) = session.token(&state, &pane.game.slug, now)?;
    json_answer(&TokenAnswer {
        access_token,
        token_type: BEARER.to_owned(),
        expires_in: life,
        is_new: false,
    })
}

/// Responds to `POST /__platform/pane/sign-out`. The developer decides who plays in the pane, so
/// this ends nothing.
///
/// # Errors
/// `unknown-origin`, `invalid-request`.
pub async fn sign_out(
    Extension(pane): Extension<Pane>,
    headers: HeaderMap,
    request_body: Body,
) -> Result<Response, ApiError> {
    refuse_others(&pane, &headers)?;
    body::read(request_body, IGNORED_BODY_BYTES).await?;
    Ok(json::nothing())
}

/// Responds to `GET /__platform/pane/login` and `…/profile`: leads back to the game. The developer
/// decides who plays in the pane.
pub async fn back(Extension(pane): Extension<Pane>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let wanted = form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == REDIRECT)
        .and_then(|(_, address)| Url::parse(&address).ok())
        .filter(|address| address.origin().ascii_serialization() == pane.origin)
        .and_then(|address| HeaderValue::try_from(address.as_str()).ok());
    let location = wanted.unwrap_or(HeaderValue::from_static("/"));
    let cache = HeaderValue::from_static("no-store");
    let headers = [(header::LOCATION, location), (header::CACHE_CONTROL, cache)];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// Rejects requests that a page of another origin makes a browser send, such as another game. They
/// would carry the pane's cookie.
fn refuse_others(pane: &Pane, headers: &HeaderMap) -> Result<(), ApiError> {
    // Browsers name the origin of every `POST`.
    if !headers.contains_key(header::ORIGIN) || !may_be_from(headers, &pane.origin) {
        return Err(ProblemCode::UnknownOrigin.into());
    }
    Ok(())
}
