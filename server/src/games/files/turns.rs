//! Whose turn it is to fetch a file from the bucket, so that one game's files do not keep those of
//! all others waiting.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many small files are fetched at the same time, and how many of them for one game.
const SMALL: (usize, usize) = (16, 12);
/// How many large files are fetched at the same time, and how many of them for one game.
const LARGE: (usize, usize) = (4, 2);

/// The turns for fetching files. Those of one game that wait for the game's share stand in no
/// other game's way.
#[derive(Debug)]
pub(super) struct FetchTurns {
    small: Lane,
    large: Lane,
}

/// The turns for files of one kind.
#[derive(Debug)]
struct Lane {
    all: Arc<Semaphore>,
    share: usize,
    /// The shares of the games that have a turn, or wait for one.
    games: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A turn, until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it ends the turn"]
pub(super) struct FetchTurn {
    /// `None` never happens: nobody closes the semaphores.
    _share: Option<OwnedSemaphorePermit>,
    _place: Option<OwnedSemaphorePermit>,
}

impl FetchTurns {
    pub(super) fn new() -> Self {
        Self {
            small: Lane::new(SMALL),
            large: Lane::new(LARGE),
        }
    }

    /// Waits for a turn to fetch a file of `game`.
    pub(super) async fn wait(&self, game: &str, is_large: bool) -> FetchTurn {
        let lane = if is_large { &self.large } else { &self.small };
        lane.wait(game).await
    }
}

impl Lane {
    fn new((all, share): (usize, usize)) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            share,
            games: Mutex::default(),
        }
    }

    async fn wait(&self, game: &str) -> FetchTurn {
        // The game's own share first, so that only as many of its files wait among all others.
        let share = self.share_of(game).acquire_owned().await.ok();
        let place = Arc::clone(&self.all).acquire_owned().await.ok();
        FetchTurn {
            _share: share,
            _place: place,
        }
    }

    fn share_of(&self, game: &str) -> Arc<Semaphore> {
        let mut games = self.games.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = games.get(game) {
            return Arc::clone(share);
        }
        // Whoever has a turn, or waits for one, holds a reference.
        games.retain(|_, share| Arc::strong_count(share) > 1);
        let share = Arc::new(Semaphore::new(self.share));
        games.insert(game.to_owned(), Arc::clone(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_game_has_its_share_and_others_have_the_rest() {
        let turns = FetchTurns::new();
        let large = |game| turns.wait(game, true).now_or_never();
        let first: Vec<_> = (0..9).filter_map(|_| large("a")).collect();
        let second: Vec<_> = (0..9).filter_map(|_| large("b")).collect();
        assert_eq!((first.len(), second.len()), (2, 2));
        assert!(large("c").is_none(), "all four are taken");
        let small: Vec<_> = (0..99)
            .filter_map(|_| turns.wait("a", false).now_or_never())
            .collect();
        assert_eq!(small.len(), 12);
        drop(first);
        assert!(large("b").is_none(), "it has its share");
        assert!(large("c").is_some());
        // Games that have no turn are forgotten.
        assert!(large("d").is_some());
        assert_eq!(turns.large.games.lock().unwrap().len(), 2, "b, d");
    }
}
