//! What every slice of the server is handed.
//!
//! Each slice has a state of its own beside it, and holds the states of the slices
//! that it may use: `ProjectsState` holds those of games, accounts and hosting.
//!
//! | module | holds |
//! |---|---|
//! | [`disk`] | how much of the disk is free, and refusing below a floor |
//! | [`jobs`] | periodic work beside the requests |
//! | [`single_flight`] | work that is done once for all who want it at one time |

pub mod disk;
pub mod jobs;
pub mod single_flight;

use std::net::SocketAddr;
use std::sync::Arc;

use crate::clock::Clock;
use crate::config::Config;
use crate::entropy::Entropy;
use crate::origin::PlatformOrigin;
use crate::platform::disk::DiskFloor;
use crate::store::Store;

/// The parts of the platform that every slice uses.
#[derive(Debug)]
pub struct Platform {
    /// What must never be lost.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// The settings in force.
    pub config: Config,
    /// The platform origin, resolved.
    pub origin: PlatformOrigin,
    /// `{auth_url}`, written once.
    pub auth_url: String,
    /// The socket that is listened on.
    pub listening: SocketAddr,
    /// How much of the disks stays free.
    pub disk: DiskFloor,
}
