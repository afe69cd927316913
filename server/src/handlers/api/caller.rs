//! Who asks, and what they may do.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use platform_protocol::names::CONSOLE_AUDIENCE;
use platform_protocol::problem::Slug;
use uuid::Uuid;

use crate::clock::Millis;
use crate::domain::audit::Actor;
use crate::domain::project::Project;
use crate::http::limiter::too_many_requests;
use crate::http::refusal::Refusal;
use crate::state::AppState;

/// The player whose token came with the request.
#[derive(Clone, Debug)]
pub struct ApiCaller {
    /// The player.
    pub player: Uuid,
    /// Whether it is a guest.
    pub is_guest: bool,
    /// When its token ends, in milliseconds since the Unix epoch.
    pub expires_at: Millis,
    /// Whether it may administer: the operator has named it in the settings or
    /// by a command.
    pub is_admin: bool,
}

impl FromRequestParts<AppState> for ApiCaller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refusal> {
        let token = state
            .tokens
            .of(&parts.headers, CONSOLE_AUDIENCE)
            .ok_or_else(|| {
                // RFC 6750 §3: with how to authenticate.
                Refusal::new(Slug::NotSignedIn)
                    .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
            })?;
        if state.suspensions.contains(&token.player) {
            return Err(Slug::AccountSuspended.into());
        }
        state
            .api_limiter
            .count(&token.player)
            .map_err(too_many_requests)?;
        Ok(Self {
            player: token.player,
            is_guest: token.claims.is_anon,
            expires_at: Millis::try_from(token.claims.exp)
                .unwrap_or(Millis::MAX)
                .saturating_mul(1_000),
            is_admin: is_admin(state, token.player, token.claims.is_anon).await?,
        })
    }
}

/// Whether the player may administer. The store is asked each time, so that an
/// operator's command holds with the next request; a guest never may.
async fn is_admin(state: &AppState, player: Uuid, is_guest: bool) -> Result<bool, Refusal> {
    Ok(
        !is_guest
            && (state.config.admins.contains(&player) || state.store.is_admin(player).await?),
    )
}

impl ApiCaller {
    /// Looks anew whether the caller may administer: what takes longer than a
    /// request must not outlive the right to it.
    ///
    /// # Errors
    /// The store's.
    pub async fn look_again(&mut self, state: &AppState) -> Result<(), Refusal> {
        self.is_admin = is_admin(state, self.player, self.is_guest).await?;
        Ok(())
    }

    /// The project of this slug, if the caller may see and change it.
    ///
    /// # Errors
    /// `not-found`, `not-allowed`.
    pub async fn project(&self, state: &AppState, slug: &str) -> Result<Project, Refusal> {
        let project =
            state.store.find_project(slug).await?.ok_or_else(|| {
                Refusal::new(Slug::NotFound).with_detail("There is no such project.")
            })?;
        if project.owner == Some(self.player) || self.is_admin {
            Ok(project)
        } else {
            Err(Refusal::new(Slug::NotAllowed).with_detail("This project is somebody else's."))
        }
    }

    /// The same for a call that changes the project, or acts as its developer.
    /// That an administrator does so to somebody else's is kept.
    ///
    /// # Errors
    /// `not-found`, `not-allowed`.
    pub async fn project_to_change(
        &self,
        state: &AppState,
        slug: &str,
    ) -> Result<Project, Refusal> {
        let project = self.project(state, slug).await?;
        if project.owner != Some(self.player) {
            let (by, now) = (Actor::Admin(self.player), state.clock.now());
            state.store.note_administered(&project, by, now).await?;
        }
        Ok(project)
    }
}
