//! The state of projects.

use std::sync::Arc;

use crate::auth::AuthState;
use crate::auth::caller::{Access, ApiCaller};
use crate::auth::scoped_caller::ScopedCaller;
use crate::domain::project::Project;
use crate::games::GamesState;
use crate::hosting::HostingState;
use crate::platform::Platform;
use crate::projects::deploy::Deployments;
use crate::projects::domains::records::Records;
use crate::projects::settings_limits::{Act, SettingsLimits};
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
    /// Reads the DNS records of projects' own domains.
    pub records: Records,
    /// The limits on changes of projects' settings.
    pub settings_limits: SettingsLimits,
}

impl ProjectsState {
    /// Counts an act on the project by its people. There is no limit for administrators: their actions
    /// must not have to wait because of others. Requests that are rejected for another reason are not
    /// counted.
    ///
    /// # Errors
    /// `too-many-requests`.
    pub async fn count(
        &self,
        act: Act,
        caller: &ApiCaller,
        project: &Project,
        access: Access,
    ) -> Result<(), ApiError> {
        if access != Access::Admin {
            let limits = &self.settings_limits;
            limits.count(act, &project.slug, caller.player).await?;
        }
        Ok(())
    }

    /// Counts a deploy of the project by an account or with a deploy token, as [`Self::count`] does.
    ///
    /// # Errors
    /// `too-many-requests`.
    pub async fn count_deploy(&self, caller: &ScopedCaller, slug: &str) -> Result<(), ApiError> {
        let by = match caller {
            ScopedCaller::Account(_, Access::Admin) => return Ok(()),
            ScopedCaller::Account(caller, _) => caller.player,
            ScopedCaller::Token(caller) => caller.token.id,
        };
        self.settings_limits.count(Act::Deploy, slug, by).await
    }
}
