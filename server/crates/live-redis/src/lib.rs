//! What nodes share and may lose, in Redis: the current players of each game, rate limits, and hints
//! that something has changed.
//! Nothing here delays a caller for longer than 50 ms, and nobody waits for a Redis that is known
//! to be out of reach: the answer is then [`Unavailable`].
//!
//! | module | contents |
//! |---|---|
//! | `link` | the connection, its time limit and its breaker |
//! | `scripts` | the scripts that Redis runs, by its own clock |
//! | `presence` | the current players |
//! | `limits` | rate limits |
//! | `hints` | hints that something has changed in the store |

mod hints;
mod limits;
mod link;
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
use self::scripts::Scripts;

/// What nodes share in one Redis.
#[derive(Debug)]
pub struct LiveRedis {
    link: Link,
    scripts: Scripts,
    /// Notified of hints.
    told: Arc<Notify>,
    /// The task that receives hints. It ends with this.
    _listening: JoinSet<()>,
}

impl LiveRedis {
    /// Connects to the Redis at `url`, `redis://…` or `rediss://…`. If it cannot be reached, this is
    /// tried again every second.
    ///
    /// # Errors
    /// [`AddressError`]
    pub async fn open(url: &str) -> Result<Self, AddressError> {
        let link = Link::open(url).await?;
        let told = Arc::new(Notify::new());
        let mut listening = JoinSet::new();
        listening.spawn(hints::listen_for_ever(link.client(), Arc::clone(&told)));
        Ok(Self {
            link,
            scripts: Scripts::by_the_clock_of_redis(),
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
