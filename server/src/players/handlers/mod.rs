//! Players and their numbers, one endpoint per file.

pub mod heartbeat;
pub mod own_games;
pub mod player_chart;
pub mod players;
pub mod ranking;
