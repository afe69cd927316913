//! The platform: auth service, hosting, runtime, console.
//!
//! A slice may use those above it in this table, and none below; `players`,
//! `logs` and `admin` do not know each other. `cargo xtask tidy` checks it.
//!
//! | slice | holds |
//! |---|---|
//! | [`domain`], [`clock`], [`entropy`], [`origin`] | players, sessions, keys, projects: states and transitions; time and randomness, handed in |
//! | [`store`] | what must never be lost |
//! | [`web`] | what every answer goes through |
//! | [`config`] | the settings |
//! | [`platform`] | what every slice is handed |
//! | [`games`] | which games there are, and what they look like |
//! | [`auth`] | players: sessions, tokens, signing in and out, profiles |
//! | [`hosting`] | what answers on a game's own address |
//! | [`projects`] | projects, their deployments and settings |
//! | [`players`] | who plays, counted and ranked |
//! | [`logs`] | frontend logs |
//! | [`admin`] | administration |
//! | [`console`] | the platform's own pages |
//! | [`app`] | wiring, routes, start and stop |

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
