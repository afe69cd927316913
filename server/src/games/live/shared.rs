//! Presence, rate limits and hints in Redis, for several nodes. Redis uses its own clock, so that the
//! nodes' clocks do not matter. What Redis does not say in time is not known.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

use async_trait::async_trait;
use platform_live_redis::{LiveRedis, PATIENCE, Place, SharedRate, Unavailable};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::presence::Presence;
use crate::clock::Millis;
use crate::config::redis_place::RedisPlace;
use crate::domain::page::PageId;
use crate::platform::hints::Hints;
use crate::platform::shared_limits::SharedCounter;
use crate::web::limiter::Rate;

/// How long a number of players is used again. Anybody may read the numbers of all games, so Redis
/// must not count with every request.
const FRESH: Duration = Duration::from_secs(1);

/// Returns where Redis is, as the client of Redis takes it.
pub(super) fn place(place: RedisPlace) -> Place {
    match place {
        RedisPlace::Single(address) => Place::Single(address),
        RedisPlace::Cluster(servers) => Place::Cluster(servers),
        RedisPlace::Sentinel { sentinels, service } => Place::Sentinel { sentinels, service },
    }
}

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
        let taken = self.redis.take(name, key, shared(rate), NonZeroU32::MIN);
        allowed(taken.await)
    }

    async fn spend(
        &self,
        name: &'static str,
        key: &str,
        rate: &Rate,
        open: u32,
        many: u32,
    ) -> Option<Result<(), Duration>> {
        allowed(self.redis.spend(name, key, shared(rate), open, many).await)
    }
}

const fn shared(rate: &Rate) -> SharedRate {
    SharedRate {
        count: rate.count,
        period: rate.period.duration(),
        burst: rate.burst,
    }
}

/// Returns what Redis says about events: how long to wait if they are not allowed.
fn allowed(answer: Result<Option<Duration>, Unavailable>) -> Option<Result<(), Duration>> {
    answer.ok().map(|wait| wait.map_or(Ok(()), Err))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use platform_test_redis::TestRedis;

    use super::*;
    use crate::clock::ManualClock;
    use crate::platform::credit_limits::CreditLimiter;
    use crate::platform::shared_limits::{LiveNodes, SharedLimits};
    use crate::web::limiter::Period;

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

    /// Hardly anything is allowed again while a test runs.
    const HOURLY: Rate = Rate::new(1, Period::Hour, 2_000);
    /// How much a node may be ahead of Redis.
    const CREDIT: usize = 100;

    /// The limiter of one of two nodes.
    async fn limiter(redis: &TestRedis) -> CreditLimiter<Arc<str>> {
        let live = SharedLive::new(LiveRedis::open(&redis.url()).await.unwrap());
        let nodes = Arc::new(LiveNodes::default());
        nodes.set(2);
        let shared = SharedLimits::new(Some(Arc::new(live)), nodes);
        CreditLimiter::new(
            &shared,
            "test",
            &HOURLY,
            &(Arc::new(ManualClock::new(0)) as _),
        )
    }

    /// Counts events of one key, three at a time, until all are refused. Returns how many were
    /// allowed.
    async fn exhaust(limiter: CreditLimiter<Arc<str>>) -> usize {
        let (here, three) = (Arc::from("here"), NonZeroU32::new(3).unwrap());
        let mut allowed = 0;
        for _ in 0..1_000 {
            if limiter.count_many(&here, three).await.is_ok() {
                allowed += 3;
            }
        }
        allowed
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_nodes_together_allow_no_more_than_the_limit_and_their_credits() {
        let redis = TestRedis::start();
        let (one, two) = (limiter(&redis).await, limiter(&redis).await);
        let (one, two) = tokio::join!(tokio::spawn(exhaust(one)), tokio::spawn(exhaust(two)));
        let (one, two) = (one.unwrap(), two.unwrap());
        let together = one + two;
        // If Redis takes longer than 50 ms on a busy machine, a node has its half, as without it.
        assert!(
            (1_900..=2_000 + 2 * CREDIT).contains(&together),
            "{one} and {two}"
        );
    }

    #[tokio::test]
    async fn redis_is_rarely_asked_about_a_limit_with_a_credit() {
        let redis = TestRedis::start();
        let limiter = limiter(&redis).await;
        let here = Arc::from("here");
        for _ in 0..1_000 {
            assert_eq!(limiter.count(&here).await, Ok(()));
        }
        let stats = redis.ask("INFO commandstats");
        let calls = stats.split_once("cmdstat_evalsha:calls=").unwrap().1;
        let calls: u32 = calls.split(',').next().unwrap().parse().unwrap();
        assert!((1..=1_000 / 50 + 1).contains(&calls), "{calls}");
    }

    #[tokio::test]
    async fn nobody_waits_for_a_silent_redis_and_each_node_has_its_part_of_the_limit() {
        let redis = TestRedis::start();
        let limiter = limiter(&redis).await;
        assert_eq!(limiter.count(&Arc::from("there")).await, Ok(()));
        redis.pause();
        let start = Instant::now();
        let allowed = exhaust(limiter).await;
        let took = start.elapsed();
        // A few callers wait for 50 ms, then none.
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert!((900..=1_000 + CREDIT).contains(&allowed), "{allowed}");
    }
}
