//! What answers on a game's own address, one endpoint a file.

pub mod game_files;
pub mod platform_json;
pub mod runtime_files;
