//! What the platform is about: players, sessions, keys, projects and
//! deployments, their states and transitions. Pure: no HTTP, no database, no
//! clock of its own.

pub mod administration;
pub mod audit;
pub mod console_token;
pub mod counting;
pub mod device;
pub mod identity;
pub mod key;
pub mod left_guest;
pub mod log;
pub mod page;
pub mod player;
pub mod project;
pub mod room;
pub mod session;
pub mod sign_in;
pub mod takedown;
pub mod username;
