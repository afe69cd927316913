//! What hosting is handed.

use std::sync::Arc;

use crate::games::GamesState;
use crate::hosting::backends::Backends;
use crate::hosting::contents::Contents;
use crate::hosting::runtime::RuntimeFiles;
use crate::platform::Platform;
use crate::store::StoreError;

/// What answers on games' own addresses.
#[derive(Debug)]
pub struct HostingState {
    /// What every slice uses.
    pub platform: Arc<Platform>,
    /// The games that are hosted.
    pub games: Arc<GamesState>,
    /// Deployed files as they are sent, those in use in memory.
    pub contents: Contents,
    /// The games' own backends.
    pub backends: Backends,
    /// `runtime.js` and its source map.
    pub runtime: RuntimeFiles,
}

impl HostingState {
    /// Reads from the store which games there are, and ends what is open to the
    /// backends of those that were taken down.
    ///
    /// # Errors
    /// The store's; what was known stays so.
    pub async fn read_games(&self) -> Result<(), StoreError> {
        self.games.catalogue.refresh(&*self.platform.store).await?;
        self.backends.follow(&self.games.catalogue);
        Ok(())
    }
}
