//! One endpoint a file, in one order: what it answers, the handler, its rules,
//! their tests.

pub mod admin;
pub mod api;
pub mod build;
pub mod callback;
pub mod console;
pub mod demo_provider;
pub mod device;
pub mod game_files;
mod guest;
pub mod heartbeat;
mod held;
mod hurried;
pub mod icon;
pub mod key_set;
mod leave;
pub mod login;
pub mod logs;
pub mod metadata;
pub mod new_guest;
pub mod problem_page;
pub mod profile;
pub mod project;
pub mod restore_guest;
pub mod runtime_files;
pub mod security_txt;
pub mod sign_in;
pub mod sign_out;
pub mod stylesheet;
pub mod token;
mod visitor;
mod way_back;
pub mod whereabouts;
