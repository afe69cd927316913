//! Presence, rate limits and hints in Redis, for several nodes. Redis uses its own clock, so that the
//! nodes' clocks do not matter. What Redis does not say in time is not known.

use std::num::NonZeroU32;
use std::time::Duration;

use async_trait::async_trait;
use platform_live_redis::{LiveRedis, SharedRate};
use uuid::Uuid;

use super::presence::Presence;
use crate::clock::Millis;
use crate::domain::page::PageId;
use crate::platform::hints::Hints;
use crate::platform::shared_limits::SharedCounter;
use crate::web::limiter::{Period, Rate};

/// Presence of every audience, and rate limits, on all nodes.
#[derive(Debug)]
pub(super) struct SharedLive(LiveRedis);

impl SharedLive {
    /// Uses this Redis.
    pub(super) const fn new(live: LiveRedis) -> Self {
        Self(live)
    }
}

#[async_trait]
impl Presence for SharedLive {
    async fn beat(
        &self,
        audience: &str,
        player: Uuid,
        page: PageId,
        _now: Millis,
    ) -> Option<Millis> {
        self.0.beat(audience, player, page).await.ok()
    }

    async fn leave(&self, audience: &str, page: PageId) -> Option<bool> {
        self.0.leave(audience, page).await.ok()
    }

    async fn playing_each(&self, audiences: &[&str], _now: Millis) -> Vec<Option<usize>> {
        match self.0.count_playing(audiences).await {
            Ok(counts) => counts.into_iter().map(Some).collect(),
            Err(_unavailable) => vec![None; audiences.len()],
        }
    }

    async fn sweep(&self, _now: Millis) {
        // Each heartbeat forgets some silent players, and the keys expire.
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn is_known(&self) -> bool {
        self.0.is_reachable()
    }
}

#[async_trait]
impl Hints for SharedLive {
    async fn tell(&self) {
        // Without a hint, the other nodes look a little later.
        let _ = self.0.tell_of_change().await;
    }

    async fn told(&self) {
        self.0.told_of_change().await;
    }
}

#[async_trait]
impl SharedCounter for SharedLive {
    async fn take(
        &self,
        name: &'static str,
        key: &str,
        rate: &Rate,
    ) -> Option<Result<(), Duration>> {
        let seconds = match rate.period {
            Period::Second => 1,
            Period::Minute => 60,
            Period::Hour => 3_600,
        };
        let rate = SharedRate {
            count: rate.count,
            period: Duration::from_secs(seconds),
            burst: rate.burst,
        };
        let taken = self.0.take(name, key, rate, NonZeroU32::MIN).await;
        taken.ok().map(|wait| wait.map_or(Ok(()), Err))
    }
}
