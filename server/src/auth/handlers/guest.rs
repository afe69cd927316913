//! Creates guests: a visitor without a session becomes one, and a guest whose row was swept before
//! the cookie came back is created again as the same player.

use std::time::Duration;

use uuid::Uuid;

use super::token::Counting;
use crate::auth::AuthState;
use crate::clock::Millis;
use crate::domain::errors::chain;
use crate::domain::player::{Player, PlayerState};
use crate::domain::session::{BACK_MILLIS, Session, SessionHash, SessionSecret, guest_names};
use crate::platform::metrics::GuestKind;
use crate::store::{GuestCap, NewGuest, StoreError};
use crate::web::api_error::ApiError;
use crate::web::client_address::Network;

/// The result for a visitor without a session.
#[derive(Debug)]
pub(super) enum Made {
    /// A guest, the secret of its session, and whether it counts as a player.
    Guest(Player, SessionSecret, Counting),
    /// None, since too many guests are being created here at the moment.
    TooFast(Duration),
}

/// Creates a guest who plays the game with this audience, whose session is `fresh`. If the browser
/// sent a cookie that has no session, `held`, the guest is derived from it: either the platform
/// issued it and its row was swept, or it was never used. The session is a new one all the same,
/// since clients must not choose their secret; a blank session, which the platform remembers, stays.
///
/// # Errors
/// `guest-limit-reached`; errors of the store.
pub(super) async fn make(
    state: &AuthState,
    audience: &str,
    network: Network,
    (held, fresh): (Option<SessionSecret>, SessionSecret),
) -> Result<Made, ApiError> {
    let now = state.platform.clock.now();
    let cap = state.platform.config.guest_cap(now);
    let store = &state.platform.store;
    let back = match &held {
        Some(held) => Some(who_returns(state, held, fresh.clone()).await?),
        None => None,
    };
    let is_there = match &back {
        Some(back) => store.find_player(back.guest).await?.is_some(),
        None => false,
    };
    // Before the rate limit, which all games share: a game that asks for players in a loop has soon
    // used up its own room, and slows no other game down.
    if let Some(cap) = cap.filter(|_| !is_there) {
        let address = network.to_string();
        let has_room = store.has_room_for_new_guest(&address, audience, cap);
        if !has_room.await? {
            return Err(StoreError::GuestCap.into());
        }
    }
    if let Err(wait) = state.limits.guests.count(network).await {
        return Ok(Made::TooFast(wait));
    }
    if let Some(back) = back {
        // The cookie of a blank session stays, and came back. Any other one may be made up.
        let is_blank = held.is_some_and(|held| held.hash() == back.session.hash());
        let standing = if is_blank {
            Counting::Counts
        } else {
            Counting::New
        };
        if let Some(player) = bring_back(state, network, &back, cap).await? {
            return Ok(Made::Guest(player, back.session, standing));
        }
        // A game of the same browser may have made the guest of its blank session at this moment.
        if let Some(session) = store.lookup_session(&back.session.hash()).await? {
            return Ok(Made::Guest(session.player, back.session, standing));
        }
    }
    let guest = NewGuest {
        awaiting: Some(audience.to_owned()),
        cap,
        ..new_guest(fresh.guest_id(), fresh.hash(), network, now)
    };
    let player = store.add_guest(guest).await?;
    state.platform.metrics.guest(GuestKind::New);
    Ok(Made::Guest(player, fresh, Counting::New))
}

/// What comes of the first token of a blank session.
#[derive(Debug)]
pub(super) enum First {
    /// The session, which has a player now.
    Session(Box<Session>),
    /// Nothing, since another player has come to be with the guest's id.
    Taken,
    /// Nothing, since too many guests are being created here at the moment.
    TooFast(Duration),
}

