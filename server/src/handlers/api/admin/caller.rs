//! Who may administer.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use platform_protocol::problem::Slug;
use uuid::Uuid;

use crate::domain::audit::Actor;
use crate::domain::player::PlayerState;
use crate::handlers::api::caller::ApiCaller;
use crate::http::refusal::Refusal;
use crate::state::AppState;

/// The administrator whose token came with the request.
#[derive(Clone, Copy, Debug)]
pub struct AdminCaller {
    /// The player.
    pub player: Uuid,
}

impl AdminCaller {
    /// As whom the log of events knows them.
    #[must_use]
    pub const fn actor(self) -> Actor {
        Actor::Admin(self.player)
    }
}

impl FromRequestParts<AppState> for AdminCaller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refusal> {
        let caller = ApiCaller::from_request_parts(parts, state).await?;
        if !caller.is_admin {
            return Err(
                Refusal::new(Slug::NotAllowed).with_detail("This is for administrators alone.")
            );
        }
        // The store itself is asked: a suspension that is some seconds old may
        // not be known in memory yet, and who is suspended lifts nothing.
        let player = state.store.find_player(caller.player).await?;
        match player.map(|player| player.state) {
            Some(PlayerState::Account) => Ok(Self {
                player: caller.player,
            }),
            Some(PlayerState::Suspended { .. }) => Err(Slug::AccountSuspended.into()),
            _ => Err(Slug::NotAllowed.into()),
        }
    }
}
