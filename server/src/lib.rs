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
//! | [`sharing`] | work that is done once for all who want it at one time |
//! | [`faces`], [`page_warnings`] | what they look like in a list; how their pages should load the runtime |
//! | [`entry`] | the one way in: ids, hosts, limits of time, CORS, the log |
//! | [`redirect`] | where a player goes back to |
//! | [`http`] | what every answer goes through |
//! | [`handlers`] | one endpoint a file |
//! | [`domain`] | players, sessions, keys, projects: states and transitions |
//! | [`store`] | what must never be lost |
//! | [`live`] | what may be lost |
//! | [`keys`] | the signing keys |
//! | [`tokens`] | verifying the platform's own game tokens |
//! | [`suspensions`], [`endings`] | who is suspended, and whose sessions ended, while their tokens live |
//! | [`sessions`] | sweeping sessions |
//! | [`refusals`] | keeping what was refused, within bounds |
//! | [`settings_limits`] | how often a project's settings may be written |
//! | [`guests`] | how fast guests are made |
//! | [`takedown`] | what games that were taken down answer, and the end of deleted projects |
//! | [`devices`] | how often devices may ask, and people type codes |
//! | [`logs`], [`log_streams`] | how many frontend log records are taken in, and how long they are kept; who follows them |
//! | [`data_folder`] | one server at a time in the data folder |
//! | [`disk`] | how much of the disk is free, and refusing below a floor |
//! | [`files`], [`archive`], [`deploy`](mod@deploy) | deployed files, the archives they come in, and how they come to be |
//! | [`backup`] | a copy of everything, beside a running server |
//! | [`backends`], [`demo`] | games' backends; the demo game |
//! | [`runtime`], [`console_files`] | `runtime.js`; what the console's pages load |
//! | [`charts`] | players over time as pictures |
//! | [`oidc`], [`demo_provider`] | signing in with OpenID Connect; a provider for trying it out |
//! | [`clock`], [`entropy`] | time and randomness, handed in |

pub mod admin;
pub mod archive;
pub mod auth;
pub mod backends;
pub mod backup;
pub mod charts;
pub mod config;
pub mod console;
pub mod console_files;
pub mod counting;
pub mod data_folder;
pub mod demo;
pub mod demo_provider;
pub mod deploy;
pub mod devices;
pub mod disk;
pub mod endings;
pub mod entry;
pub mod faces;
pub mod files;
pub mod games;
pub mod guests;
pub mod handlers;
pub mod hosting;
pub mod hosts;
pub mod http;
pub mod keys;
pub mod live;
pub mod log_streams;
pub mod logs;
pub mod oidc;
pub mod page_warnings;
pub mod platform;
pub mod players;
pub mod projects;
pub mod redirect;
pub mod refusals;
pub mod removal;
pub mod routes;
pub mod runtime;
pub mod sessions;
pub mod settings_limits;
pub mod sharing;
pub mod sites;
pub mod start;
pub mod state;
pub mod store;
pub mod suspensions;
pub mod takedown;
pub mod tokens;

pub use platform_domain::{self as domain, clock, entropy, origin};
pub use start::{Running, StartError, start, start_on};
