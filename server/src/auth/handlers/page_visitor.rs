//! The visitor of a page of the auth service, by the session cookie.

use axum::http::HeaderMap;
use platform_protocol::problem::ProblemCode;

use super::{browser_session, guest};
use crate::auth::AuthState;
use crate::domain::deletion::Deletion;
use crate::domain::errors::chain;
use crate::domain::session::{Session, SessionStatus};
use crate::web::api_error::ApiError;
use crate::web::browser;

/// The visitor of a page.
#[derive(Debug)]
pub(super) enum Visitor {
    /// Nobody who is signed in: there is no session, or one of a guest that has ended, or several
    /// cookies of which the browser's own is unknown.
    Unknown,
    /// The browser has an ended session of an account, or one of a merged guest: games send it here
    /// until the player signs in again, or chooses to be a new player.
    Ended,
    /// A guest.
    Guest(Session),
    /// An account.
    Account(Session),
    /// A guest or an account that is to be deleted, and can take that back.
    Leaving(Session, Deletion),
    /// A suspended player.
    Suspended {
        /// The player's name.
        username: String,
        /// The reason that is shown to the player.
        reason: Option<String>,
    },
}

/// Records the browser of a session, if it is not known yet or the session is due for renewal. If
/// this fails, the player's page shows the browser later.
pub(super) async fn note_browser(
    state: &AuthState,
    headers: &HeaderMap,
    session: &Session,
    is_due: bool,
) {
    let Some(found) = browser::describe(headers) else {
        return;
    };
    let is_known = session.browser.as_deref() == Some(found.as_str());
    if is_known || (session.browser.is_some() && !is_due) {
        return;
    }
    if let Err(error) = state
        .platform
        .store
        .note_browser(&session.hash, &found)
        .await
    {
        tracing::warn!(
            error = chain(&error),
            "a session's browser could not be stored"
        );
    }
}

impl Visitor {
    /// Looks up the visitor.
    ///
    /// # Errors
    /// Errors of the store.
    pub(super) async fn of(state: &AuthState, headers: &HeaderMap) -> Result<Self, ApiError> {
        let secret = match browser_session::secret(state, headers).await {
            Ok(Some(secret)) => secret,
            Ok(None) => return Ok(Self::Unknown),
            Err(refusal) if refusal.slug() == ProblemCode::InvalidRequest => {
                return Ok(Self::Unknown);
            }
            Err(refusal) => return Err(refusal),
        };
        let Some(session) = state.platform.store.lookup_session(&secret.hash()).await? else {
            return Ok(Self::Unknown);
        };
        let now = state.platform.clock.now();
        guest::see(state, &session.player, now).await;
        Ok(match session.status(now) {
            SessionStatus::Suspended(reason) => Self::Suspended {
                username: session.player.username,
                reason,
            },
            SessionStatus::Expired => Self::Ended,
            SessionStatus::Stranger => Self::Unknown,
            SessionStatus::Leaving(deletion) => Self::Leaving(session, deletion),
            SessionStatus::Good if session.player.is_anonymous() => Self::Guest(session),
            SessionStatus::Good => Self::Account(session),
        })
    }
}
