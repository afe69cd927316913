//! One endpoint a file, in one order: what it answers, the handler, its rules,
//! their tests.

pub mod console;
pub mod game_files;
pub mod heartbeat;
pub mod icon;
pub mod key_set;
pub mod logs;
pub mod metadata;
pub mod not_yet;
pub mod problem_page;
pub mod runtime_files;
pub mod sign_out;
pub mod stylesheet;
pub mod token;
