//! The server as a whole: wiring the slices, listening, and what concerns all of them.
//!
//! | module | holds |
//! |---|---|
//! | [`start`](mod@start) | from settings to a running server, and back |
//! | [`state`] | the slices' states together |
//! | [`routes`] | the one table of hosts and paths, grouped by who calls |
//! | [`entry`] | the one way in: ids, hosts, problems, the log |
//! | `error_page` | problems as pages, for people |
//! | `guard` | an answer for handlers that panic or take too long |
//! | `jobs` | the periodic work of all slices |
//! | [`openapi`] | the description of the project API |
//! | [`data_folder`] | one server at a time in the data folder |
//! | [`backup`] | a copy of everything, beside a running server |
//! | [`demo`] | the demo game |

pub mod backup;
pub mod data_folder;
pub mod demo;
pub mod entry;
mod error_page;
mod guard;
mod jobs;
pub mod openapi;
pub mod routes;
pub mod start;
pub mod state;

pub use self::start::{Running, StartError, start, start_on};
