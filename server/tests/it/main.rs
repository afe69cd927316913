//! The server from outside: real requests to a server on a port of its own,
//! with a clock that the tests move.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of tests may fail as loudly as a test"
)]

mod backends;
mod connections;
mod heartbeat;
mod hosting;
mod hosts;
mod logs;
mod navigation;
mod pages;
mod program;
mod runtime;
mod sessions;
mod settings;
mod stop;
mod support;
mod token;
