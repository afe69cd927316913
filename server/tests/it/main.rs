//! The server from outside: real requests to a server on a port of its own,
//! with a clock that the tests move.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of tests may fail as loudly as a test"
)]

mod account_pages;
mod backends;
mod browser;
mod connections;
mod heartbeat;
mod hosting;
mod hosts;
mod logs;
mod navigation;
mod pages;
mod profile;
mod program;
mod redirects;
mod runtime;
mod sessions;
mod settings;
mod sign_in;
mod stop;
mod style;
mod support;
mod token;
