//! The project API's endpoints for projects, one per file, and their responses.

pub mod backend;
pub mod create_project;
pub mod deliveries;
pub mod deploy_tokens;
pub mod deployed_file;
pub mod deployment;
pub mod domains;
pub mod environment;
pub mod frames;
pub mod handover;
pub mod invitations;
pub mod isolation;
pub mod list_projects;
pub mod listing;
pub mod pane;
pub mod people;
pub mod previews;
pub mod project;
pub mod rollback;
mod set_environment;
pub mod takedown;
pub mod test_token;
pub mod tracing;
pub mod views;
pub mod webhook;
