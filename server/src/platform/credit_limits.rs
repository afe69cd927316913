//! Rate limits that all nodes share and that rarely ask for it: each node has a credit, a twentieth of the
//! burst, which it may use before the counter of all nodes has heard of it.
//!
//! A key that stays below half of the credit is never counted elsewhere. From there on the node
//! tells the counter in the background, and a caller waits for its answer only if the credit is
//! used up. So all nodes together allow no more than the limit and one credit per node.
//! While the counter is out of reach, each node has its part of the limit.

use std::collections::HashMap;
use std::future::Future;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::platform::metrics::Tally;
use crate::platform::shared_limits::{LimitKey, SharedLimits};
use crate::web::limiter::{Limiter, Rate};

/// The part of the burst that a node may use before the counter has heard of it.
const CREDIT: u32 = 20;

/// Counts events by key, on all nodes. Clones share their counts.
#[derive(Debug)]
pub struct CreditLimiter<K: LimitKey>(Arc<Inner<K>>);

impl<K: LimitKey> Clone for CreditLimiter<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct Inner<K: LimitKey> {
    name: &'static str,
    rate: Rate,
    clock: Arc<dyn Clock>,
    local: Limiter<K>,
    shared: SharedLimits,
    refusals: Tally,
    accounts: Mutex<HashMap<K, Account>>,
}

/// What a node has allowed for a key.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Events that the counter has not answered for.
    open: u32,
    /// The open events that it is being told of now.
    told: u32,
    /// The last answer that refused something.
    refused: Option<Refusal>,
    /// When the last events were allowed, by the clock that is never set.
    used: Duration,
}

/// An answer of the counter: this many events, or more, will not be allowed before this time.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    many: u32,
    until: Duration,
}

/// What to do with events.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    /// They are within the credit.
    Allow,
    /// They are within the credit, and the counter must be told of these open events.
    AllowAndTell(u32),
    /// The credit is used up: the counter decides about them, and is told of these open events.
    Ask(u32),
    /// The counter has refused them lately.
    Refuse(Duration),
}

impl Account {
    fn decide(&mut self, many: u32, credit: u32, now: Duration) -> Decision {
        if let Some(refused) = self.refused {
            if now >= refused.until {
                self.refused = None;
            } else if many >= refused.many {
                return Decision::Refuse(refused.until.saturating_sub(now));
            }
        }
        self.used = now;
        let untold = self.open.saturating_sub(self.told);
        if self.open.saturating_add(many) > credit {
            self.told = self.open;
            return Decision::Ask(untold);
        }
        self.open += many;
        let untold = untold + many;
        if self.told == 0 && untold.saturating_mul(2) >= credit {
            self.told = self.open;
            return Decision::AllowAndTell(untold);
        }
        Decision::Allow
    }

    fn is_over(&self, interval: Duration, now: Duration) -> bool {
        // So long the counter would remember events that it had been told of.
        let remembered = interval.saturating_mul(self.open);
        self.told == 0
            && self.used.saturating_add(remembered) < now
            && self.refused.is_none_or(|refused| refused.until < now)
    }
}

impl<K: LimitKey + Send + Sync + 'static> CreditLimiter<K> {
    /// Returns a limit. `name` is that of no other limit.
    #[must_use]
    pub fn new(
        shared: &SharedLimits,
        name: &'static str,
        rate: &Rate,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        Self(Arc::new(Inner {
            name,
            rate: *rate,
            clock: Arc::clone(clock),
            local: Limiter::new(rate, Arc::clone(clock)),
            shared: shared.clone(),
            refusals: shared.refusals(name),
            accounts: Mutex::default(),
        }))
    }

    /// Counts one event.
    ///
    /// # Errors
    /// How long to wait, if the limit is reached.
    pub async fn count(&self, key: &K) -> Result<(), Duration> {
        self.count_many(key, NonZeroU32::MIN).await
    }

    /// Counts `many` events at once: all of them, or none. A number larger than the burst counts as
    /// the burst.
    ///
    /// # Errors
    /// How long to wait, if the limit is reached.
    pub async fn count_many(&self, key: &K, many: NonZeroU32) -> Result<(), Duration> {
        self.0.refusals.refusal(self.decide(key, many).await)
    }

    async fn decide(&self, key: &K, many: NonZeroU32) -> Result<(), Duration> {
        let inner = &self.0;
        inner.local.count_many(key, many)?;
        if !inner.shared.has_counter() {
            return Ok(());
        }
        let many = many.min(inner.rate.burst).get();
        let decision = {
            let (credit, now) = (inner.rate.burst.get() / CREDIT, inner.clock.elapsed());
            let mut accounts = inner.accounts();
            let account = accounts.entry(key.clone()).or_default();
            account.decide(many, credit, now)
        };
        match decision {
            Decision::Allow => Ok(()),
            Decision::Refuse(wait) => Err(wait),
            Decision::AllowAndTell(open) => {
                drop(self.ask(key, open, 0));
                Ok(())
            }
            Decision::Ask(open) => self.ask(key, open, many).await,
        }
    }

    /// Tells the counter of `open` events and lets it decide about `many` more. This goes on if
    /// nobody waits for it.
    fn ask(
        &self,
        key: &K,
        open: u32,
        many: u32,
    ) -> impl Future<Output = Result<(), Duration>> + use<K> {
        let (inner, key) = (Arc::clone(&self.0), key.clone());
        let asked = tokio::spawn(async move { inner.ask(&key, open, many).await });
        // An error is a panic, which the panic hook has logged.
        async { asked.await.unwrap_or(Ok(())) }
    }

    /// Removes keys that have been quiet for long enough.
    pub fn sweep(&self) {
        let inner = &self.0;
        inner.local.sweep();
        let (interval, now) = (inner.rate.interval(), inner.clock.elapsed());
        let mut accounts = inner.accounts();
        accounts.retain(|_, account| !account.is_over(interval, now));
        accounts.shrink_to_fit();
    }
}

impl<K: LimitKey> Inner<K> {
    async fn ask(&self, key: &K, open: u32, many: u32) -> Result<(), Duration> {
        let answer = self
            .shared
            .spend(self.name, &key.name(), &self.rate, open, many)
            .await;
        let now = self.clock.elapsed();
        {
            let mut accounts = self.accounts();
            let account = accounts.entry(key.clone()).or_default();
            account.open = account.open.saturating_sub(open);
            account.told = account.told.saturating_sub(open);
            account.used = now;
            if let Some(Err(wait)) = answer {
                let until = now.saturating_add(wait);
                account.refused = Some(Refusal {
                    many: many.max(1),
                    until,
                });
            }
        }
        match answer {
            Some(answer) => answer,
            None => self.count_for_others(key, open, many),
        }
    }

    /// Counts here what the other nodes may have allowed as well: each event once more for every
    /// other node, so that all of them together allow no more than the limit.
    fn count_for_others(&self, key: &K, open: u32, many: u32) -> Result<(), Duration> {
        let Some(others) = self.shared.other_nodes() else {
            return Ok(());
        };
        let times = |events: u32| NonZeroU32::new(events.saturating_mul(others.get()));
        if let Some(open) = times(open) {
            // They were allowed already.
            let _ = self.local.count_many(key, open);
        }
        times(many).map_or(Ok(()), |many| self.local.count_many(key, many))
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<K, Account>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
