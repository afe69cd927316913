//! Data that may be lost: who plays now, and what rate limits have counted. In memory for one node,
//! in Redis for several.
//!
//! | module | contents |
//! |---|---|
//! | [`presence`] | the trait for current players |
//! | [`memory`] | presence in memory, for one node |
//! | `shared` | presence, rate limits and hints in Redis, for several nodes |

pub mod memory;
pub mod presence;
#[cfg(feature = "cluster")]
mod shared;

use std::sync::Arc;

#[cfg(feature = "cluster")]
use platform_live_redis::LiveRedis;

pub use memory::MemoryPresence;
pub use presence::Presence;

use crate::config::Secret;
use crate::config::redis_place::HOW;
#[cfg(feature = "cluster")]
use crate::config::redis_place::RedisPlace;
use crate::platform::hints::Hints;
use crate::platform::shared_limits::SharedCounter;
use crate::store::ConnectError;

/// The places of data that may be lost.
#[derive(Debug)]
pub struct Live {
    /// The current players.
    pub presence: Arc<dyn Presence>,
    /// The counter of rate limits that several nodes share.
    pub counter: Option<Arc<dyn SharedCounter>>,
    /// Passes hints between several nodes.
    pub hints: Option<Arc<dyn Hints>>,
}

/// Why a place could not be opened; a sentence for the operator.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The address is not one of Redis. It is not repeated, since it may contain a password.
    #[error("redis_url: {HOW}")]
    Address,
    /// This program was built without Redis.
    #[error(transparent)]
    Unsupported(#[from] ConnectError),
}

/// Opens the Redis of the settings, or memory. This succeeds also if Redis cannot be reached now.
///
/// # Errors
/// [`LiveError`]
pub async fn open(redis: Option<&Secret>) -> Result<Live, LiveError> {
    match redis {
        Some(address) => open_shared(address).await,
        None => Ok(Live {
            presence: Arc::new(MemoryPresence::new()),
            counter: None,
            hints: None,
        }),
    }
}

#[cfg(feature = "cluster")]
async fn open_shared(address: &Secret) -> Result<Live, LiveError> {
    let place = RedisPlace::parse(address.expose()).ok_or(LiveError::Address)?;
    if place.may_be_read() {
        tracing::warn!(
            "redis_url does not begin with rediss: connections go over the network without TLS, and \
             whoever is in between could read the password; see docs/several-nodes.md"
        );
    }
    let live = LiveRedis::open(shared::place(place)).await;
    let live = live.map_err(|_| LiveError::Address)?;
    let shared = Arc::new(shared::SharedLive::new(live));
    Ok(Live {
        presence: Arc::clone(&shared) as Arc<dyn Presence>,
        counter: Some(Arc::clone(&shared) as Arc<dyn SharedCounter>),
        hints: Some(shared),
    })
}

#[cfg(not(feature = "cluster"))]
async fn open_shared(_address: &Secret) -> Result<Live, LiveError> {
    Err(ConnectError::Unsupported("Redis").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_an_address_presence_is_in_memory() {
        let Live {
            presence,
            counter,
            hints,
        } = open(None).await.unwrap();
        assert!(counter.is_none() && hints.is_none());
        assert!(presence.is_known() && !presence.is_shared());
    }

    #[cfg(not(feature = "cluster"))]
    #[tokio::test]
    async fn a_program_without_redis_says_how_to_get_one_with_it() {
        let address = Secret::new("redis://x:hunter2@localhost".to_owned());
        let said = open(Some(&address)).await.unwrap_err().to_string();
        assert!(
            said.contains("--features platform-server/cluster"),
            "{said}"
        );
        assert!(!said.contains("hunter2"), "{said}");
    }

    #[cfg(feature = "cluster")]
    #[tokio::test]
    async fn presence_opens_without_redis_and_is_unknown() {
        // Nobody listens on port 1.
        let address = Secret::new("redis://x:hunter2@127.0.0.1:1".to_owned());
        let presence = open(Some(&address)).await.unwrap().presence;
        assert!(presence.is_shared() && !presence.is_known());
        assert_eq!(presence.playing("game:demo", 0).await, None);
        assert!(!format!("{presence:?}").contains("hunter2"));
    }
}
