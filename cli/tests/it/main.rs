//! Runs the built program against a small server that acts as the platform.

#![allow(
    clippy::unwrap_used,
    reason = "a helper of tests may fail as loudly as a test"
)]

mod backend;
mod deploying;
mod dev;
mod domains;
mod errors;
mod exits;
mod frames;
mod help;
mod hostile_text;
mod logs;
mod newer;
mod people;
mod platform;
mod previews;
mod rolling_back;
mod signing_in;
mod support;
mod taking_down;
mod tokens;
