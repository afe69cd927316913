//! The axum extractors: a handler that takes a [`Player`] runs only for a verified player.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use platform_protocol::claims::GameTokenClaims;
use platform_protocol::limits::REQUEST_ID_CHARS;
use platform_protocol::paths::PROBLEMS;
use platform_protocol::problem::{MEDIA_TYPE, ProblemCode};
use serde::Serialize;

use crate::error::VerifyError;
use crate::verifier::Verifier;

/// The WebSocket subprotocol whose second entry is the token. Choose it in the response
/// (`WebSocketUpgrade::protocols([BEARER_SUBPROTOCOL])`): a browser closes a connection whose
/// response chose none of the offered ones.
pub const BEARER_SUBPROTOCOL: &str = "bearer";

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The player who sent the request, from `Authorization: Bearer <token>` (RFC 6750 §2.1).
///
/// The state must give an `Arc<Verifier>` ([`FromRef`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Player(pub GameTokenClaims);

/// The player who opens a WebSocket, from the bearer subprotocol: `new WebSocket(url, ['bearer',
/// await platform.getAccessToken()])`. A browser cannot set `Authorization` for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketPlayer(pub GameTokenClaims);

impl<S> FromRequestParts<S> for Player
where
    Arc<Verifier>: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = PlayerRejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, PlayerRejection> {
        let verifier = Arc::<Verifier>::from_ref(state);
        verified(&verifier, &parts.headers, bearer(&parts.headers))
            .await
            .map(Player)
    }
}

impl<S> FromRequestParts<S> for SocketPlayer
where
    Arc<Verifier>: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = PlayerRejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, PlayerRejection> {
        let verifier = Arc::<Verifier>::from_ref(state);
        verified(&verifier, &parts.headers, subprotocol(&parts.headers))
            .await
            .map(SocketPlayer)
    }
}

/// The credentials of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Credentials<'a> {
    /// Nothing, or another scheme.
    None,
    /// Two headers, or a value that is not a token.
    Malformed,
    /// A token that is not verified yet.
    Token(&'a str),
}

impl std::fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Malformed => "Malformed",
            Self::Token(_) => "Token(hidden)",
        })
    }
}

/// The token of the `Authorization` header. The scheme is case-insensitive
/// (RFC 9110 §11.1).
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Credentials<'_> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        // Of two headers, a proxy may check one and this program the other.
        let none = headers.get(AUTHORIZATION).is_none();
        return if none {
            Credentials::None
        } else {
            Credentials::Malformed
        };
    };
    let Ok(value) = value.to_str() else {
        return Credentials::Malformed;
    };
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
            Credentials::Token(token.trim_start_matches(' '))
        }
        None if value.eq_ignore_ascii_case("bearer") => Credentials::Malformed,
        _ => Credentials::None,
    }
}

/// The token after `bearer` in `Sec-WebSocket-Protocol` (RFC 6455 §4.1).
fn subprotocol(headers: &HeaderMap) -> Credentials<'_> {
    let mut entries = Vec::new();
    for value in headers.get_all(SEC_WEBSOCKET_PROTOCOL) {
        let Ok(value) = value.to_str() else {
            return Credentials::Malformed;
        };
        entries.extend(value.split(',').map(str::trim));
    }
    match entries
        .iter()
        .position(|entry| *entry == BEARER_SUBPROTOCOL)
    {
        None => Credentials::None,
        Some(at) => entries
            .get(at + 1)
            .map_or(Credentials::Malformed, |token| Credentials::Token(token)),
    }
}

async fn verified(
    verifier: &Verifier,
    headers: &HeaderMap,
    credentials: Credentials<'_>,
) -> Result<GameTokenClaims, PlayerRejection> {
    let outcome = match credentials {
        Credentials::Token(token) => verifier.verify(token).await.map_err(Reason::Token),
        Credentials::Malformed => Err(Reason::Malformed),
        Credentials::None => Err(Reason::Missing),
    };
    outcome.map_err(|reason| PlayerRejection {
        reason,
        issuer: verifier.config().issuer.clone(),
        request_id: request_id(headers),
    })
}

/// The id under which the platform forwarded the request, so that both logs can be compared. A
/// malformed one is ignored.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let well_formed = (1..=REQUEST_ID_CHARS).contains(&id.len())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    well_formed.then(|| id.to_owned())
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reason {
    Missing,
    Malformed,
    Token(VerifyError),
}

/// The response to a request without a verified player: Problem Details (RFC 9457) with status 401,
/// or 503 if there is no key set.
///
/// It does not say which check failed; the log does, at level `debug`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerRejection {
    reason: Reason,
    issuer: String,
    request_id: Option<String>,
}

#[derive(Serialize)]
struct ProblemBody<'a> {
    #[serde(rename = "type")]
    type_uri: String,
    title: &'static str,
    status: u16,
    detail: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

impl PlayerRejection {
    /// Why the token was refused. `None` if the request carried no token, or if its header was
    /// malformed.
    #[must_use]
    pub const fn error(&self) -> Option<&VerifyError> {
        match &self.reason {
            Reason::Token(error) => Some(error),
            Reason::Missing | Reason::Malformed => None,
        }
    }

    fn parts(&self) -> (ProblemCode, &'static str, Option<HeaderValue>) {
        // RFC 6750 §3.1: the response to a request without credentials has no error code, only the
        // scheme.
        let invalid = HeaderValue::from_static("Bearer error=\"invalid_token\"");
        let signature = VerifyError::Signature;
        match &self.reason {
            Reason::Missing => {
                let challenge = HeaderValue::from_static("Bearer");
                (
                    ProblemCode::NotSignedIn,
                    ProblemCode::NotSignedIn.default_detail(),
                    Some(challenge),
                )
            }
            Reason::Malformed => (
                ProblemCode::NotSignedIn,
                signature.client_detail(),
                Some(invalid),
            ),
            Reason::Token(error) if error.is_unavailable() => {
                (ProblemCode::Unavailable, error.client_detail(), None)
            }
            Reason::Token(error) => (
                ProblemCode::NotSignedIn,
                error.client_detail(),
                Some(invalid),
            ),
        }
    }
}

impl IntoResponse for PlayerRejection {
    fn into_response(self) -> Response {
        match &self.reason {
            Reason::Missing => tracing::debug!("refused: no bearer token"),
            Reason::Malformed => tracing::debug!("refused: malformed credentials"),
            Reason::Token(error) => tracing::debug!(%error, "refused the token"),
        }
        let (slug, detail, challenge) = self.parts();
        let mut response = problem(slug, detail, &self.issuer, self.request_id.as_deref());
        if let Some(challenge) = challenge {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// Problem Details (RFC 9457) in the platform's own form.
pub(crate) fn problem(
    slug: ProblemCode,
    detail: &'static str,
    issuer: &str,
    request_id: Option<&str>,
) -> Response {
    let body = ProblemBody {
        // The auth service explains each problem at this address.
        type_uri: format!("{issuer}{PROBLEMS}{}", slug.as_str()),
        title: slug.title(),
        status: slug.status(),
        detail,
        request_id,
    };
    let status = StatusCode::from_u16(slug.status()).unwrap_or(StatusCode::UNAUTHORIZED);
    let mut response = (status, axum::Json(body)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
