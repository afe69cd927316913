//! The games: their catalogue, addresses, files, titles and images.
//!
//! | module | contents |
//! |---|---|
//! | [`catalogue`] | the existing games, in memory |
//! | [`hosts`] | the site to which a request was sent |
//! | [`canonical`] | redirects to a game's canonical address |
//! | [`files`] | deployed files, addressed by content |
//! | [`certified`] | the names that may have a certificate |
//! | [`content_hash`], [`immutable_files`] | which files of a deployment never change under their names |
//! | [`covers`] | which images lists may show |
//! | [`page_metadata`] | titles and images of pages |
//! | [`inspection`] | results of inspecting a deployment: title, images, warnings |
//! | [`panes`] | the addresses on which the Build page shows a game to several test players |
//! | [`live`] | current players: data that may be lost |
//! | [`takedown`] | responses for a game that was taken down |

pub mod canonical;
pub mod catalogue;
pub mod certified;
pub mod content_hash;
pub mod covers;
pub mod files;
pub mod hosts;
pub mod immutable_files;
pub mod inspection;
pub mod live;
pub mod page_metadata;
pub mod panes;
mod state;
pub mod takedown;

pub use self::state::GamesState;

use self::files::FileStore;
use self::live::Presence;
use crate::platform::nodes::Component;

/// Returns what of the games' services does not answer.
#[must_use]
pub fn faults(files: &FileStore, presence: &dyn Presence) -> Vec<Component> {
    let bucket = files.is_out_of_reach().then_some(Component::S3);
    let redis = (!presence.is_known()).then_some(Component::Redis);
    bucket.into_iter().chain(redis).collect()
}
