//! Who opens a page of the auth service, by the session cookie.

use axum::http::HeaderMap;
use platform_protocol::problem::ProblemCode;

use super::{guest, held};
use crate::auth::AuthState;
use crate::domain::errors::chain;
use crate::domain::session::{Session, SessionStatus};
use crate::http::api_error::ApiError;
use crate::http::browser;

/// Who opens a page.
#[derive(Debug)]
pub(super) enum Visitor {
    /// Nobody that is signed in: no session, a guest's that ended, or several,
    /// of which nobody can tell which one was tossed in.
    Unknown,
    /// Who holds an account's session that ended, or one of a guest that went
    /// into an account: games send them here until they sign in again, or say
    /// that they want to be somebody new.
    Ended,
    /// A guest.
    Guest(Session),
    /// An account.
    Account(Session),
    /// A player whom the platform suspended.
    Suspended {
        /// The name that they play under.
        username: String,
        /// What they may be told.
        reason: Option<String>,
    },
}

/// Keeps in which browser a session is, where that is not known yet or the
/// session is due to be renewed. If it fails, the player's page names it later.
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
        tracing::warn!(error = chain(&error), "a session's browser was not kept");
    }
}

impl Visitor {
    /// Looks the visitor up.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn of(state: &AuthState, headers: &HeaderMap) -> Result<Self, ApiError> {
        let secret = match held::secret(state, headers).await {
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
            SessionStatus::Good if session.player.is_anonymous() => Self::Guest(session),
            SessionStatus::Good => Self::Account(session),
        })
    }
}
