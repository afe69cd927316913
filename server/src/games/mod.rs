//! The games: which there are, where they are, and what they look like.
//!
//! | module | holds |
//! |---|---|
//! | [`catalogue`] | which games there are, in memory |
//! | [`hosts`] | whose address a request was sent to |
//! | [`files`] | deployed files by their content |
//! | [`content_hash`], [`immutable_files`] | which files of a deployment never change under their names |
//! | [`page_metadata`] | titles and pictures, by their pages |
//! | [`inspection`] | what the files of a deployment say: title, pictures, warnings |
//! | [`live`] | who is playing: what may be lost |
//! | [`takedown`] | what is answered for a game that was taken down |

pub mod catalogue;
pub mod content_hash;
pub mod files;
pub mod hosts;
pub mod immutable_files;
pub mod inspection;
pub mod live;
pub mod page_metadata;
mod state;
pub mod takedown;

pub use self::state::GamesState;
