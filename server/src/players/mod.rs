//! Who plays: heartbeats, what is counted of them, the ranking.

mod state;

pub use self::state::PlayersState;
