//! The games by their players of the last day.

use std::sync::Arc;

use tokio::sync::watch;

use crate::clock::Millis;
use crate::domain::counting::{DAY, HOUR, RANKED_PLAY, RankedProject};
use crate::store::{Store, StoreError};

/// The games by how many different players played them for a minute or more in
/// the last 24 hours, the running one among them. Made anew every minute, so
/// that showing it costs nothing.
#[derive(Debug, Default)]
pub struct Ranking(watch::Sender<Option<Ranked>>);

type Ranked = Arc<Vec<RankedProject>>;

impl Ranking {
    /// Makes it anew.
    ///
    /// # Errors
    /// The store's; the ranking then stays as it was, and is empty if there was
    /// none.
    pub async fn refresh(&self, store: &dyn Store, now: Millis) -> Result<(), StoreError> {
        let since = now - DAY + HOUR;
        match store.rank_projects(since, RANKED_PLAY).await {
            Ok(ranked) => {
                self.0.send_replace(Some(ranked.into()));
                Ok(())
            }
            Err(error) => {
                self.0.send_if_modified(|ranked| {
                    let was_none = ranked.is_none();
                    ranked.get_or_insert_default();
                    was_none
                });
                Err(error)
            }
        }
    }

    /// The games with players, the one with most first. A game without any is
    /// not there. Right after the start this waits until they are ranked, which
    /// the start itself does not: the more players there were, the longer it
    /// takes.
    pub async fn load(&self) -> Ranked {
        let mut ranking = self.0.subscribe();
        // Its sender lives as long as this.
        let ranked = ranking.wait_for(Option::is_some).await;
        ranked.map_or_else(
            |_| Arc::default(),
            |ranked| ranked.clone().unwrap_or_default(),
        )
    }
}
