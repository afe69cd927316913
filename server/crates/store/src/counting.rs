//! Players over time: the part of the store that counts them.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::counting::{
    DistinctCount, NewCounts, NewPlayTime, PlayerCount, RankedProject, Span, StoredSketch,
};
use platform_protocol::names::Environment;

use super::StoreError;

/// Operations on players over time. [`Store`](super::Store)'s documentation says
/// what every one promises.
#[async_trait]
pub trait CountingStore: Send + Sync {
    /// Adds minutes of players, each to itself and to its hour, and replaces the
    /// sketches of who was there; all or none.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn add_player_counts(&self, counts: Vec<NewCounts>) -> Result<(), StoreError>;

    /// Adds to what players have played; all or none.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn add_play_times(&self, times: Vec<NewPlayTime>) -> Result<(), StoreError>;

    /// How many played in the spans of an environment that began at `from` or
    /// later and before `to`, oldest first. A span without a player is left out.
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

    /// How many different players an environment had: the newest days, then the
    /// newest months, at most `limit` of each.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn list_distinct_players(
        &self,
        slug: &str,
        environment: Environment,
        limit: usize,
    ) -> Result<Vec<DistinctCount>, StoreError>;

    /// The sketches of these periods, of every environment.
    async fn list_sketches(&self, periods: Vec<String>) -> Result<Vec<StoredSketch>, StoreError>;

    /// The projects by how many players played `least` milliseconds in
    /// production since the hour of `since`, most first. A guest that was
    /// merged counts as its account, and one that has signed out not at all.
    async fn rank_projects(
        &self,
        since: Millis,
        least: Millis,
    ) -> Result<Vec<RankedProject>, StoreError>;

    /// Removes at most `limit` minutes of players before `minutes_before` and as
    /// many hours of play that ended before `play_before`, and the sketches of
    /// all periods but `running`; hours of players and numbers stay. Answers how
    /// many of what there was most.
    async fn sweep_counts(
        &self,
        minutes_before: Millis,
        play_before: Millis,
        running: Vec<String>,
        limit: usize,
    ) -> Result<usize, StoreError>;
}
