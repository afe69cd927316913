//! What nodes share and may lose, in Redis: the current players of each game, rate limits, and hints
//! that something has changed.
//! Nothing here delays a caller for longer than 50 ms, apart from a heartbeat, whose answer nobody
//! should wait for; and nobody waits for a Redis that is known to be out of reach: the answer is then
//! [`Unavailable`].
//!
//! | module | contents |
//! |---|---|
//! | `link` | the connection, its time limit and its breaker |
//! | `place` | where Redis is: a server, a cluster, or what sentinels name |
//! | `scripts` | the scripts that Redis runs, by its own clock |
//! | `presence` | the current players |
//! | `limits` | rate limits |
//! | `hints` | hints that something has changed in the store |

mod hints;
mod limits;
mod link;
mod place;
mod presence;
mod scripts;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tokio::sync::Notify;
use tokio::task::JoinSet;

pub use self::limits::SharedRate;
use self::link::Link;
pub use self::link::{AddressError, PATIENCE, Unavailable};
pub use self::place::Place;
use self::presence::{CROWD, Spread};
use self::scripts::Scripts;

/// What nodes share in one Redis.
#[derive(Debug)]
pub struct LiveRedis {
    link: Link,
    scripts: Scripts,
    /// The audiences with a crowd of players, and how many that are.
    spread: Spread,
    crowd: usize,
    /// Notified of hints.
    told: Arc<Notify>,
    /// The task that receives hints. It ends with this.
    _listening: JoinSet<()>,
}

impl LiveRedis {
    /// Connects to Redis. If it cannot be reached, this is tried again every second.
    ///
    /// # Errors
    /// [`AddressError`]
    pub async fn open(place: impl Into<Place>) -> Result<Self, AddressError> {
        let link = Link::open(&place.into()).await?;
        let told = Arc::new(Notify::new());
        let mut listening = JoinSet::new();
        listening.spawn(hints::listen_for_ever(
            link.subscribers(),
            Arc::clone(&told),
        ));
        Ok(Self {
            link,
            scripts: Scripts::by_the_clock_of_redis(),
            spread: Spread::default(),
            crowd: CROWD,
            told,
            _listening: listening,
        })
    }

    /// Whether Redis can be reached, as far as is known.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        self.link.is_closed()
    }
}
