//! The operator's commands, which can run while the server runs.

pub(crate) mod admin;
pub(crate) mod backup;
pub(crate) mod events;
pub(crate) mod keys;
pub(crate) mod moving;
pub(crate) mod player;
#[cfg(feature = "cluster")]
pub(crate) mod progress;
pub(crate) mod project;
