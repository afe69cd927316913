//! The platform's own pages: the list of games, and developers' pages.

mod state;

pub use self::state::ConsoleState;
