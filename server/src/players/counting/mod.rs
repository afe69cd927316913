//! Counting players: how many at once, how many different ones, how long each
//! played, and which games most of them play.
//!
//! Every heartbeat is counted in memory; what it adds up to is kept once a
//! minute, so that a server that is killed loses a minute at most.
//!
//! | module | holds |
//! |---|---|
//! | [`tally`] | the players of one environment since the last time it was kept |
//! | [`persistence`] | keeping it, and removing what is old |
//! | [`ranking`] | the games by their players |

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

/// What is counted, of every environment.
#[derive(Debug, Default)]
pub struct Counting {
    /// Replaced as a whole when an environment is new, which is seldom; so
    /// finding one takes no lock.
    tallies: ArcSwap<Tallies>,
    /// The games by their players.
    pub ranking: Ranking,
    /// When the players were last looked at. Held while they are, so that each
    /// moment counts once.
    looked: Mutex<Option<Millis>>,
}

impl Counting {
    /// Goes on where the last process stopped. The games are ranked a moment
    /// later, by `persistence::CountPlayers`.
    ///
    /// # Errors
    /// The store's.
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

    /// Counts a heartbeat.
    pub fn beat(&self, game: &Game, player: Uuid, now: Millis) {
        let new = || {
            let audience = Arc::clone(&game.audience);
            Tally::new(game.slug.clone(), game.environment, audience)
        };
        self.find_or_add(&game.audience, new).beat(player, now);
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
        // Of two who add at once, both use the one that is there.
        let tallies = self.tallies.load();
        tallies.get(audience).map_or(added, Arc::clone)
    }
}
