//! Who plays and how many: one endpoint a file.

pub mod heartbeat;
pub mod player_chart;
pub mod players;
pub mod ranking;