/// Creates the guest-to-be of a blank session. Its browser has brought a cookie back, so the guest
/// counts for its network at once.
///
/// # Errors
/// `guest-limit-reached`; errors of the store.
pub(super) async fn make_first(
    state: &AuthState,
    network: Network,
    (player, parent): (Uuid, SessionHash),
) -> Result<First, ApiError> {
    if let Err(wait) = state.limits.guests.count(network).await {
        return Ok(First::TooFast(wait));
    }
    let (store, now) = (&state.platform.store, state.platform.clock.now());
    let guest = NewGuest {
        cap: state.platform.config.guest_cap(now),
        ..new_guest(player, parent, network, now)
    };
    match store.bring_back_guest(guest).await {
        Ok(_) => state.platform.metrics.guest(GuestKind::New),
        // Another game of the same browser may have asked at the same moment.
        Err(StoreError::Conflict { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let session = store.lookup_session(&parent).await?;
    Ok(session.map_or(First::Taken, |session| First::Session(Box::new(session))))
}

/// Returns the guest who would come back with this cookie, which has no session: its row was swept,
/// or it was brought back just now. `None` if the derived player is different by now, such as an
/// account, or has signed out: [`bring_back`] would refuse it.
///
/// # Errors
/// Errors of the store.
pub(super) async fn returning(
    state: &AuthState,
    held: &SessionSecret,
    now: Millis,
) -> Result<Option<Uuid>, StoreError> {
    let (store, guest) = (&state.platform.store, held.guest_id());
    let comes_back = match store.find_player(guest).await? {
        None => true,
        Some(player) => {
            player.state == PlayerState::Guest
                && now - player.created_at < BACK_MILLIS
                && !store.list_sessions(guest, now).await?.is_empty()
        }
    };
    Ok(comes_back.then_some(guest))
}

/// Creates a guest again, with a session. Returns `None` if there is a different player with its id
/// by now, such as an account.
async fn bring_back(
    state: &AuthState,
    network: Network,
    back: &Returning,
    cap: Option<GuestCap>,
) -> Result<Option<Player>, StoreError> {
    let (hash, now) = (back.session.hash(), state.platform.clock.now());
    let guest = NewGuest {
        cap,
        ..new_guest(back.guest, hash, network, now)
    };
    match state.platform.store.bring_back_guest(guest).await {
        Ok(player) => {
            state.platform.metrics.guest(GuestKind::Restored);
            Ok(Some(player))
        }
        Err(StoreError::Conflict { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The guest of a cookie without a session, and the session that it gets.
struct Returning {
    guest: Uuid,
    session: SessionSecret,
}

/// Returns the guest of a cookie without a session: the one that is derived from it, with a fresh
/// session, since clients must not choose their secret; or the guest-to-be of a blank session, which
/// the platform remembers.
async fn who_returns(
    state: &AuthState,
    held: &SessionSecret,
    fresh: SessionSecret,
) -> Result<Returning, StoreError> {
    let store = &state.platform.store;
    let blank = store.find_blank_session(&held.hash()).await?;
    Ok(match blank {
        Some(guest) => Returning {
            guest,
            session: held.clone(),
        },
        None => Returning {
            guest: held.guest_id(),
            session: fresh,
        },
    })
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
    let fresh = SessionSecret::generate(&*state.platform.entropy);
    let back = who_returns(state, held, fresh).await?;
    bring_back(state, network, &back, None).await?;
    let hash = back.session.hash();
    state.platform.store.lookup_session(&hash).await
}

/// Returns a guest with this id, who counts for its network at once.
fn new_guest(id: Uuid, session: SessionHash, network: Network, now: Millis) -> NewGuest {
    NewGuest {
        id,
        usernames: guest_names(id),
        session,
        address: network.to_string(),
        cap: None,
        awaiting: None,
        now,
    }
}

/// Records that a guest was seen, so that it keeps counting for its address, and that its cookie came
/// back, so that it begins to count. Returns whether the player counts. If this fails, the player
/// continues; a guest with a cookie that came back for the first time may begin to count with its next
/// token.
pub(super) async fn see(state: &AuthState, player: &Player, now: Millis) -> Counting {
    let (store, config) = (&state.platform.store, &state.platform.config);
    if !player.wants_to_be_seen(now, config.guest_idle()) {
        return Counting::Counts;
    }
    let counts = if player.awaited {
        let cap = config.guest_cap(now);
        store.confirm_guest(player.id, cap, now).await
    } else {
        store.see_guest(player.id, now).await.map(|()| true)
    };
    let counts = counts.unwrap_or_else(|error| {
        let error = chain(&error);
        tracing::warn!(error, "a guest's last use could not be stored");
        !player.awaited
    });
    if counts {
        Counting::Counts
    } else {
        Counting::DoesNotCount
    }
}
