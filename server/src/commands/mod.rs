//! The operator's commands, beside a running server or without one.

pub(crate) mod admin;
pub(crate) mod events;
pub(crate) mod keys;
pub(crate) mod player;
pub(crate) mod project;
