//! Sessions of panes: on the Build page a developer plays a game as several test players, under
//! conditions that are hard to meet otherwise.
//!
//! A session is signed and contains everything: the store has nothing of it. It is for one pane of
//! one project, contains one of the project's own test players, and ends after half an hour. It
//! names who opened the pane, whose right is looked up again before each token. The
//! console gets it from the project API and sends it to the pane's address, which keeps it in a
//! cookie that no script can read. So a hostile game in a pane gets the tokens of its own test
//! player, which its developer could mint anyway, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_protocol::claims::{GameTokenClaims, PrincipalKind};
use platform_protocol::names::Environment;
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::AuthState;
use crate::auth::caller::Opener;
use crate::auth::game_tokens::{GameTokens, VerifiedToken};
use crate::clock::Millis;
use crate::domain::console_token::Hold;
use crate::games::panes::Pane;
use crate::platform::metrics::TokenKind;
use crate::web::api_error::ApiError;
use crate::web::cookies;
use crate::web::navigation::is_navigation;

/// The life of a pane's session, in seconds. The Build page renews it while it is open.
pub const SESSION_SECONDS: u64 = 30 * 60;
/// How long a slow pane waits before a token and before a response of the backend.
pub const SLOW: Duration = Duration::from_secs(2);
/// How long a slow pane waits before a file: a page loads many of them.
pub const SLOW_FILE: Duration = Duration::from_millis(500);
/// How far a wrong clock is ahead, in seconds, and how long ago an expired token expired. Both are
/// more than any verifier tolerates.
const FAR: u64 = 2 * 60 * 60;
/// The prefix of a session's audience, before the pane's host label. No token has such an audience.
const AUDIENCE: &str = "pane:";

/// What happens in a pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// Nothing unusual.
    #[default]
    None,
    /// The player's token has expired, as if the page had slept.
    TokenExpired,
    /// The player's session has ended: `session-expired`.
    SessionExpired,
    /// The game's backend accepts no token: its paths respond with 401.
    BackendUnauthorized,
    /// The player is suspended: `account-suspended`.
    AccountSuspended,
    /// Too many guests play from this address: `guest-limit-reached`.
    GuestLimitReached,
    /// Requests fail as without a network. Log records still arrive.
    Offline,
    /// Responses take seconds.
    Slow,
    /// Tokens are issued in two hours, by a clock that is ahead. They end when others do.
    WrongClock,
}

/// The claims of a pane's session: those of its player, and its own.
#[derive(Debug, Serialize)]
struct Claims<'a> {
    #[serde(flatten)]
    player: &'a GameTokenClaims,
    #[serde(flatten)]
    own: OwnClaims,
}

/// The claims that the verifier for game tokens does not read.
#[derive(Debug, Serialize, Deserialize)]
struct OwnClaims {
    condition: Condition,
    opener: OpenerClaims,
}

/// Who opened the pane. The members have the names that they have in a console token.
#[derive(Debug, Serialize, Deserialize)]
struct OpenerClaims {
    sub: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<String>,
}

impl OpenerClaims {
    fn new(opener: &Opener) -> Self {
        let (sid, device) = opener.hold.names();
        Self {
            sub: opener.player,
            sid,
            device,
        }
    }

    fn read(&self) -> Option<Opener> {
        Some(Opener {
            player: self.sub,
            hold: Hold::named(self.sid.as_deref(), self.device.as_deref())?,
        })
    }
}

/// A test player of a project.
#[derive(Clone, Debug)]
pub struct TestPlayer {
    /// The player's id.
    pub id: Uuid,
    /// `test-user-<n>` or `test-guest-<n>`.
    pub username: String,
    /// Whether it is a test guest.
    pub is_guest: bool,
}

/// The session of a pane, which is valid.
#[derive(Clone, Debug)]
pub struct PaneSession {
    /// The player.
    pub player: Arc<VerifiedToken>,
    /// What happens in the pane.
    pub condition: Condition,
    /// Who opened the pane.
    pub opener: Opener,
}

/// Returns the claims of a test player's token for `audience`, issued at `issued` seconds and valid
/// for `life` seconds.
#[must_use]
pub fn test_claims(
    state: &AuthState,
    player: &TestPlayer,
    audience: String,
    (issued, life): (u64, u64),
) -> GameTokenClaims {
    GameTokenClaims {
        sub: player.id.to_string(),
        username: player.username.clone(),
        aud: audience,
        iss: state.platform.auth_url.clone(),
        is_anon: player.is_guest,
        principal_kind: PrincipalKind::TestUser,
        exp: issued + life,
        iat: issued,
        jti: state.platform.entropy.uuid_v4().to_string(),
    }
}

/// Returns a session for the pane with the host label `label`, which `opener` opens.
///
/// # Errors
/// Returns an error if it cannot be signed.
pub fn seal(
    state: &AuthState,
    label: &str,
    (player, condition): (&TestPlayer, Condition),
    opener: &Opener,
    now: Millis,
) -> Result<String, ApiError> {
    let times = (seconds(now), SESSION_SECONDS);
    let player = &test_claims(state, player, format!("{AUDIENCE}{label}"), times);
    let own = OwnClaims {
        condition,
        opener: OpenerClaims::new(opener),
    };
    let sealed = state.keys.sign(&Claims { player, own });
    sealed.map_err(|error| ApiError::internal(&error))
}

fn seconds(now: Millis) -> u64 {
    u64::try_from(now / 1_000).unwrap_or(0)
}

