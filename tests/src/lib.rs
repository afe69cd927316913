//! The end-to-end tests' harness: real browsers, a real server, and what
//! stands between them to count, hold and spoil requests.
//!
//! | module | holds |
//! |---|---|
//! | [`settings`] | where drivers and browsers are; the only reader of the environment |
//! | [`poll`] | waiting for a condition, with a bound |
//! | [`process`] | child processes that end with their owner |
//! | [`raw`] | requests that no library for HTTP would send |
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
//! | [`snippets`] | the documents' backends in other languages, as programs |
//! | [`signer`] | tokens of every kind, and the key set that goes with them |
//! | [`trace`] | reading what `strace` saw |
//! | [`python`] | programs from PyPI, in environments of their own |
//! | [`npm`] | programs from npm, installed as their lock file says |
//! | [`hostile_provider`] | identity providers that misbehave on demand |
//! | [`load`] | a server that is killed while it answers |
//! | [`crowd`] | many players whose heartbeats are written down |
//! | [`deployer`] | somebody who deploys to a server program |
//! | [`platform`] | a platform in this process, for plain HTTP |
//! | [`person`], [`forms`] | somebody with cookies who signs in, over plain HTTP |
//! | [`owner`] | somebody who owns projects, over plain HTTP |
//! | [`maker`] | a game maker at a terminal, with the real command-line tool |
//! | [`tables`] | what stands in the store |
//! | [`template`] | the template as a game maker has it, with a tool that a test makes |
//! | [`terminal`] | a developer's terminal, with the real command line |
//! | [`visitor`] | a visitor without a browser: cookie, token, plain HTTP |

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a harness reports what it cannot do by failing the test"
)]

pub mod accessibility;
pub mod backend;
pub mod browser;
pub mod crowd;
pub mod deployer;
pub mod dev_server;
pub mod followers;
pub mod forms;
pub mod gateway;
pub mod hostile;
pub mod hostile_provider;
pub mod identity_provider;
pub mod load;
pub mod maker;
pub mod npm;
pub mod owner;
pub mod person;
pub mod platform;
pub mod poll;
pub mod process;
pub mod python;
pub mod raw;
pub mod sent;
pub mod server;
pub mod settings;
pub mod sign_in;
pub mod signer;
pub mod snippets;
pub mod suite;
pub mod tables;
pub mod template;
pub mod terminal;
pub mod trace;
pub mod visitor;
pub mod world;
