//! What the handlers of projects are handed.

use std::sync::Arc;

use crate::auth::AuthState;
use crate::auth::caller::ApiCaller;
use crate::domain::project::Project;
use crate::games::GamesState;
use crate::hosting::HostingState;
use crate::platform::Platform;
use crate::projects::deploy::Deployments;
use crate::projects::settings_limits::SettingsLimits;
use crate::web::api_error::ApiError;

/// The parts that projects need.
#[derive(Debug)]
pub struct ProjectsState {
    /// What every slice uses.
    pub platform: Arc<Platform>,
    /// The games that projects have.
    pub games: Arc<GamesState>,
    /// Who calls.
    pub auth: Arc<AuthState>,
    /// What serves the games.
    pub hosting: Arc<HostingState>,
    /// What deploys.
    pub deployments: Arc<Deployments>,
    /// The limits on writes of projects' settings.
    pub settings_limits: SettingsLimits,
}

impl ProjectsState {
    /// Counts a write of the project's settings by its owner, who may so many
    /// within an hour. Administrators always may: what they take down or mend must
    /// not wait for what the owner did. What is refused anyway is not counted.
    ///
    /// # Errors
    /// `too-many-requests`.
    pub fn count_setting(&self, caller: &ApiCaller, project: &Project) -> Result<(), ApiError> {
        if project.owner == Some(caller.player) {
            self.settings_limits.count(&project.slug, caller.player)?;
        }
        Ok(())
    }

    /// Counts a roll-back of the project by its owner, as [`Self::count_setting`]
    /// does a write of its settings.
    ///
    /// # Errors
    /// `too-many-requests`.
    pub fn count_rollback(&self, caller: &ApiCaller, project: &Project) -> Result<(), ApiError> {
        if project.owner == Some(caller.player) {
            self.settings_limits.count_rollback(&project.slug)?;
        }
        Ok(())
    }
}
