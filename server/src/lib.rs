//! The platform: auth service, hosting, runtime, console.
//!
//! A slice may use those above it in this table, and none below; `players`, `logs` and `admin` do
//! not use each other. `cargo xtask tidy` checks this.
//!
//! | slice | contents |
//! |---|---|
//! | [`domain`], [`clock`], [`entropy`], [`origin`] | states and transitions; time and randomness |
//! | [`store`] | the store |
//! | [`web`] | what every answer goes through |
//! | [`config`] | the settings |
//! | [`platform`] | the state that every slice uses |
//! | [`games`] | the existing games, and their titles and images |
//! | [`auth`] | players: sessions, tokens, signing in and out, profiles |
//! | [`hosting`] | the endpoints on a game's own address |
//! | [`projects`] | projects, their deployments and settings |
//! | [`players`] | players: counts and ranking |
//! | [`logs`] | frontend logs |
//! | [`admin`] | administration |
//! | [`console`] | the platform's own pages |
//! | [`app`] | wiring, routes, start and shutdown |

pub mod admin;
pub mod app;
pub mod auth;
pub mod config;
pub mod console;
pub mod games;
pub mod hosting;
pub mod logs;
pub mod platform;
pub mod players;
pub mod projects;
pub mod store;

pub use app::{Running, StartError, start, start_on};
pub use platform_domain::{self as domain, clock, entropy, origin};
pub use platform_web as web;
