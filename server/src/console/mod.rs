//! The platform's own pages: the list of games, and pages for developers.
//!
//! | module | contents |
//! |---|---|
//! | [`handlers`] | the pages, one per file |
//! | [`files`] | the files that pages for developers load |

pub mod files;
pub mod handlers;
mod state;

pub use self::state::ConsoleState;
