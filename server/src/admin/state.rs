//! What administration is handed.

use std::sync::Arc;

use crate::auth::AuthState;
use crate::games::GamesState;
use crate::hosting::HostingState;
use crate::platform::Platform;
use crate::projects::ProjectsState;

/// The parts that administration needs.
#[derive(Debug)]
pub struct AdminState {
    /// What every slice uses.
    pub platform: Arc<Platform>,
    /// The games that there are.
    pub games: Arc<GamesState>,
    /// The players.
    pub auth: Arc<AuthState>,
    /// What serves the games.
    pub hosting: Arc<HostingState>,
    /// The projects.
    pub projects: Arc<ProjectsState>,
}
