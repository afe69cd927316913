//! The state of hosting.

use std::sync::Arc;

use crate::games::GamesState;
use crate::hosting::backends::Backends;
use crate::hosting::file_cache::Contents;
use crate::hosting::runtime::RuntimeFiles;
use crate::platform::Platform;
use crate::store::StoreError;

/// The state of the endpoints on games' own addresses.
#[derive(Debug)]
pub struct HostingState {
    /// The state that every slice uses.
    pub platform: Arc<Platform>,
    /// The games that are hosted.
    pub games: Arc<GamesState>,
    /// Deployed files, with a cache.
    pub contents: Contents,
    /// The games' own backends.
    pub backends: Backends,
    /// `runtime.js` and its source map.
    pub runtime: RuntimeFiles,
}

impl HostingState {
    /// Reads the games of one project again, after this node has changed it, and waits until the
    /// other nodes have done the same.
    ///
    /// # Errors
    /// Errors of the store; the previous state is then kept.
    pub async fn refresh(&self, slug: &str) -> Result<(), StoreError> {
        self.read(slug).await?;
        self.platform.nodes.settle().await;
        Ok(())
    }

    /// Reads the games of one project again, and closes connections to backends that do not belong
    /// to them any more.
    ///
    /// # Errors
    /// Errors of the store; the previous state is then kept.
    pub async fn read(&self, slug: &str) -> Result<(), StoreError> {
        let catalogue = &self.games.catalogue;
        let (store, files) = (&*self.platform.store, &self.games.files);
        catalogue.refresh(store, files, slug).await?;
        self.backends.follow(catalogue, Some(slug));
        Ok(())
    }

    /// Does the same for all games.
    ///
    /// # Errors
    /// Errors of the store; the previous state is then kept.
    pub async fn refresh_all(&self) -> Result<(), StoreError> {
        let catalogue = &self.games.catalogue;
        let (store, files) = (&*self.platform.store, &self.games.files);
        catalogue.refresh_all(store, files).await?;
        self.backends.follow(catalogue, None);
        Ok(())
    }
}
