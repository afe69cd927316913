//! The cached key set, and when it may be fetched again.
//!
//! It is fetched when a token names a key that it does not have, and then at
//! most every [`KEY_SET_REFETCH_SECONDS`]: tokens with made-up key ids must not
//! turn a game's backend into a flood of requests to the auth service. Tokens
//! that name unknown keys at the same moment wait for one fetch. A failed fetch
//! keeps the keys that are there.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use p256::ecdsa::VerifyingKey;
use platform_protocol::limits::KEY_SET_REFETCH_SECONDS;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::clock::Clock;
use crate::error::{KeySetError, VerifyError};
use crate::fetch::Fetcher;
use crate::key_set::KeySet;

/// Between two fetches that unknown key ids cause.
const REFETCH_INTERVAL: Duration = Duration::from_secs(KEY_SET_REFETCH_SECONDS);
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
    keys: RwLock<KeySet>,
    /// Held while a fetch runs, so that there is one at a time.
    last_fetch: Arc<Mutex<Option<LastFetch>>>,
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
            keys: RwLock::default(),
            last_fetch: Arc::default(),
        }))
    }

    /// The key with this `kid`, after a fetch where one is due.
    ///
    /// # Errors
    /// [`VerifyError::UnknownKey`] where the key set has no such key,
    /// [`VerifyError::KeySet`] where there is no key set.
    pub(crate) async fn key(&self, kid: &str) -> Result<VerifyingKey, VerifyError> {
        if let Some(key) = self.0.find(kid) {
            return Ok(key);
        }
        let last_fetch = Arc::clone(&self.0.last_fetch).lock_owned().await;
        // Somebody else's fetch may have brought it while this call waited.
        if let Some(key) = self.0.find(kid) {
            return Ok(key);
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
            (Some(key), _) => Ok(key),
            (None, Some(failure)) if self.0.has_no_keys() => Err(VerifyError::KeySet(failure)),
            (None, _) => Err(VerifyError::UnknownKey),
        }
    }
}

impl Inner {
    fn find(&self, kid: &str) -> Option<VerifyingKey> {
        self.keys
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .find(kid)
    }

    fn has_no_keys(&self) -> bool {
        self.keys
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
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
                *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
                None
            }
            Err(error) => {
                tracing::warn!(%error, kept = !self.has_no_keys(), "the key set could not be fetched");
                Some(error)
            }
        };
        // Counted from its end, so that a slow fetch is not followed by the
        // next one at once.
        *last_fetch = Some(LastFetch {
            at: self.clock.now(),
            failure: failure.clone(),
        });
        failure
    }
}
