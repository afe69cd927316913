//! Counts players: how many play at the same time, how many unique players there are, how long each
//! played, and which games have most players.
//!
//! Every heartbeat is counted in memory; the sums are stored once a minute, so that a server that
//! is killed loses at most one minute.
//!
//! | module | contents |
//! |---|---|
//! | [`tally`] | the counts of one environment since they were last stored |
//! | [`persistence`] | storing counts, and removing old ones |
//! | [`ranking`] | the games by number of players |

pub mod persistence;
pub mod ranking;
pub mod tally;

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Mutex;
use uuid::Uuid;

use self::ranking::Ranking;
use self::tally::Tally;
use crate::clock::Millis;
use crate::domain::counting::periods;
use crate::games::catalogue::Game;
use crate::store::{Store, StoreError};

/// The tallies by audience.
type Tallies = HashMap<Arc<str>, Arc<Tally>>;

/// The counts of every environment.
#[derive(Debug, Default)]
pub struct Counting {
    /// Replaced as a whole when there is a new environment, which is rare, so reading it takes no
    /// lock.
    tallies: ArcSwap<Tallies>,
    /// The games by number of players.
    pub ranking: Ranking,
    /// When the players were last sampled.
    looked: Mutex<Option<Millis>>,
}

impl Counting {
    /// Continues with the stored counts of the previous process. The games are ranked a moment
    /// later, by `persistence::CountPlayers`.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn open(store: &dyn Store, now: Millis) -> Result<Self, StoreError> {
        let counting = Self::default();
        for stored in store.list_sketches(periods(now).into()).await? {
            let audience: Arc<str> = stored.environment.audience(&stored.slug).into();
            let tally = Tally::new(stored.slug, stored.environment, Arc::clone(&audience));
            counting
                .find_or_add(&audience, || tally)
                .resume(stored.sketch);
        }
        Ok(counting)
    }

    /// Counts a heartbeat. `shared` is the time since the player's last one on any node, if that is
    /// known.
    pub fn beat(&self, game: &Game, player: Uuid, now: Millis, shared: Option<Millis>) {
        self.tally_of(game).beat(player, now, shared);
    }

    fn tally_of(&self, game: &Game) -> Arc<Tally> {
        self.find_or_add(&game.audience, || {
            let audience = Arc::clone(&game.audience);
            Tally::new(game.slug.clone(), game.environment, audience)
        })
    }

    fn find_or_add(&self, audience: &Arc<str>, new: impl FnOnce() -> Tally) -> Arc<Tally> {
        if let Some(tally) = self.tallies.load().get(audience) {
            return Arc::clone(tally);
        }
        let added = Arc::new(new());
        self.tallies.rcu(|tallies| {
            let mut tallies = Tallies::clone(tallies);
            tallies
                .entry(Arc::clone(audience))
                .or_insert_with(|| Arc::clone(&added));
            tallies
        });
        // If two tasks add one at the same time, both use the first one.
        let tallies = self.tallies.load();
        tallies.get(audience).map_or(added, Arc::clone)
    }
}
