//! The state that every slice of the server uses.
//!
//! Each slice also has its own state, which holds the states of the slices that it may use:
//! `ProjectsState` holds those of games, accounts and hosting.
//!
//! | module | contents |
//! |---|---|
//! | [`calendar`] | whether data may be removed because of its age |
//! | [`credit_limits`] | rate limits that all nodes share, and that rarely ask for it |
//! | [`disk`] | the free disk space, and errors below a limit |
//! | [`hints`] | hints to other nodes that something has changed |
//! | [`jobs`] | periodic work |
//! | [`metrics`] | what is counted for those who operate the server |
//! | [`nodes`] | this node among those that share its store |
//! | [`sealing`] | secrets that are encrypted in the store |
//! | [`shared_limits`] | rate limits that all nodes share |
//! | [`single_flight`] | work that is done once for all concurrent callers |

pub mod calendar;
pub mod credit_limits;
pub mod disk;
pub mod hints;
pub mod jobs;
pub mod metrics;
pub mod nodes;
pub mod sealing;
pub mod shared_limits;
pub mod single_flight;

use std::net::SocketAddr;
use std::sync::Arc;

use platform_telemetry::Telemetry;

use crate::clock::Clock;
use crate::config::Config;
use crate::entropy::Entropy;
use crate::origin::PlatformOrigin;
use crate::platform::disk::DiskFloor;
use crate::platform::metrics::Metrics;
use crate::platform::nodes::Nodes;
use crate::store::Store;

/// The parts of the platform that every slice uses.
#[derive(Debug)]
pub struct Platform {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of randomness.
    pub entropy: Arc<dyn Entropy>,
    /// The effective settings.
    pub config: Config,
    /// The platform origin, resolved.
    pub origin: PlatformOrigin,
    /// The origin below which games have their addresses; mostly the platform origin.
    pub games_origin: PlatformOrigin,
    /// `{auth_url}`, computed once.
    pub auth_url: String,
    /// The address on which the server listens.
    pub listening: SocketAddr,
    /// This node among those that share the store.
    pub nodes: Arc<Nodes>,
    /// The limit on free disk space.
    pub disk: DiskFloor,
    /// Counts what happens, if somebody can read it.
    pub metrics: Metrics,
    /// Sends traces and log lines, if the settings name a receiver.
    pub telemetry: Telemetry,
}
