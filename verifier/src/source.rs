//! The cached key set, and when it may be fetched again.
//!
//! It is fetched when a token names a key that it does not have, at most every
//! [`KEY_SET_REFETCH_SECONDS`]: tokens with made-up key ids must not make a game's backend flood
//! the auth service with requests. Tokens that name unknown keys at the same moment wait for one
//! fetch. A failed fetch keeps the current keys.
//!
//! It is also fetched, for the next token, once it is [`KEY_SET_CACHE_SECONDS`] old, as its
//! `Cache-Control` says, so that a revoked key is forgotten. That token waits for the fetch. If it
//! fails, later tokens do not wait for the next attempts, so that an unreachable auth service does
//! not slow the backend down.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use p256::ecdsa::VerifyingKey;
use platform_protocol::limits::{KEY_SET_CACHE_SECONDS, KEY_SET_REFETCH_SECONDS};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::clock::Clock;
use crate::error::{KeySetError, VerifyError};
use crate::fetch::Fetcher;
use crate::key_set::KeySet;

/// The minimum time between two fetches that unknown key ids cause.
const REFETCH_INTERVAL: Duration = Duration::from_secs(KEY_SET_REFETCH_SECONDS);
/// The age at which a key set is fetched again, whatever keys are needed.
const REFRESH_AGE: Duration = Duration::from_secs(KEY_SET_CACHE_SECONDS);
/// The time between two fetches while there is no key set. Every player waits for it then, and
/// clients cannot make the attempts more frequent.
const FIRST_FETCH_INTERVAL: Duration = Duration::from_secs(1);

/// The key set, shared by all users of a verifier.
#[derive(Clone, Debug)]
pub(crate) struct KeySource(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    fetcher: Fetcher,
    clock: Arc<dyn Clock>,
    kept: RwLock<Kept>,
    /// Whether the last fetch failed.
    fails: AtomicBool,
    /// Held while a fetch runs, so that there is one at a time.
    last_fetch: Arc<Mutex<Option<LastFetch>>>,
}

/// The keys, and when they were fetched.
#[derive(Debug, Default)]
struct Kept {
    keys: KeySet,
    at: Option<Duration>,
}

/// A cached key.
struct Found {
    key: VerifyingKey,
    /// Whether its key set is due to be fetched again.
    is_old: bool,
}

/// How the last fetch ended.
#[derive(Debug)]
struct LastFetch {
    at: Duration,
    failure: Option<KeySetError>,
}

impl KeySource {
    pub(crate) fn new(fetcher: Fetcher, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            fetcher,
            clock,
            kept: RwLock::default(),
            fails: AtomicBool::new(false),
            last_fetch: Arc::default(),
        }))
    }

    /// Returns the key with this `kid`, after a fetch if one is due.
    ///
    /// # Errors
    /// [`VerifyError::UnknownKey`] if the key set has no such key, [`VerifyError::KeySet`] if there
    /// is no key set.
    pub(crate) async fn key(&self, kid: &str) -> Result<VerifyingKey, VerifyError> {
        match self.0.find(kid) {
            Some(found) if !found.is_old => return Ok(found.key),
            Some(found) if self.0.fails.load(Ordering::Relaxed) => {
                self.refresh_meanwhile();
                return Ok(found.key);
            }
            _ => {}
        }
        let last_fetch = Arc::clone(&self.0.last_fetch).lock_owned().await;
        // Another call's fetch may have brought it while this call waited.
        if let Some(found) = self.0.find(kid).filter(|found| !found.is_old) {
            return Ok(found.key);
        }
        let failure = if self.0.may_fetch(last_fetch.as_ref()) {
            // A task of its own: a cancelled caller must not cancel a fetch that others wait for,
            // nor lose the record that it was made.
            let inner = Arc::clone(&self.0);
            let fetched = tokio::spawn(async move { inner.refetch(last_fetch).await }).await;
            fetched.unwrap_or_else(|_| Some(KeySetError::Transport("the fetch was stopped".into())))
        } else {
            last_fetch.as_ref().and_then(|last| last.failure.clone())
        };
        match (self.0.find(kid), failure) {
            (Some(found), _) => Ok(found.key),
            (None, Some(failure)) if self.0.has_no_keys() => Err(VerifyError::KeySet(failure)),
            (None, _) => Err(VerifyError::UnknownKey),
        }
    }

    /// Fetches the key set again if it is due, without waiting.
    fn refresh_meanwhile(&self) {
        let Ok(last_fetch) = Arc::clone(&self.0.last_fetch).try_lock_owned() else {
            return;
        };
        if self.0.may_fetch(last_fetch.as_ref()) {
            let inner = Arc::clone(&self.0);
            tokio::spawn(async move { inner.refetch(last_fetch).await });
        }
    }
}

impl Inner {
    fn find(&self, kid: &str) -> Option<Found> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let key = kept.keys.find(kid)?;
        // After a clock is set back, the key set counts as old. It must not count as new forever.
        let age = kept.at.and_then(|at| self.clock.now().checked_sub(at));
        Some(Found {
            key,
            is_old: age.is_none_or(|age| age >= REFRESH_AGE),
        })
    }

    fn has_no_keys(&self) -> bool {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        kept.keys.is_empty()
    }

    fn may_fetch(&self, last: Option<&LastFetch>) -> bool {
        let Some(last) = last else { return true };
        let interval = if self.has_no_keys() {
            FIRST_FETCH_INTERVAL
        } else {
            REFETCH_INTERVAL
        };
        // After a clock is set back, fetches must not stop until it has caught up, so a last fetch
        // in the future counts as long ago.
        self.clock
            .now()
            .checked_sub(last.at)
            .is_none_or(|elapsed| elapsed >= interval)
    }

    /// Fetches the key set and replaces the cached one, or returns why not.
    async fn refetch(
        &self,
        mut last_fetch: OwnedMutexGuard<Option<LastFetch>>,
    ) -> Option<KeySetError> {
        let failure = match self.fetcher.fetch().await {
            Ok(keys) => {
                tracing::debug!(keys = keys.len(), "fetched the key set");
                *self.kept.write().unwrap_or_else(PoisonError::into_inner) = Kept {
                    keys,
                    at: Some(self.clock.now()),
                };
                None
            }
            Err(error) => {
                tracing::warn!(%error, kept = !self.has_no_keys(), "the key set could not be fetched");
                Some(error)
            }
        };
        self.fails.store(failure.is_some(), Ordering::Relaxed);
        // Measured from the end of the fetch, so that a slow fetch is not followed by another at
        // once.
        *last_fetch = Some(LastFetch {
            at: self.clock.now(),
            failure: failure.clone(),
        });
        failure
    }
}
