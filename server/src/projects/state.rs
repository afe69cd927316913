//! The state of projects.

use std::sync::Arc;

use crate::auth::AuthState;
use crate::auth::caller::{Access, ApiCaller};
use crate::domain::project::Project;
use crate::games::GamesState;
use crate::hosting::HostingState;
use crate::platform::Platform;
use crate::projects::deploy::Deployments;
use crate::projects::settings_limits::SettingsLimits;
use crate::web::api_error::ApiError;

/// The state of projects.
#[derive(Debug)]
pub struct ProjectsState {
    /// The state that every slice uses.
    pub platform: Arc<Platform>,
    /// The games of projects.
    pub games: Arc<GamesState>,
    /// The state of the auth service.
    pub auth: Arc<AuthState>,
    /// The state of hosting.
    pub hosting: Arc<HostingState>,
    /// Deploys games.
    pub deployments: Arc<Deployments>,
    /// The limits on changes of projects' settings.
    pub settings_limits: SettingsLimits,
}

impl ProjectsState {
    /// Counts a change of the project's settings by its people. There is no limit for
    /// administrators: their actions must not have to wait because of others. Requests that
    /// are rejected for another reason are not counted.
    ///
    /// # Errors
    /// `too-many-requests`.
    pub async fn count_setting(
        &self,
        caller: &ApiCaller,
        project: &Project,
        access: Access,
    ) -> Result<(), ApiError> {
        if access != Access::Admin {
            self.settings_limits
                .count(&project.slug, caller.player)
                .await?;
        }
        Ok(())
    }

    /// Counts a roll-back of the project by its people, like [`Self::count_setting`].
    ///
    /// # Errors
    /// `too-many-requests`.
    pub async fn count_rollback(
        &self,
        caller: &ApiCaller,
        project: &Project,
        access: Access,
    ) -> Result<(), ApiError> {
        if access != Access::Admin {
            self.settings_limits
                .count_rollback(&project.slug, caller.player)
                .await?;
        }
        Ok(())
    }

    /// Counts a decision about errors of the project by its people, like [`Self::count_setting`].
    ///
    /// # Errors
    /// `too-many-requests`.
    pub async fn count_decision(
        &self,
        caller: &ApiCaller,
        project: &Project,
        access: Access,
    ) -> Result<(), ApiError> {
        if access != Access::Admin {
            self.settings_limits
                .count_decision(&project.slug, caller.player)
                .await?;
        }
        Ok(())
    }
}