impl PaneSession {
    /// Reads a session for the pane with the host label `label`. Returns `None` if it is not valid.
    #[must_use]
    pub fn open(tokens: &GameTokens, label: &str, session: &str) -> Option<Self> {
        let player = tokens.verify(session, &format!("{AUDIENCE}{label}")).ok()?;
        let payload = URL_SAFE_NO_PAD.decode(session.split('.').nth(1)?).ok()?;
        let claims: OwnClaims = serde_json::from_slice(&payload).ok()?;
        Some(Self {
            player,
            condition: claims.condition,
            opener: claims.opener.read()?,
        })
    }

    /// Returns the session in a request's cookie.
    #[must_use]
    pub fn of(state: &AuthState, pane: &Pane, headers: &HeaderMap) -> Option<Self> {
        let secure = state.platform.origin.is_secure();
        cookies::read_panes(headers, secure)
            .iter()
            .find_map(|session| Self::open(&state.tokens, &pane.label, session))
    }

    /// Returns the player's token for the project's dev environment and its lifetime in seconds, as
    /// the condition wants it. Only [`Opener::develops`] says whether the pane may have one.
    ///
    /// # Errors
    /// `session-expired`, `account-suspended`, `guest-limit-reached`.
    pub fn token(
        &self,
        state: &AuthState,
        slug: &str,
        now: Millis,
    ) -> Result<(String, u64), ApiError> {
        let (now, life) = (seconds(now), state.platform.config.token_seconds);
        let issued = match self.condition {
            Condition::SessionExpired => return Err(ProblemCode::SessionExpired.into()),
            Condition::AccountSuspended => return Err(ApiError::suspended(None)),
            Condition::GuestLimitReached => return Err(ProblemCode::GuestLimitReached.into()),
            Condition::TokenExpired => now.saturating_sub(life + FAR),
            Condition::WrongClock => now + FAR,
            Condition::None
            | Condition::BackendUnauthorized
            | Condition::Offline
            | Condition::Slow => now,
        };
        let player = TestPlayer {
            id: self.player.player,
            username: self.player.username.to_string(),
            is_guest: self.player.is_guest,
        };
        let audience = Environment::Dev.audience(slug);
        let mut claims = test_claims(state, &player, audience, (issued, life));
        // Whoever keeps the token of a wrong clock could use it for hours.
        claims.exp = claims.exp.min(now + life);
        let token = state.keys.sign(&claims);
        let token = token.map_err(|error| ApiError::internal(&error))?;
        state.platform.metrics.token(TokenKind::Game);
        Ok((token, life))
    }

    /// Returns the response to a request of the platform's own `path`, if the condition decides it.
    #[must_use]
    pub fn decides(&self, path: &str, headers: &HeaderMap) -> Option<Response> {
        match (self.condition, path) {
            // The developer who caused the failures wants to see them, and to end them.
            (Condition::Offline, paths::LOGS | paths::PANE) => None,
            (Condition::Offline, _) => Some(offline(headers)),
            // The page then asks for a token, and learns why it gets none.
            (Condition::AccountSuspended, paths::HEARTBEAT) => {
                Some(ApiError::suspended(None).into_response())
            }
            (Condition::SessionExpired, paths::HEARTBEAT) => Some(unauthorized().into_response()),
            _ => None,
        }
    }

    /// Returns the response to a request for the game itself, if the condition decides it.
    #[must_use]
    pub fn decides_for_game(&self, headers: &HeaderMap, to_backend: bool) -> Option<Response> {
        match self.condition {
            Condition::Offline => Some(offline(headers)),
            Condition::BackendUnauthorized if to_backend => Some(unauthorized().into_response()),
            _ => None,
        }
    }

    /// Returns how long a response to a request for the game itself waits.
    #[must_use]
    pub fn delay(&self, to_backend: bool) -> Duration {
        match self.condition {
            Condition::Slow if to_backend => SLOW,
            Condition::Slow => SLOW_FILE,
            _ => Duration::ZERO,
        }
    }
}

/// Waits, as a slow pane does before a response.
#[expect(
    clippy::disallowed_methods,
    reason = "the developer in front of the pane wants to see real time pass"
)]
pub async fn wait(delay: Duration) {
    tokio::time::sleep(delay).await;
}

/// Returns the response to a request without a session.
#[must_use]
pub fn closed() -> ApiError {
    ApiError::new(ProblemCode::NotAllowed)
        .with_detail(
            "This address shows a game on the Build page. It opens there for the project's \
             developers, and its session has ended.",
        )
        .with_header(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))
}

fn unauthorized() -> ApiError {
    ApiError::new(ProblemCode::NotSignedIn)
        .with_detail("The backend accepts no token in this pane of the Build page.")
        .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

/// Returns a response with which a request of a script fails as without a network: browsers follow
/// a redirect only to http (Fetch, "HTTP-redirect fetch"). Closing the connection would not do so
/// behind another proxy. A navigation gets an error page.
fn offline(headers: &HeaderMap) -> Response {
    if is_navigation(headers) {
        return ApiError::new(ProblemCode::Unavailable)
            .with_detail(
                "This pane of the Build page is offline. To see the game, choose another condition \
                 above it, and reload it.",
            )
            .into_response();
    }
    let nowhere = HeaderValue::from_static("data:,offline");
    let cache = HeaderValue::from_static("no-store");
    let headers = [(header::LOCATION, nowhere), (header::CACHE_CONTROL, cache)];
    (StatusCode::FOUND, headers).into_response()
}
