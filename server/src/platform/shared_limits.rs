//! Rate limits that all nodes share: a node's own limiter decides first, then the counter of all
//! nodes. While that counter is out of reach, each node has its part of the limit.

use std::fmt;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use crate::clock::Clock;
use crate::platform::metrics::{Metrics, Tally};
use crate::web::client_address::Network;
use crate::web::limiter::{Limiter, Rate};

/// Counts events on all nodes. It never fails or takes long: what cannot be known now is `None`.
#[async_trait]
pub trait SharedCounter: Send + Sync + fmt::Debug {
    /// Counts an event of `key` against the limit `name`. Returns how long to wait if the limit is
    /// reached.
    async fn take(
        &self,
        name: &'static str,
        key: &str,
        rate: &Rate,
    ) -> Option<Result<(), Duration>>;

    /// Counts `open` events of `key` that have happened already, and then `many` more: all of these,
    /// or none. Returns how long to wait if they are refused; without any, how long the next one must
    /// wait.
    async fn spend(
        &self,
        name: &'static str,
        key: &str,
        rate: &Rate,
        open: u32,
        many: u32,
    ) -> Option<Result<(), Duration>>;
}

/// The number of live nodes, as far as is known.
#[derive(Debug)]
pub struct LiveNodes(AtomicU32);

impl Default for LiveNodes {
    fn default() -> Self {
        Self(AtomicU32::new(1))
    }
}

impl LiveNodes {
    /// Records how many nodes are live; there is at least this one.
    pub fn set(&self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX).max(1);
        self.0.store(count, Ordering::Relaxed);
    }

    /// Returns the number of the other nodes.
    fn others(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.0.load(Ordering::Relaxed).saturating_sub(1))
    }
}

/// What shared limits are made with.
#[derive(Clone, Debug, Default)]
pub struct SharedLimits {
    counter: Option<Arc<dyn SharedCounter>>,
    nodes: Arc<LiveNodes>,
    metrics: Metrics,
}

impl SharedLimits {
    /// Limits that `counter` counts, if there is one.
    #[must_use]
    pub fn new(counter: Option<Arc<dyn SharedCounter>>, nodes: Arc<LiveNodes>) -> Self {
        Self {
            counter,
            nodes,
            metrics: Metrics::default(),
        }
    }

    /// Lets `metrics` count what the limits refuse.
    #[must_use]
    pub fn counted_by(self, metrics: &Metrics) -> Self {
        Self {
            metrics: metrics.clone(),
            ..self
        }
    }

    /// Returns what counts the refusals of the limit `name`.
    #[must_use]
    pub fn refusals(&self, name: &'static str) -> Tally {
        self.metrics.refusals(name)
    }

    /// Whether there is a counter of all nodes.
    pub(super) const fn has_counter(&self) -> bool {
        self.counter.is_some()
    }

    /// Returns the number of the other nodes.
    #[must_use]
    pub fn other_nodes(&self) -> Option<NonZeroU32> {
        self.nodes.others()
    }

    /// Lets the counter of all nodes count. Returns `None` if that cannot be known now.
    pub(super) async fn spend(
        &self,
        name: &'static str,
        key: &str,
        rate: &Rate,
        open: u32,
        many: u32,
    ) -> Option<Result<(), Duration>> {
        let counter = self.counter.as_ref()?;
        counter.spend(name, key, rate, open, many).await
    }

    /// Returns a limit. `name` is that of no other limit.
    #[must_use]
    pub fn limiter<K: LimitKey>(
        &self,
        name: &'static str,
        rate: &Rate,
        clock: &Arc<dyn Clock>,
    ) -> SharedLimiter<K> {
        SharedLimiter {
            name,
            rate: *rate,
            local: Limiter::new(rate, Arc::clone(clock)),
            shared: self.clone(),
            refusals: self.refusals(name),
        }
    }
}

/// Something that has a limit, with a name that is the same on all nodes.
pub trait LimitKey: Hash + Eq + Clone {
    /// Returns its name.
    fn name(&self) -> String;
}

impl LimitKey for Network {
    fn name(&self) -> String {
        self.to_string()
    }
}

impl LimitKey for Uuid {
    fn name(&self) -> String {
        self.to_string()
    }
}

impl LimitKey for String {
    fn name(&self) -> String {
        self.clone()
    }
}

impl LimitKey for Arc<str> {
    fn name(&self) -> String {
        self.to_string()
    }
}

