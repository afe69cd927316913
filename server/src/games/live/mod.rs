//! Data that may be lost: presence now, later also limits and streams of several nodes. In memory,
//! for one node.
//!
//! | module | contents |
//! |---|---|
//! | [`presence`] | the trait for current players |
//! | [`memory`] | presence in memory, for one node |

pub mod memory;
pub mod presence;

pub use memory::MemoryPresence;
pub use presence::{LiveError, Presence};
