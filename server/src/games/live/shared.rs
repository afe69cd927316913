//! Presence, rate limits and hints in Redis, for several nodes. Redis uses its own clock, so that the
//! nodes' clocks do not matter. What Redis does not say in time is not known.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

use async_trait::async_trait;
use platform_live_redis::{LiveRedis, PATIENCE, SharedRate};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::presence::Presence;
use crate::clock::Millis;
use crate::domain::page::PageId;
use crate::platform::hints::Hints;
use crate::platform::shared_limits::SharedCounter;
use crate::web::limiter::{Period, Rate};

/// How long a number of players is used again. Anybody may read the numbers of all games, so Redis
/// must not count with every request.
const FRESH: Duration = Duration::from_secs(1);

/// Presence of every audience, and rate limits, on all nodes.
#[derive(Debug)]
pub(super) struct SharedLive {
    redis: LiveRedis,
    /// The numbers of players that were asked for lately.
    counts: Mutex<HashMap<Box<str>, Count>>,
}

/// A number of players.
#[derive(Clone, Copy, Debug)]
struct Count {
    players: usize,
    at: Instant,
}

impl SharedLive {
    /// Uses this Redis.
    pub(super) fn new(redis: LiveRedis) -> Self {
        Self {
            redis,
            counts: Mutex::default(),
        }
    }

    /// Returns the numbers of current players; `None` if they are not known.
    async fn count(&self, audiences: &[&str]) -> Option<Vec<usize>> {
        // Whoever comes while another request asks Redis uses its numbers.
        let mut counts = timeout(PATIENCE, self.counts.lock()).await.ok()?;
        if !self.redis.is_reachable() {
            return None;
        }
        let at = Instant::now();
        counts.retain(|_, count| at - count.at < FRESH);
        let old = audiences.iter().copied();
        let old: Vec<&str> = old.filter(|name| !counts.contains_key(*name)).collect();
        let new = self.redis.count_playing(&old).await.ok()?;
        let new = old.into_iter().zip(new);
        counts.extend(new.map(|(name, players)| (name.into(), Count { players, at })));
        let players = audiences.iter().map(|name| counts.get(*name));
        players.map(|count| Some(count?.players)).collect()
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
        self.redis.beat(audience, player, page).await.ok()
    }

    async fn leave(&self, audience: &str, page: PageId) -> Option<bool> {
        self.redis.leave(audience, page).await.ok()
    }

    async fn playing_each(&self, audiences: &[&str], _now: Millis) -> Vec<Option<usize>> {
        match self.count(audiences).await {
            Some(counts) => counts.into_iter().map(Some).collect(),
            None => vec![None; audiences.len()],
        }
    }

    async fn sweep(&self, _now: Millis) {
        // Each heartbeat forgets some silent players, and the keys expire.
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn is_known(&self) -> bool {
        self.redis.is_reachable()
    }
}

#[async_trait]
impl Hints for SharedLive {
    async fn tell(&self) {
        // Without a hint, the other nodes look a little later.
        let _ = self.redis.tell_of_change().await;
    }

    async fn told(&self) {
        self.redis.told_of_change().await;
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
        let taken = self.redis.take(name, key, rate, NonZeroU32::MIN).await;
        taken.ok().map(|wait| wait.map_or(Ok(()), Err))
    }
}

#[cfg(test)]
mod tests {
    use platform_test_redis::TestRedis;

    use super::*;

    /// How often Redis has counted.
    fn asked(redis: &TestRedis) -> u32 {
        let stats = redis.ask("INFO commandstats");
        let calls = stats.split_once("cmdstat_eval:calls=");
        calls.map_or(0, |(_, rest)| {
            let digits = rest.split(',').next().unwrap();
            digits.parse().unwrap()
        })
    }

    #[tokio::test]
    async fn many_requests_for_the_same_numbers_count_once_a_second() {
        let redis = TestRedis::start();
        let live = SharedLive::new(LiveRedis::open(&redis.url()).await.unwrap());
        let audiences = ["game:one", "game:two"];
        let mut known = 0;
        for _ in 0..500 {
            let playing = live.playing_each(&audiences, 0).await;
            known += u32::from(playing == [Some(0), Some(0)]);
        }
        assert!(known > 0);
        // A busy machine may take some seconds.
        let asked = asked(&redis);
        assert!((2..100).contains(&asked), "{asked}");
    }
}
