//! The project API's calls about projects, one a file, and what they answer.

pub mod backend;
pub mod create_project;
pub mod deployed_file;
pub mod deployment;
pub mod environment;
pub mod frames;
pub mod isolation;
pub mod list_projects;
pub mod project;
pub mod rollback;
pub mod takedown;
pub mod test_token;
pub mod views;
