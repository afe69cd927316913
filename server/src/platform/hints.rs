//! Hints to other nodes that something has changed in the store. They may be lost: nodes also look
//! every second.

use std::fmt;

use async_trait::async_trait;

/// Passes hints between nodes. It never fails or takes long.
#[async_trait]
pub trait Hints: Send + Sync + fmt::Debug {
    /// Tells all nodes that something has changed.
    async fn tell(&self);

    /// Returns when a node has told of a change since the last time.
    async fn told(&self);
}
