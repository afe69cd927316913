//! The state of the platform's own pages.

use std::sync::{Arc, OnceLock};

use crate::console::command_line::CommandLine;
use crate::console::documents::Documents;
use crate::console::files::ConsoleFiles;
use crate::console::storefront::Storefronts;
use crate::platform::Platform;
use crate::players::PlayersState;
use crate::web::asset::{Asset, packed};

/// The state of the platform's own pages.
#[derive(Debug)]
pub struct ConsoleState {
    /// The state that every slice uses.
    pub platform: Arc<Platform>,
    /// The ranking, for the list of games.
    pub players: Arc<PlayersState>,
    /// The games of the public page.
    pub storefronts: Storefronts,
    /// The files that pages for developers load.
    pub files: ConsoleFiles,
    /// The command line that the platform hands out.
    pub command_line: CommandLine,
    /// The stylesheet of all pages.
    pub stylesheet: Asset,
    documents: OnceLock<Documents>,
}

impl ConsoleState {
    /// Creates the state of this platform's pages.
    #[must_use]
    pub fn new(
        platform: Arc<Platform>,
        players: Arc<PlayersState>,
        command_line: CommandLine,
    ) -> Self {
        Self {
            platform,
            players,
            storefronts: Storefronts::default(),
            files: ConsoleFiles::default(),
            command_line,
            stylesheet: stylesheet(),
            documents: OnceLock::new(),
        }
    }

    /// Returns the documents, which the first request for them renders.
    pub fn documents(&self) -> &Documents {
        self.documents
            .get_or_init(|| Documents::new(&self.platform.origin, &self.platform.games_origin))
    }
}

/// Error pages on any host load it from the platform.
fn stylesheet() -> Asset {
    let css = packed!("platform.css");
    Asset::new(css, "text/css; charset=utf-8", "public, max-age=300").for_any_origin()
}
