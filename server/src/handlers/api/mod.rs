//! The project API, on the console's origin: for the command line, for the
//! console's pages, and for programs. JSON, and a bearer token of the audience
//! `platform:console`; every refusal is a problem.
//!
//! | module | holds |
//! |---|---|
//! | [`admin`] | administration |
//! | [`caller`] | who asks, and what they may do |
//! | [`views`] | what is answered |
//! | [`openapi`] | the description of it all |
//! | the others | one endpoint each |

pub mod admin;
pub mod backend;
pub mod caller;
pub mod create_project;
pub mod deployed_file;
pub mod deployment;
pub mod environment;
pub mod errors;
pub mod frames;
pub mod isolation;
pub mod list_projects;
pub mod log_stream;
pub mod logs;
pub mod openapi;
pub mod player_chart;
pub mod players;
pub mod project;
pub mod ranking;
pub mod rollback;
pub mod standing;
pub mod test_token;
pub mod views;
