//! Guests: who comes without a session becomes one, and whose row was swept
//! before the cookie came back is made again, the same player as before.

use std::time::Duration;

use crate::auth::AuthState;
use crate::clock::Millis;
use crate::domain::errors::chain;
use crate::domain::player::Player;
use crate::domain::session::{Session, SessionHash, SessionSecret};
use crate::http::api_error::ApiError;
use crate::http::client_address::Network;
use crate::store::{GuestCap, NewGuest, StoreError};

/// What became of a visitor who has no session.
#[derive(Debug)]
pub(super) enum Made {
    /// A guest, and the secret of their new session.
    Guest(Player, SessionSecret),
    /// Nothing: too many guests are made here just now.
    TooFast(Duration),
}

/// Makes a guest of somebody who plays the game of this audience. Where the
/// browser sent a cookie that no session has, the guest is the one that follows
/// from it: either the platform gave it out, and its row was swept, or nobody
/// ever had it. The session is a new one all the same, since nobody chooses the
/// secret of theirs.
///
/// # Errors
/// `guest-limit-reached`; the store's.
pub(super) async fn make(
    state: &AuthState,
    audience: &str,
    network: Network,
    held: Option<SessionSecret>,
) -> Result<Made, ApiError> {
    let counted = state.limits.guests.count(network, audience);
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
    Ok(Made::Guest(player, secret))
}

/// Makes the guest of a cookie again that no session has. None where the player
/// who followed from it is somebody else by now, such as an account.
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
        Ok(player) => Ok(Some((player, secret))),
        Err(StoreError::Conflict { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The session of a cookie, for those who are about to do more with it than to
/// play. A guest whose row was swept is made again; no cap holds them up, since
/// what they played must not be lost.
///
/// # Errors
/// The store's.
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

/// The guest that follows from a secret.
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

/// Keeps the address's hold on a guest in use. If it fails, the player goes on
/// all the same.
pub(super) async fn see(state: &AuthState, player: &Player, now: Millis) {
    if !player.wants_to_be_seen(now, state.platform.config.guest_idle()) {
        return;
    }
    if let Err(error) = state.platform.store.see_guest(player.id, now).await {
        tracing::warn!(error = chain(&error), "a guest's last use was not kept");
    }
}
