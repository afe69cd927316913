//! What answers on a game's own address, one endpoint a file.

pub mod game_files;
pub mod runtime_files;
pub mod whereabouts;
