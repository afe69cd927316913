//! What a player keeps of games: favourites, and those that were played lately.

use crate::clock::Millis;

/// Favourites of a player, at most.
pub const FAVOURITES: usize = 200;
/// How long it is kept when a player last played a game.
pub const PLAYED_MAX_AGE: Millis = 90 * 24 * 60 * 60 * 1_000;

/// What stores keep as the last hour of a game that a player had a token of, and did not play lately or
/// long enough to be noted: it says no more than that. It is never shown.
pub const PLAYED_ONCE: Millis = 0;

/// What a player keeps of a game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerGame {
    /// The project.
    pub slug: String,
    /// Since when it is a favourite; `None` if it is none.
    pub favourite_at: Option<Millis>,
    /// The start of the last hour in which it was played; `None` if that is long ago.
    pub played_at: Option<Millis>,
}

/// The result of making a game a favourite, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetFavourite {
    /// It is so now.
    Done,
    /// The player has as many favourites as they may.
    TooMany,
}
