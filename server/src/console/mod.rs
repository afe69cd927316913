//! The platform's own pages: the list of games, and pages for developers.
//!
//! | module | contents |
//! |---|---|
//! | [`handlers`] | the pages, one per file |
//! | [`command_line`](mod@command_line) | the command line that the platform hands out |
//! | [`documents`] | the documents as pages |
//! | [`files`] | the files that pages for developers load |
//! | [`storefront`] | the games of the public page, sorted and searched |

pub mod command_line;
pub mod documents;
pub mod files;
pub mod handlers;
mod state;
pub mod storefront;

pub use self::state::ConsoleState;
