//! The endpoints on a game's own address, one per file.

pub mod game_files;
pub mod platform_json;
pub mod runtime_files;
