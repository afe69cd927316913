//! The platform's own pages, one per file.

pub mod admin;
pub mod build;
pub mod command_line;
pub mod console;
pub mod documents;
pub mod game_page;
pub mod icon;
pub mod invitation;
pub mod problem_page;
pub mod project;
pub mod security_txt;
pub mod stylesheet;
