//! Players over time: the part of the store that counts them.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::counting::{
    DistinctCount, NewCounts, NewPlayTime, PlayerCount, RankedProject, Span, StoredSketch,
};
use platform_protocol::names::Environment;

use super::StoreError;

/// Operations on players over time. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait CountingStore: Send + Sync {
    /// Adds minutes of players, each to its own count and to that of its hour, and unites the
    /// sketches of the players with those in the store; all or none.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn add_player_counts(&self, counts: Vec<NewCounts>) -> Result<(), StoreError>;

    /// Adds to the play times of players; all or none.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn add_play_times(&self, times: Vec<NewPlayTime>) -> Result<(), StoreError>;

    /// Returns the number of players in each span of an environment that began
    /// at `from` or later and before `to`, oldest first. Spans without players
    /// are left out.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn list_player_counts(
        &self,
        slug: &str,
        environment: Environment,
        span: Span,
        from: Millis,
        to: Millis,
    ) -> Result<Vec<PlayerCount>, StoreError>;

    /// Returns the number of different players of an environment: for the
    /// newest days, then for the newest months, at most `limit` of each.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn list_distinct_players(
        &self,
        slug: &str,
        environment: Environment,
        limit: usize,
    ) -> Result<Vec<DistinctCount>, StoreError>;

    /// Returns the sketches of these periods, for every environment.
    async fn list_sketches(&self, periods: Vec<String>) -> Result<Vec<StoredSketch>, StoreError>;

    /// Returns the projects by the number of players who played at least
    /// `least` milliseconds in production since the hour of `since`, most
    /// players first. A merged guest counts as its account; a guest that has
    /// signed out does not count.
    async fn rank_projects(
        &self,
        since: Millis,
        least: Millis,
    ) -> Result<Vec<RankedProject>, StoreError>;

    /// Replaces the ranking that every node shows.
    async fn set_ranking(&self, ranked: Vec<RankedProject>) -> Result<(), StoreError>;

    /// Returns the ranking that was set last, in its order.
    async fn list_ranking(&self) -> Result<Vec<RankedProject>, StoreError>;

    /// Removes at most `limit` minutes of players before `minutes_before`, as many hours of play
    /// time that ended before `play_before`, and the sketches of all periods but `running`. The
    /// hourly counts of players and the numbers of different players stay. Returns the largest
    /// number of rows of one kind that it removed.
    async fn sweep_counts(
        &self,
        minutes_before: Millis,
        play_before: Millis,
        running: Vec<String>,
        limit: usize,
    ) -> Result<usize, StoreError>;
}
