//! What may be lost: presence now; limits and streams of several nodes later.
//! In memory for one node.
//!
//! | module | holds |
//! |---|---|
//! | [`presence`] | who is playing, as a trait |
//! | [`memory`] | presence in memory, for one node |

pub mod memory;
pub mod presence;

pub use memory::MemoryPresence;
pub use presence::{LiveError, Presence};
