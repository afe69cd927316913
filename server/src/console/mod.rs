//! The platform's own pages: the list of games, and developers' pages.
//!
//! | module | holds |
//! |---|---|
//! | [`handlers`] | the pages, one a file |
//! | [`files`] | what the pages for developers load |

pub mod files;
pub mod handlers;
mod state;

pub use self::state::ConsoleState;
