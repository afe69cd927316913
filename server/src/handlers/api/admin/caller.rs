//! Who may administer.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use uuid::Uuid;

use crate::domain::audit::{Actor, By, Source};
use crate::handlers::api::caller::ApiCaller;
use crate::http::refusal::Refusal;
use crate::state::AppState;

/// The administrator whose token came with the request, and who has signed in
/// within the last minutes, in a browser.
#[derive(Clone, Debug)]
pub struct AdminCaller {
    /// The player.
    pub player: Uuid,
    /// Where the request came from.
    pub source: Source,
}

impl AdminCaller {
    /// As whom the log of events knows them.
    #[must_use]
    pub fn by(&self) -> By {
        By::request(Actor::Admin(self.player), self.source.clone())
    }
}

impl FromRequestParts<AppState> for AdminCaller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refusal> {
        let caller = ApiCaller::from_request_parts(parts, state).await?;
        caller.administration(state).await?;
        Ok(Self {
            player: caller.player,
            source: caller.source,
        })
    }
}
