//! What counting players is handed.

use std::sync::Arc;

use crate::auth::AuthState;
use crate::games::GamesState;
use crate::hosting::HostingState;
use crate::platform::Platform;
use crate::players::counting::Counting;

/// The parts that count players.
#[derive(Debug)]
pub struct PlayersState {
    /// What every slice uses.
    pub platform: Arc<Platform>,
    /// The games that are played.
    pub games: Arc<GamesState>,
    /// Who the players are.
    pub auth: Arc<AuthState>,
    /// What serves the games.
    pub hosting: Arc<HostingState>,
    /// What is counted.
    pub counting: Counting,
}
