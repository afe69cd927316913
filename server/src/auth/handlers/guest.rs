//! Creates guests: a visitor without a session becomes one, and a guest whose row was swept before
//! the cookie came back is created again as the same player.

use std::time::Duration;

use crate::auth::AuthState;
use crate::clock::Millis;
use crate::domain::errors::chain;
use crate::domain::player::Player;
use crate::domain::session::{Session, SessionHash, SessionSecret};
use crate::platform::metrics::GuestKind;
use crate::store::{GuestCap, NewGuest, StoreError};
use crate::web::api_error::ApiError;
use crate::web::client_address::Network;

/// The result for a visitor without a session.
#[derive(Debug)]
pub(super) enum Made {
    /// A guest, and the secret of the new session.
    Guest(Player, SessionSecret),
    /// None, since too many guests are being created here at the moment.
    TooFast(Duration),
}

/// Creates a guest who plays the game with this audience. If the browser sent a cookie that has no
/// session, the guest is derived from it: either the platform issued it and its row was swept, or
/// it was never used. The session is a new one all the same, since clients must not choose their
/// secret.
///
/// # Errors
/// `guest-limit-reached`; errors of the store.
pub(super) async fn make(
    state: &AuthState,
    audience: &str,
    network: Network,
    held: Option<SessionSecret>,
) -> Result<Made, ApiError> {
    let counted = state.limits.guests.count(network, audience).await;
    if let Err(wait) = counted {
        return Ok(Made::TooFast(wait));
    }
    let now = state.platform.clock.now();
    let cap = state.platform.config.guest_cap(now);
    if let Some(held) = held
        && let Some((player, secret)) = bring_back(state, network, &held, cap).await?
    {
        return Ok(Made::Guest(player, secret));
    }
    let secret = SessionSecret::generate(&*state.platform.entropy);
    let guest = NewGuest {
        awaiting: Some(audience.to_owned()),
        cap,
        ..of_secret(&secret, secret.hash(), network, now)
    };
    let player = state.platform.store.add_guest(guest).await?;
    state.platform.metrics.guest(GuestKind::New);
    Ok(Made::Guest(player, secret))
}

/// Creates the guest of a cookie without a session again. Returns `None` if the derived player is
/// different by now, such as an account.
async fn bring_back(
    state: &AuthState,
    network: Network,
    held: &SessionSecret,
    cap: Option<GuestCap>,
) -> Result<Option<(Player, SessionSecret)>, StoreError> {
    let secret = SessionSecret::generate(&*state.platform.entropy);
    let guest = NewGuest {
        cap,
        ..of_secret(held, secret.hash(), network, state.platform.clock.now())
    };
    match state.platform.store.bring_back_guest(guest).await {
        Ok(player) => {
            state.platform.metrics.guest(GuestKind::Restored);
            Ok(Some((player, secret)))
        }
        Err(StoreError::Conflict { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the session of a cookie, for requests that do more with it than play. A guest whose row
/// was swept is created again; no limit applies, since their progress must not be lost.
///
/// # Errors
/// Errors of the store.
pub(super) async fn find_or_make(
    state: &AuthState,
    network: Network,
    held: &SessionSecret,
) -> Result<Option<Session>, StoreError> {
    if let Some(session) = state.platform.store.lookup_session(&held.hash()).await? {
        return Ok(Some(session));
    }
    let Some((_, secret)) = bring_back(state, network, held, None).await? else {
        return Ok(None);
    };
    state.platform.store.lookup_session(&secret.hash()).await
}

/// Returns the guest that is derived from a secret.
fn of_secret(
    secret: &SessionSecret,
    session: SessionHash,
    network: Network,
    now: Millis,
) -> NewGuest {
    NewGuest {
        id: secret.guest_id(),
        usernames: secret.guest_names(),
        session,
        address: network.to_string(),
        cap: None,
        awaiting: None,
        now,
    }
}

/// Records that a guest was seen, so that it keeps counting for its address. If this fails, the
/// player continues all the same.
pub(super) async fn see(state: &AuthState, player: &Player, now: Millis) {
    if !player.wants_to_be_seen(now, state.platform.config.guest_idle()) {
        return;
    }
    if let Err(error) = state.platform.store.see_guest(player.id, now).await {
        tracing::warn!(
            error = chain(&error),
            "a guest's last use could not be stored"
        );
    }
}
