//! The harness of the end-to-end tests: real browsers, a real server, and a gateway between them
//! that counts, holds and corrupts requests.
//!
//! | module | contents |
//! |---|---|
//! | [`settings`] | the paths of drivers and browsers; the only reader of the environment |
//! | [`poll`] | waiting for a condition, with a time limit |
//! | [`process`] | child processes that end with their owner |
//! | [`raw`] | requests that no HTTP library would send |
//! | [`browser`] | engines, their drivers, sessions, what a page logged and requested |
//! | [`accessibility`] | the findings of axe-core for a page |
//! | [`suite`] | running one body in every engine |
//! | [`gateway`] | a reverse proxy that counts, holds and corrupts requests |
//! | [`shared`] | what the nodes of one platform share, if tests run against several nodes |
//! | [`balancer`] | a balancer before them |
//! | [`backend`] | a game's backend that records every call |
//! | [`world`] | a platform in this process, with games published on it |
//! | [`identity_provider`] | independent providers to sign in with |
//! | [`sign_in`] | signing in as players do, with the controls of the pages |
//! | [`runtime_requests`] | what the runtime in a page sent on its own |
//! | [`device`] | a device that signs in without a browser, over plain HTTP |
//! | [`dev_server`] | a game developer's own server on this machine |
//! | [`server`] | the real server program as a child process |
//! | [`https`] | the same with TLS of its own |
//! | [`snippets`] | the documents' backends in other languages, as programs |
//! | [`signer`] | tokens of every kind, and the key set that goes with them |
//! | [`trace`] | reading the output of `strace` |
//! | [`python`] | programs from PyPI, in separate environments |
//! | [`nodes`] | several nodes behind a balancer, and load while parts of them are broken |
//! | [`npm`] | programs from npm, installed from their lock files |
//! | [`hostile_provider`] | identity providers that misbehave on demand |
//! | [`load`] | a server that is killed while it responds |
//! | [`racing`] | browsers that sign in at the same time |
//! | [`simulation`] | an open-loop crowd on a real platform, and what both count |
//! | [`crowd`] | many players whose heartbeats are recorded |
//! | [`deployer`] | a player who deploys to a server program |
//! | [`platform`] | a platform in this process, for plain HTTP |
//! | [`person`], [`forms`] | a person with cookies who signs in, over plain HTTP |
//! | [`owner`] | an owner of projects, over plain HTTP |
//! | [`maker`] | a game developer at a terminal, with the real command-line tool |
//! | [`tables`] | the content of the store |
//! | [`template`] | the template as a game developer uses it, with the test's own tool |
//! | [`terminal`] | a developer's terminal, with the real command line |
//! | [`visitor`] | a visitor without a browser: cookie, token, plain HTTP |

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a harness reports what it cannot do by failing the test"
)]

pub mod accessibility;
pub mod backend;
pub mod balancer;
pub mod browser;
pub mod crowd;
pub mod deployer;
pub mod dev_server;
pub mod device;
pub mod followers;
pub mod forms;
pub mod gateway;
pub mod hostile;
pub mod hostile_provider;
pub mod https;
pub mod identity_provider;
pub mod load;
pub mod maker;
pub mod newcomer;
pub mod nodes;
pub mod npm;
pub mod owner;
pub mod person;
pub mod platform;
pub mod poll;
pub mod process;
pub mod python;
pub mod racing;
pub mod raw;
pub mod runtime_requests;
pub mod server;
pub mod settings;
pub mod shared;
pub mod sign_in;
pub mod signer;
pub mod simulation;
pub mod snippets;
pub mod suite;
pub mod tables;
pub mod template;
pub mod terminal;
pub mod trace;
pub mod visitor;
pub mod world;
