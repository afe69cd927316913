//! Signs a browser out so that its guest can be restored.

use axum::http::{HeaderMap, HeaderValue};

use crate::auth::AuthState;
use crate::domain::audit::By;
use crate::domain::left_guest::{LeftSecret, SignedOut};
use crate::domain::player::PlayerState;
use crate::domain::session::{Session, SessionHash};
use crate::store::StoreError;
use crate::web::cookies;

/// Ends the session of a browser. Returns the cookies of the response: one with which its guest can
/// be restored, and one that clears the session. A suspended player's browser keeps the session's:
/// without it the browser would become a new guest, which would get around the suspension. When the
/// suspension is lifted, the session has ended all the same.
///
/// # Errors
/// Errors of the store.
pub(super) async fn end(
    state: &AuthState,
    headers: &HeaderMap,
    session: Option<Session>,
    by: By,
) -> Result<impl Iterator<Item = HeaderValue>, StoreError> {
    let (mut keeps, mut left) = (false, None);
    if let Some(session) = session {
        left = sign_out(state, headers, &session.hash, by).await?;
        keeps = matches!(session.player.state, PlayerState::Suspended { .. });
    }
    let secure = state.platform.origin.is_secure();
    let cleared = (!keeps).then(|| cookies::clear_session(secure));
    Ok(cleared.into_iter().chain(left))
}

/// Ends a session. Returns the cookie with which its guest can be restored, if it was one.
///
/// # Errors
/// Errors of the store.
pub(super) async fn sign_out(
    state: &AuthState,
    headers: &HeaderMap,
    session: &SessionHash,
    by: By,
) -> Result<Option<HeaderValue>, StoreError> {
    let secure = state.platform.origin.is_secure();
    let browser = cookies::read_left(headers, secure)
        .unwrap_or_else(|| LeftSecret::generate(&*state.platform.entropy));
    let now = state.platform.clock.now();
    let ended = state
        .platform
        .store
        .sign_out(session, &browser.hash(), by, now)
        .await?;
    Ok((ended == SignedOut::Guest).then(|| cookies::set_left(&browser, secure)))
}
