//! The games by number of players in the last day.

use std::sync::Arc;

use tokio::sync::watch;

use crate::clock::Millis;
use crate::domain::counting::{DAY, HOUR, RANKED_PLAY, RankedProject};
use crate::store::{Store, StoreError};

/// The games by the number of unique players who played them for a minute or more in the last 24
/// hours, including the current hour. It is computed every minute, so that showing it costs
/// nothing.
#[derive(Debug, Default)]
pub struct Ranking(watch::Sender<Option<Ranked>>);

type Ranked = Arc<Vec<RankedProject>>;

impl Ranking {
    /// Computes it again.
    ///
    /// # Errors
    /// Errors of the store; the previous ranking is then kept, or stays empty if there was none.
    pub async fn refresh(&self, store: &dyn Store, now: Millis) -> Result<(), StoreError> {
        let since = now - DAY + HOUR;
        self.replace(store.rank_projects(since, RANKED_PLAY).await)
    }

    /// Computes it again for all nodes that share the store.
    ///
    /// # Errors
    /// As [`Ranking::refresh`].
    pub async fn refresh_for_all(&self, store: &dyn Store, now: Millis) -> Result<(), StoreError> {
        self.refresh(store, now).await?;
        let ranked = self.0.borrow().clone().unwrap_or_default();
        store.set_ranking(Vec::clone(&ranked)).await
    }

    /// Reads the ranking that another node has computed.
    ///
    /// # Errors
    /// As [`Ranking::refresh`].
    pub async fn read(&self, store: &dyn Store) -> Result<(), StoreError> {
        self.replace(store.list_ranking().await)
    }

    fn replace(&self, ranked: Result<Vec<RankedProject>, StoreError>) -> Result<(), StoreError> {
        match ranked {
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

    /// Returns the games with players, the most played first, without games that have none. Right
    /// after the start this waits until they are ranked. The start itself does not wait for this,
    /// since it takes longer the more players there were.
    pub async fn load(&self) -> Ranked {
        let mut ranking = self.0.subscribe();
        // The sender exists as long as this.
        let ranked = ranking.wait_for(Option::is_some).await;
        ranked.map_or_else(
            |_| Arc::default(),
            |ranked| ranked.clone().unwrap_or_default(),
        )
    }
}
