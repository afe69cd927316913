//! How a game's files are answered: their contents, headers and parts.
//!
//! | module | decides |
//! |---|---|
//! | [`contents`] | what is read, kept in memory and compressed |
//! | [`headers`] | what is said of a file |
//! | [`range`] | which part of it was asked for |
//! | [`marks`] | what of a name may be a hash of the content |
//! | [`lasting`] | which files of a deployment never change under their names |
//! | [`earlier`] | which files of deployments before are still answered |

pub mod contents;
pub mod earlier;
pub mod headers;
pub mod lasting;
pub mod marks;
pub mod range;
mod state;

pub use self::state::HostingState;
