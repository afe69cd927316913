//! The server as a whole: it connects the slices, listens, and does what concerns all of them.
//!
//! | module | contents |
//! |---|---|
//! | [`start`](mod@start) | start and shutdown of the server |
//! | [`state`] | the combined states of the slices |
//! | [`routes`] | the table of hosts and paths, grouped by callers |
//! | [`entry`] | the entry point of all requests: ids, hosts, problems, the log |
//! | `error_page` | problems as HTML pages |
//! | `guard` | responses for handlers that panic or take too long |
//! | `matched_route` | which route answered a request, for the metrics |
//! | `jobs` | the periodic work of all slices |
//! | `changes` | following what other nodes and the operator's commands change |
//! | [`operations`] | health checks and metrics on a socket of their own |
//! | [`overload`] | admission control: what is refused if too many requests arrive |
//! | [`telemetry`] | the receiver of traces and log lines |
//! | [`tls`] | TLS of the platform's own: listeners and certificates |
//! | [`openapi`] | the description of the project API |
//! | [`sockets`] | sockets that a service manager passes to the server |
//! | [`service_manager`] | telling the service manager that the server is ready, works, and stops |
//! | [`data_folder`] | the lock on the data folder |
//! | [`backup`] | a copy of all data, while the server runs |
//! | [`backups`] | the backups that the server makes by itself |
//! | [`restore`] | checking a backup, and going back to it |
//! | `moving` | moving a platform into another store, with the feature `cluster` |
//! | [`doctor`] | what is wrong with a platform, and what to do |
//! | `demo` | the demo game, with the feature `demo` |

pub mod backup;
pub mod backups;
mod changes;
pub mod data_folder;
#[cfg(feature = "demo")]
pub mod demo;
pub mod doctor;
pub mod entry;
mod error_page;
mod guard;
mod jobs;
mod matched_route;
#[cfg(feature = "cluster")]
pub mod moving;
pub mod openapi;
pub mod operations;
pub mod overload;
pub mod restore;
pub mod routes;
pub mod service_manager;
pub mod sockets;
pub mod start;
pub mod state;
pub mod telemetry;
pub mod tls;

pub use self::start::{Running, StartError, start, start_on, start_with};
