//! The state of the running platform: one part per slice.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;

use crate::admin::AdminState;
use crate::auth::AuthState;
use crate::console::ConsoleState;
use crate::games::GamesState;
use crate::hosting::HostingState;
use crate::logs::LogsState;
use crate::platform::Platform;
use crate::players::PlayersState;
use crate::projects::ProjectsState;

/// The state of the running platform. It is one allocation, so that cloning it for a router only
/// increments one counter; a handler only extracts its slice's part.
#[derive(Clone, Debug)]
pub struct AppState(Arc<Parts>);

/// The contents of [`AppState`].
#[derive(Debug)]
pub struct Parts {
    /// The state that every slice uses.
    pub platform: Arc<Platform>,
    /// The games.
    pub games: Arc<GamesState>,
    /// The auth service.
    pub auth: Arc<AuthState>,
    /// The endpoints on games' own addresses.
    pub hosting: Arc<HostingState>,
    /// Projects and their deployments.
    pub projects: Arc<ProjectsState>,
    /// Counting players.
    pub players: Arc<PlayersState>,
    /// Frontend logs.
    pub logs: Arc<LogsState>,
    /// Administration.
    pub admin: Arc<AdminState>,
    /// The platform's own pages.
    pub console: Arc<ConsoleState>,
}

impl AppState {
    /// Creates the state from its parts.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for AppState {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// Lets handlers of a slice extract its part.
macro_rules! parts {
    ($($field:ident: $part:ty),+ $(,)?) => {
        $(impl FromRef<AppState> for Arc<$part> {
            fn from_ref(state: &AppState) -> Self {
                Self::clone(&state.$field)
            }
        })+
    };
}

parts! {
    auth: AuthState,
    hosting: HostingState,
    projects: ProjectsState,
    players: PlayersState,
    logs: LogsState,
    admin: AdminState,
    console: ConsoleState,
}
