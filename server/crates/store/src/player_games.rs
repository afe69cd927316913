//! Players' games: the part of the store that knows favourites, and which games were played lately.
//! [`add_play_times`](super::CountingStore::add_play_times) notes what is played in production, and a
//! merge of two players unites what they keep.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::player_game::{PlayerGame, SetFavourite};
use uuid::Uuid;

use super::StoreError;

/// Operations on players' games. [`Store`](super::Store) documents what every method guarantees.
#[async_trait]
pub trait PlayerGameStore: Send + Sync {
    /// Makes a game a favourite of a player, who may have `most`, or takes that away. What is so
    /// already stays as it is.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn set_favourite(
        &self,
        player: Uuid,
        slug: &str,
        favourite: bool,
        most: usize,
        now: Millis,
    ) -> Result<SetFavourite, StoreError>;

    /// Returns the favourites of a player, and at most `played` of the games that they played last:
    /// those played last first, and those that were not played lately by slug.
    async fn list_player_games(
        &self,
        player: Uuid,
        played: usize,
    ) -> Result<Vec<PlayerGame>, StoreError>;

    /// Notes that a player gets a token of a game: if the player is deleted, its webhook is told, and no
    /// other one. It is kept until then. A project that does not exist is no error.
    async fn note_token(&self, player: Uuid, slug: &str) -> Result<(), StoreError>;

    /// Forgets when games were played, if that was before `before`, of at most `limit` of them; that they
    /// were stays known. Returns of how many.
    async fn sweep_played(&self, before: Millis, limit: usize) -> Result<usize, StoreError>;
}
