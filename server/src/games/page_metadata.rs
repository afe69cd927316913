//! What lists show of games: the titles and descriptions of their pages, the images that these name,
//! and what developers set in their place.

use platform_game_pages::images::path_of;
use platform_game_pages::metadata::own_cover;
use platform_protocol::names::Environment;
use url::Url;

use crate::domain::project::Inspection;
use crate::games::catalogue::Game;

/// What a list shows of a game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameListing {
    /// What is set, its page's title, or its slug.
    pub title: String,
    /// The address of its image, if one of its own files is set or named by its page.
    pub picture: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// Who made it.
    pub author: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
}

impl GameListing {
    /// Creates the listing of a game. `is_file` returns whether a path is served from a file: a
    /// backend would learn of everybody who looks at the list.
    #[must_use]
    pub fn of(game: &Game, is_file: impl Fn(&str) -> bool) -> Self {
        let found = inspection(game);
        let own = &game.listing.own;
        let cover = own.cover.as_deref();
        let cover = cover.and_then(|cover| cover_address(game, cover));
        let pictures = found.map(|found| found.pictures.as_slice());
        let pictures = cover.iter().chain(pictures.unwrap_or_default());
        let address = |picture: &String| {
            let address = Url::parse(&format!("{}{picture}", game.origin)).ok()?;
            let path = path_of(picture)?;
            let is_small = found?.measured.get(&*path) == Some(&true);
            let shown = is_small && is_file(address.path());
            shown.then(|| String::from(address))
        };
        let picture = { pictures }.find_map(address);
        let words = found.map(|found| found.words.clone()).unwrap_or_default();
        Self {
            title: title(game),
            picture,
            description: own.description.clone().or(words.description),
            author: own.author.clone().or(words.author),
            tags: own.tags.clone().unwrap_or(words.tags),
        }
    }
}

/// Returns path and query of a cover, if it is an image among the files of the game.
#[must_use]
pub fn cover_address(game: &Game, cover: &str) -> Option<String> {
    let files = &game.deployment.as_ref()?.files;
    let page = format!("{}/", game.origin);
    own_cover(cover, &page, |path| files.contains_key(path))
}

/// Returns the name of a game: the title that is set or that of its page, or its slug.
#[must_use]
pub fn title(game: &Game) -> String {
    let set = game.listing.own.title.clone();
    let title = set.or_else(|| inspection(game).and_then(|found| found.title.clone()));
    let title = title.unwrap_or_else(|| game.slug.clone());
    match game.environment {
        Environment::Prod => title,
        // The two environments must be distinguishable.
        Environment::Dev => format!("{title} (dev)"),
    }
}

fn inspection(game: &Game) -> Option<&Inspection> {
    game.deployment.as_ref()?.inspection.as_ref()
}
