//! The platform: auth service, hosting, runtime, console.
//!
//! | module | holds |
//! |---|---|
//! | [`config`] | the settings |
//! | [`origin`] | the platform origin and what follows from it |
//! | [`start`](mod@start) | from settings to a running server |
//! | [`state`] | what every handler is handed |
//! | [`routes`] | the one table of hosts and paths |
//! | [`hosts`], [`sites`] | whose address a request was sent to; which games there are |
//! | [`titles`] | what they are called |
//! | [`http`] | what every answer goes through |
//! | [`handlers`] | one endpoint a file |
//! | [`domain`] | players, sessions, keys, projects: states and transitions |
//! | [`store`] | what must never be lost |
//! | [`live`] | what may be lost |
//! | [`keys`] | the signing keys |
//! | [`tokens`] | verifying the platform's own game tokens |
//! | [`suspensions`], [`sessions`] | who is suspended while their token lives; sweeping sessions |
//! | [`logs`] | how many frontend log records are taken in, and how long they are kept |
//! | [`data_folder`] | one server at a time in the data folder |
//! | [`files`], [`deploy`](mod@deploy) | deployed files, and how they come to be |
//! | [`backends`], [`demo`] | games' backends; the demo game |
//! | [`runtime`] | `runtime.js` |
//! | [`oidc`], [`demo_provider`] | signing in with OpenID Connect; a provider for trying it out |
//! | [`clock`], [`entropy`] | time and randomness, handed in |

pub mod backends;
pub mod clock;
pub mod config;
pub mod data_folder;
pub mod demo;
pub mod demo_provider;
pub mod deploy;
pub mod domain;
pub mod entropy;
pub mod files;
pub mod handlers;
pub mod hosts;
pub mod http;
pub mod keys;
pub mod live;
pub mod logs;
pub mod oidc;
pub mod origin;
pub mod routes;
pub mod runtime;
pub mod sessions;
pub mod sites;
pub mod start;
pub mod state;
pub mod store;
pub mod suspensions;
pub mod titles;
pub mod tokens;

pub use start::{Running, StartError, start};
