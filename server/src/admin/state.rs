//! The state of administration.

use std::sync::Arc;

use crate::auth::AuthState;
use crate::games::GamesState;
use crate::hosting::HostingState;
use crate::platform::Platform;
use crate::projects::ProjectsState;

/// The state of administration.
#[derive(Debug)]
pub struct AdminState {
    /// The state that every slice uses.
    pub platform: Arc<Platform>,
    /// The games.
    pub games: Arc<GamesState>,
    /// The state of the auth service.
    pub auth: Arc<AuthState>,
    /// The state of hosting.
    pub hosting: Arc<HostingState>,
    /// The projects.
    pub projects: Arc<ProjectsState>,
}
