//! The end-to-end tests' harness: real browsers, a real server, and what
//! stands between them to count, hold and spoil requests.
//!
//! | module | holds |
//! |---|---|
//! | [`settings`] | where drivers and browsers are; the only reader of the environment |
//! | [`poll`] | waiting for a condition, with a bound |
//! | [`process`] | child processes that end with their owner |
//! | [`browser`] | engines, their drivers, sessions, what a page said and asked for |
//! | [`accessibility`] | what axe-core finds wrong with a page |
//! | [`suite`] | running one body in every engine |
//! | [`gateway`] | a reverse proxy that counts, holds and spoils requests |
//! | [`backend`] | a game's backend that remembers every call |
//! | [`world`] | a platform in this process, with games published on it |
//! | [`identity_provider`] | providers that are not the platform's, to sign in with |
//! | [`sign_in`] | signing in as players do, by pressing what pages offer |
//! | [`sent`] | what the runtime in a page sent by itself |
//! | [`dev_server`] | a game maker's own server on this machine |
//! | [`server`] | the real server program as a child process |
//! | [`trace`] | reading what `strace` saw |
//! | [`npm`] | programs from npm, installed as their lock file says |
//! | [`hostile_provider`] | identity providers that misbehave on demand |
//! | [`platform`] | a platform in this process, for plain HTTP |
//! | [`person`], [`forms`] | somebody with cookies who signs in, over plain HTTP |
//! | [`tables`] | what stands in the store |
//! | [`visitor`] | a visitor without a browser: cookie, token, plain HTTP |

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a harness reports what it cannot do by failing the test"
)]

pub mod accessibility;
pub mod backend;
pub mod browser;
pub mod dev_server;
pub mod forms;
pub mod gateway;
pub mod hostile_provider;
pub mod identity_provider;
pub mod npm;
pub mod person;
pub mod platform;
pub mod poll;
pub mod process;
pub mod sent;
pub mod server;
pub mod settings;
pub mod sign_in;
pub mod suite;
pub mod tables;
pub mod trace;
pub mod visitor;
pub mod world;