impl LimitKey for (Network, Arc<str>) {
    fn name(&self) -> String {
        format!("{} {}", self.0, self.1)
    }
}

/// Counts events by key, on all nodes.
#[derive(Debug)]
pub struct SharedLimiter<K: LimitKey> {
    name: &'static str,
    rate: Rate,
    local: Limiter<K>,
    shared: SharedLimits,
    refusals: Tally,
}

impl<K: LimitKey> SharedLimiter<K> {
    /// Counts one event.
    ///
    /// # Errors
    /// How long to wait, if the limit is reached.
    pub async fn count(&self, key: &K) -> Result<(), Duration> {
        self.refusals.refusal(self.decide(key).await)
    }

    async fn decide(&self, key: &K) -> Result<(), Duration> {
        self.local.count(key)?;
        let Some(counter) = &self.shared.counter else {
            return Ok(());
        };
        if let Some(counted) = counter.take(self.name, &key.name(), &self.rate).await {
            return counted;
        }
        // Each event counts here as often as there are nodes, so that all of them together allow
        // no more than the limit.
        match self.shared.nodes.others() {
            Some(others) => self.local.count_many(key, others),
            None => Ok(()),
        }
    }

    /// Removes keys that have been quiet for long enough.
    pub fn sweep(&self) {
        self.local.sweep();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::clock::ManualClock;
    use crate::web::limiter::Period;

    const RATE: Rate = Rate::new(60, Period::Minute, 6);

    /// Says the same to everybody, and who asked.
    #[derive(Debug)]
    struct Counter {
        says: Option<Result<(), Duration>>,
        asked: Mutex<Vec<String>>,
    }

    #[async_trait]
    impl SharedCounter for Counter {
        async fn take(
            &self,
            name: &'static str,
            key: &str,
            _rate: &Rate,
        ) -> Option<Result<(), Duration>> {
            self.asked.lock().unwrap().push(format!("{name} {key}"));
            self.says
        }

        async fn spend(
            &self,
            _name: &'static str,
            _key: &str,
            _rate: &Rate,
            _open: u32,
            _many: u32,
        ) -> Option<Result<(), Duration>> {
            panic!("these limits count every event at once")
        }
    }

    fn counter(says: Option<Result<(), Duration>>) -> Arc<Counter> {
        let asked = Mutex::default();
        Arc::new(Counter { says, asked })
    }

    fn limiter(counter: Option<Arc<Counter>>, nodes: usize) -> SharedLimiter<Network> {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(1_000_000));
        let live = Arc::new(LiveNodes::default());
        live.set(nodes);
        let counter = counter.map(|counter| counter as Arc<dyn SharedCounter>);
        SharedLimits::new(counter, live).limiter("test", &RATE, &clock)
    }

    async fn allowed(limiter: &SharedLimiter<Network>) -> usize {
        let here = Network::of("192.0.2.1".parse().unwrap());
        let mut allowed = 0;
        for _ in 0..20 {
            allowed += usize::from(limiter.count(&here).await.is_ok());
        }
        allowed
    }

    #[tokio::test]
    async fn without_a_counter_the_node_has_the_whole_limit() {
        assert_eq!(allowed(&limiter(None, 3)).await, 6);
    }

    #[tokio::test]
    async fn the_counter_of_all_nodes_is_asked_only_if_this_node_allows_it() {
        let counter = counter(Some(Ok(())));
        let limiter = limiter(Some(Arc::clone(&counter)), 3);
        assert_eq!(allowed(&limiter).await, 6);
        assert_eq!(*counter.asked.lock().unwrap(), ["test 192.0.2.1"; 6]);
    }

    #[tokio::test]
    async fn the_counter_of_all_nodes_may_refuse() {
        let wait = Duration::from_secs(7);
        let limiter = limiter(Some(counter(Some(Err(wait)))), 3);
        let here = Network::of("192.0.2.1".parse().unwrap());
        assert_eq!(limiter.count(&here).await, Err(wait));
    }

    #[tokio::test]
    async fn while_the_counter_is_out_of_reach_each_node_has_its_part() {
        for (nodes, expected) in [(0, 6), (1, 6), (2, 3), (3, 2), (6, 1)] {
            let limiter = limiter(Some(counter(None)), nodes);
            assert_eq!(allowed(&limiter).await, expected, "{nodes}");
        }
    }
}
