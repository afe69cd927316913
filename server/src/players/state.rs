//! The state of counting players.

use std::sync::Arc;

use crate::auth::AuthState;
use crate::games::GamesState;
use crate::hosting::HostingState;
use crate::platform::Platform;
use crate::players::counting::Counting;
use crate::players::recording::Recording;

/// The state of counting players.
#[derive(Debug)]
pub struct PlayersState {
    /// The state that every slice uses.
    pub platform: Arc<Platform>,
    /// The games.
    pub games: Arc<GamesState>,
    /// The state of the auth service.
    pub auth: Arc<AuthState>,
    /// The state of hosting.
    pub hosting: Arc<HostingState>,
    /// The counts.
    pub counting: Counting,
    /// Heartbeats that other nodes are still being told of.
    pub recording: Recording,
}
