//! Signs a browser out so that its guest can be restored.

use axum::http::{HeaderMap, HeaderValue};

use crate::auth::AuthState;
use crate::domain::audit::By;
use crate::domain::left_guest::{LeftSecret, SignedOut};
use crate::domain::session::SessionHash;
use crate::store::StoreError;
use crate::web::cookies;

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
