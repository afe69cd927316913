//! The cached key set, and when it may be fetched again.
//!
//! It is fetched when a token names a key that it does not have, and then at
//! most every [`KEY_SET_REFETCH_SECONDS`]: tokens with made-up key ids must not
//! turn a game's backend into a flood of requests to the auth service. Tokens
//! that name unknown keys at the same moment wait for one fetch. A failed fetch
//! keeps the keys that are there.
//!
//! It is also fetched, for the next token, once it is [`KEY_SET_CACHE_SECONDS`]
//! old, as its `Cache-Control` says, so that a key that was revoked is
//! forgotten. That token waits for the fetch; where it fails, those after it do
//! not wait for the further attempts, so that an auth service that is out of
//! reach slows nobody down.

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

/// Between two fetches that unknown key ids cause.
const REFETCH_INTERVAL: Duration = Duration::from_secs(KEY_SET_REFETCH_SECONDS);
/// Age from which on a key set is fetched again, whatever keys are asked for.
const REFRESH_AGE: Duration = Duration::from_secs(KEY_SET_CACHE_SECONDS);
/// Between two fetches while there is no key set at all. Every player waits for
/// it then, and nothing that a client sends changes how often it is tried.
const FIRST_FETCH_INTERVAL: Duration = Duration::from_secs(1);

/// The keys, shared by everybody who verifies.
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

/// A key that is at hand.
struct Found {
    key: VerifyingKey,
    /// Whether its key set is to be fetched again.
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

    /// The key with this `kid`, after a fetch where one is due.
    ///
    /// # Errors
    /// [`VerifyError::UnknownKey`] where the key set has no such key,
    /// [`VerifyError::KeySet`] where there is no key set.
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
        // Somebody else's fetch may have brought it while this call waited.
        if let Some(found) = self.0.find(kid).filter(|found| !found.is_old) {
            return Ok(found.key);
        }
        let failure = if self.0.may_fetch(last_fetch.as_ref()) {
            // A task of its own: a caller that goes away half-way must not
            // cancel a fetch that others wait for, nor hide that it was made.
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

    /// Fetches the key set again where that is due, and waits for nothing.
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
        // A clock that was set back makes a key set old, not new for ever.
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
        // A clock that was set back must not stop fetches until it has caught
        // up, so a last fetch in the future counts as long ago.
        self.clock
            .now()
            .checked_sub(last.at)
            .is_none_or(|elapsed| elapsed >= interval)
    }

    /// Fetches the key set and replaces the cached one, or says why not.
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
        // Counted from its end, so that a slow fetch is not followed by the
        // next one at once.
        *last_fetch = Some(LastFetch {
            at: self.clock.now(),
            failure: failure.clone(),
        });
        failure
    }
}
