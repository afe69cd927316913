//! The state of games.

use std::sync::Arc;

use crate::games::catalogue::Catalogue;
use crate::games::files::FileStore;
use crate::games::live::Presence;
use crate::platform::Platform;
use crate::web::cors::{AllowedOrigin, Origins};

/// The state of games.
#[derive(Debug)]
pub struct GamesState {
    /// The state that every slice uses.
    pub platform: Arc<Platform>,
    /// The existing games.
    pub catalogue: Catalogue,
    /// Deployed files, addressed by content.
    pub files: Arc<FileStore>,
    /// The current players.
    pub presence: Arc<dyn Presence>,
}

impl Origins for GamesState {
    fn find(&self, origin: &str) -> Option<AllowedOrigin> {
        self.catalogue.caller(origin)
    }
}
