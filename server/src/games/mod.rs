//! The games: which there are, and what they look like.

mod state;

pub use self::state::GamesState;
