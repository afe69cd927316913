//! What the games' own parts are handed.

use std::sync::Arc;

use crate::games::catalogue::Catalogue;
use crate::games::files::FileStore;
use crate::games::live::Presence;
use crate::platform::Platform;
use crate::web::cors::{AllowedOrigin, Origins};

/// The games, and what is known of them.
#[derive(Debug)]
pub struct GamesState {
    /// What every slice uses.
    pub platform: Arc<Platform>,
    /// Which games there are.
    pub catalogue: Catalogue,
    /// Deployed files by their content.
    pub files: Arc<FileStore>,
    /// Who is playing.
    pub presence: Arc<dyn Presence>,
}

impl Origins for GamesState {
    fn find(&self, origin: &str) -> Option<AllowedOrigin> {
        self.catalogue.caller(origin)
    }
}
