//! What the platform's own pages are handed.

use std::sync::Arc;

use crate::console::files::ConsoleFiles;
use crate::platform::Platform;
use crate::players::PlayersState;
use crate::web::asset::{Asset, packed};

/// The parts of the platform's own pages.
#[derive(Debug)]
pub struct ConsoleState {
    /// What every slice uses.
    pub platform: Arc<Platform>,
    /// The ranking, for the list of games.
    pub players: Arc<PlayersState>,
    /// What the pages for developers load.
    pub files: ConsoleFiles,
    /// The stylesheet of all pages.
    pub stylesheet: Asset,
}

impl ConsoleState {
    /// The pages of this platform.
    #[must_use]
    pub fn new(platform: Arc<Platform>, players: Arc<PlayersState>) -> Self {
        Self {
            platform,
            players,
            files: ConsoleFiles::default(),
            stylesheet: stylesheet(),
        }
    }
}

/// Pages about what is not there, on any host, take their looks from it.
fn stylesheet() -> Asset {
    let css = packed!("platform.css");
    Asset::new(css, "text/css; charset=utf-8", "public, max-age=300").for_any_origin()
}
