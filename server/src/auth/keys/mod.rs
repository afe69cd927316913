//! The signing keys: creation, storage, publication, use and rotation.
//!
//! Private keys are in the store, since every node needs the same ones. The embedded store's file
//! is readable only by its owner, and with an operator's secret the keys are also encrypted
//! ("sealed"). `sign` chooses the key by the clock from a ring in memory, and never accesses the
//! store.

mod ephemeral_key;
mod secret;
mod signer;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_protocol::claims::{ALGORITHM, ASSERTION_TYPE, AssertionClaims, GameTokenHeader};
use platform_protocol::limits::TEST_TOKEN_SECONDS;
use serde::Serialize;
use tokio::sync::Mutex;

pub use self::ephemeral_key::EphemeralKey;
pub use self::secret::{KeySecret, KeySecrets};
pub use self::signer::Signer;
use self::signer::{PrivateKey, PublicJwk};
use crate::clock::{Clock, Millis};
use crate::domain::audit::{Actor, By};
use crate::domain::key::{
    KeyPhase, KeySchedule, KeyTimes, MIN_SECRET_BYTES, Revocation, StoredKey,
};
use crate::entropy::Entropy;
use crate::platform::nodes::Nodes;
use crate::store::{Store, StoreError};

/// Why keys could not be read, created or used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The operator's secret is too short.
    #[error("the key secret has fewer than {MIN_SECRET_BYTES} bytes; use a generated one")]
    SecretTooShort,
    /// A key is sealed, and no secret was given.
    #[error(
        "signing key {kid} is sealed: set PLATFORM_KEY_SECRET to the key secret that sealed it; if that is lost, see \u{201c}Signing keys\u{201d} in docs/hosting.md"
    )]
    SecretMissing {
        /// The id of the key.
        kid: String,
    },
    /// A key is sealed with another secret, or was changed in the store.
    #[error(
        "signing key {kid} cannot be unsealed with this PLATFORM_KEY_SECRET: set the key secret that sealed it, or set PLATFORM_KEY_SECRET_OLD to that secret; if it is lost, see \u{201c}Signing keys\u{201d} in docs/hosting.md"
    )]
    WrongSecret {
        /// The id of the key.
        kid: String,
    },
    /// The stored value is not the private key of this `kid`.
    #[error("signing key {kid} is damaged")]
    Malformed {
        /// The id of the key.
        kid: String,
    },
    /// There is no key with this `kid`.
    #[error("there is no signing key {kid}; `platform-server keys list` shows all keys")]
    Unknown {
        /// The id of the key.
        kid: String,
    },
    /// Keys cannot be sealed without a secret.
    #[error("there is no key secret: set PLATFORM_KEY_SECRET")]
    NoSecret,
    /// There is no key, or the signature could not be made.
    #[error("no token could be signed")]
    Signing,
    /// Claims or keys could not be written as JSON.
    #[error("JSON could not be written")]
    Json(#[from] serde_json::Error),
    /// This node's clock is not the store's, so it must not decide which keys are old.
    #[error(
        "this server's clock differs too much from the database's to change signing keys: let NTP set the clock, and try again"
    )]
    Clock,
    /// Other nodes changed the keys repeatedly while this one tried to.
    #[error("the signing keys are being changed by another process; try again")]
    Contended,
    /// The store failed.
    #[error("the signing keys could not be read or written")]
    Store(#[from] StoreError),
}

/// The public information about a key, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// RFC 7638 thumbprint.
    pub kid: String,
    /// Its current phase.
    pub phase: KeyPhase,
    /// Whether it is sealed in the store.
    pub sealed: bool,
    /// When it was created.
    pub created_at: Millis,
    /// When it starts to sign.
    pub signs_from: Millis,
    /// When it stops signing, if another key follows.
    pub stops_at: Option<Millis>,
}

/// A key that is ready to sign.
#[derive(Debug)]
struct ReadyKey {
    /// The encoded JOSE header, with the dot that follows it.
    header: String,
    signer: Arc<dyn Signer>,
    public: PublicJwk,
    stored: StoredKey,
}

/// All keys at one moment. It is never changed, only replaced as a whole.
#[derive(Debug)]
struct Ring {
    /// In the order of the store, the newest last.
    keys: Vec<Arc<ReadyKey>>,
    schedule: KeySchedule,
    key_set: Arc<str>,
}

/// The signing keys of a platform, as this node knows them.
#[derive(Debug)]
pub struct KeyRing {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    token_millis: Millis,
    secrets: KeySecrets,
    ring: ArcSwap<Ring>,
    /// When the keys were last read.
    read_at: AtomicI64,
    /// Knows whether this node's clock is that of the store; in an operator's command it is.
    nodes: OnceLock<Arc<Nodes>>,
    /// Held while the keys are read and replaced: an older result must never replace a newer one,
    /// which could restore a revoked key.
    refreshing: Mutex<()>,
}

#[derive(Serialize)]
struct KeySet<'a> {
    keys: Vec<&'a PublicJwk>,
}

/// The number of attempts if another node is faster.
const ATTEMPTS: usize = 8;

impl KeyRing {
    /// Reads the keys, and creates the first one if there is none. `token_seconds` is the lifetime
    /// of the game tokens that will be signed.
    ///
    /// # Errors
    /// [`KeyError`], most likely because of a wrong secret.
    pub async fn open(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        token_seconds: u64,
        secrets: KeySecrets,
    ) -> Result<Arc<Self>, KeyError> {
        let ring = Self::empty(store, clock, entropy, token_seconds, secrets);
        ring.refresh().await?;
        Ok(Arc::new(ring))
    }

    /// Creates a ring that has not read the keys yet. `token_seconds` is the lifetime of the game
    /// tokens that will be signed.
    #[must_use]
    pub fn empty(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        token_seconds: u64,
        secrets: KeySecrets,
    ) -> Self {
        // Test tokens are signed with the same keys.
        let token_millis = Millis::try_from(token_seconds.max(TEST_TOKEN_SECONDS))
            .unwrap_or(Millis::MAX)
            .saturating_mul(1_000);
        let empty = Ring {
            keys: Vec::new(),
            schedule: KeySchedule::new(Vec::new()),
            key_set: Arc::from(r#"{"keys":[]}"#),
        };
        Self {
            store,
            clock,
            entropy,
            token_millis,
            secrets,
            ring: ArcSwap::from_pointee(empty),
            read_at: AtomicI64::new(0),
            nodes: OnceLock::new(),
            refreshing: Mutex::new(()),
        }
    }

    /// Only reads keys from now on whenever this node's clock is far off: it must neither add keys
    /// then nor remove any, because it would take those that sign for outdated ones.
    pub fn heed_clock_of(&self, nodes: Arc<Nodes>) {
        let _ = self.nodes.set(nodes);
    }

    fn only_reads(&self) -> bool {
        let nodes = self.nodes.get();
        nodes.is_some_and(|nodes| !nodes.has_fit_clock())
    }

    /// Refuses to change keys by a clock that is far off.
    fn check_clock(&self) -> Result<(), KeyError> {
        if self.only_reads() {
            return Err(KeyError::Clock);
        }
        Ok(())
    }

    /// Returns a game token with these claims, in compact form (RFC 7515 §3.1), signed by the
    /// current key.
    ///
    /// # Errors
    /// [`KeyError::Signing`] or [`KeyError::Json`]; neither happens in practice.
    pub fn sign<C: Serialize>(&self, claims: &C) -> Result<String, KeyError> {
        let key = self.signing()?;
        key.sign(&key.header, claims)
    }

    /// Returns an assertion with these claims, for a game's backend.
    ///
    /// # Errors
    /// As [`KeyRing::sign`].
    pub fn sign_assertion(&self, claims: &AssertionClaims) -> Result<String, KeyError> {
        let key = self.signing()?;
        let header = encoded_header(ASSERTION_TYPE, &key.stored.kid)?;
        key.sign(&header, claims)
    }

    /// Returns the current signing key.
    fn signing(&self) -> Result<Arc<ReadyKey>, KeyError> {
        let ring = self.ring.load();
        let index = ring.schedule.signing_at(self.clock.now());
        let index = index.ok_or(KeyError::Signing)?;
        Ok(Arc::clone(&ring.keys[index]))
    }

    /// Returns the published key set (RFC 7517 §5) as JSON. It is the same allocation until
    /// [`KeyRing::refresh`] finds a different key set.
    #[must_use]
    pub fn key_set(&self) -> Arc<str> {
        Arc::clone(&self.ring.load().key_set)
    }

    /// Returns when the keys were last read from the store.
    #[must_use]
    pub fn read_at(&self) -> Millis {
        self.read_at.load(Ordering::Relaxed)
    }

    /// Reads the keys again, adds a new one if the last is 90 days old, and forgets those that are
    /// no longer in the key set; by a [clock that is far off](Self::heed_clock_of) it does neither. It must be called every few seconds: a key that another node or
    /// the operator has revoked must no longer be trusted here, and a new key must be published
    /// here long before it signs.
    ///
    /// # Errors
    /// [`KeyError`]; the ring then stays unchanged.
    pub async fn refresh(&self) -> Result<(), KeyError> {
        let _refreshing = self.refreshing.lock().await;
        // In this order: a clock that is set after it was read does no harm.
        let now = self.clock.now();
        let only_reads = self.only_reads();
        let mut stored = self.store.list_keys().await?;
        if stored
            .iter()
            .any(|key| key.token_millis < self.token_millis)
        {
            self.store.raise_token_life(self.token_millis).await?;
            stored = self.store.list_keys().await?;
        }
        if !only_reads && schedule(&stored).is_overdue(now) {
            let times = if stored.is_empty() {
                KeyTimes::at_once(now, self.token_millis)
            } else {
                KeyTimes::following(now, self.token_millis)
            };
            // If it was not added, another node was faster, and its key is read.
            let after = stored.last().map(|key| key.kid.as_str());
            self.add(times, after, Actor::Own.into()).await?;
            stored = self.store.list_keys().await?;
        }
        let schedule = schedule(&stored);
        let mut kept = Vec::with_capacity(stored.len());
        let mut gone = Vec::new();
        for (index, key) in stored.into_iter().enumerate() {
            match schedule.phase(index, now) {
                KeyPhase::Gone if !only_reads => gone.push(key.kid),
                _ => kept.push(key),
            }
        }
        self.replace(kept)?;
        self.read_at.store(now, Ordering::Relaxed);
        if !gone.is_empty() {
            self.store.remove_keys(&gone).await?;
            tracing::info!(
                ?gone,
                "signing keys that no token needs any more were removed"
            );
        }
        Ok(())
    }

    /// Adds a key, which is published now and signs 21 minutes later. Returns its `kid`.
    ///
    /// # Errors
    /// [`KeyError`].
    pub async fn rotate(&self, by: impl Into<By>) -> Result<String, KeyError> {
        self.check_clock()?;
        let by = by.into();
        for _ in 0..ATTEMPTS {
            let stored = self.store.list_keys().await?;
            let times = KeyTimes::following(self.clock.now(), self.token_millis);
            let after = stored.last().map(|key| key.kid.as_str());
            if let Some(kid) = self.add(times, after, by.clone()).await? {
                self.refresh().await?;
                return Ok(kid);
            }
        }
        Err(KeyError::Contended)
    }

    /// Revokes the key `kid`: from now on this node does not publish it, and trusts nothing that it
    /// signed. If it was the signing key, a new key signs at once; returns the new key's `kid`.
    ///
    /// # Errors
    /// [`KeyError`], most likely [`KeyError::Unknown`].
    pub async fn revoke(&self, kid: &str, by: impl Into<By>) -> Result<Option<String>, KeyError> {
        self.check_clock()?;
        let next = self.revoke_stored(kid, by.into()).await?;
        self.refresh().await?;
        Ok(next)
    }

    /// Revokes, as [`KeyRing::revoke`] does, every key that the secrets do not open or that is damaged.
    /// Returns the `kid` of each. It is the way out if the secret that sealed them is lost.
    ///
    /// # Errors
    /// [`KeyError`], most likely [`KeyError::Store`]
    pub async fn revoke_unreadable(&self, by: impl Into<By>) -> Result<Vec<String>, KeyError> {
        self.check_clock()?;
        let by = by.into();
        let mut unreadable = Vec::new();
        for key in self.store.list_keys().await? {
            let kid = key.kid.clone();
            if self.ready(key).is_err() {
                unreadable.push(kid);
            }
        }
        for kid in &unreadable {
            match self.revoke_stored(kid, by.clone()).await {
                // Somebody else did it.
                Err(KeyError::Unknown { .. }) => {}
                revoked => drop(revoked?),
            }
        }
        self.refresh().await?;
        Ok(unreadable)
    }

    /// Revokes a key in the store, and returns the `kid` of the key that signs instead, if it signed.
    async fn revoke_stored(&self, kid: &str, by: By) -> Result<Option<String>, KeyError> {
        for _ in 0..ATTEMPTS {
            let now = self.clock.now();
            let stored = self.store.list_keys().await?;
            let unknown = || KeyError::Unknown { kid: kid.into() };
            let index = stored.iter().position(|key| key.kid == kid);
            let index = index.ok_or_else(unknown)?;
            let successor = match schedule(&stored).phase(index, now) {
                KeyPhase::Signing => Some(self.make(KeyTimes::at_once(now, self.token_millis))?),
                _ => None,
            };
            let next = successor.as_ref().map(|key| key.kid.clone());
            let newest = stored.last().map(|key| key.kid.as_str());
            let revoked = self
                .store
                .revoke_key(kid, successor, newest, now, by.clone());
            match revoked.await? {
                Revocation::Done => {
                    tracing::warn!(kid, successor = next, "a signing key was revoked");
                    return Ok(next);
                }
                Revocation::Missing => return Err(unknown()),
                Revocation::Changed => {}
            }
        }
        Err(KeyError::Contended)
    }

    /// Seals every key with the current secret that is not yet sealed with it, and returns their
    /// number.
    ///
    /// # Errors
    /// [`KeyError`], most likely [`KeyError::NoSecret`].
    pub async fn reseal(&self) -> Result<usize, KeyError> {
        let secret = self.secrets.present.as_ref().ok_or(KeyError::NoSecret)?;
        let mut resealed = Vec::new();
        for key in self.store.list_keys().await? {
            if key.sealed && secret.open(&key.private, &key.kid).is_ok() {
                continue;
            }
            let private = self.secrets.private_of(&key)?;
            let sealed = secret.seal(&private, &key.kid, &*self.entropy)?;
            resealed.push((key.kid, sealed));
        }
        let count = resealed.len();
        if count > 0 {
            self.store.reseal_keys(resealed).await?;
            self.refresh().await?;
        }
        Ok(count)
    }

    /// Returns every key that this node knows, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<KeyInfo> {
        let now = self.clock.now();
        let ring = self.ring.load();
        ring.keys
            .iter()
            .enumerate()
            .map(|(index, key)| KeyInfo {
                kid: key.stored.kid.clone(),
                phase: ring.schedule.phase(index, now),
                sealed: key.stored.sealed,
                created_at: key.stored.created_at,
                signs_from: key.stored.signs_from,
                stops_at: ring.schedule.stops_at(index),
            })
            .collect()
    }

    /// Creates a key and adds it after the newest one. Returns `None` if that is no longer the
    /// newest one.
    async fn add(
        &self,
        times: KeyTimes,
        after: Option<&str>,
        by: By,
    ) -> Result<Option<String>, KeyError> {
        let key = self.make(times)?;
        let kid = key.kid.clone();
        let added = self.store.add_key(key, after, by).await?;
        if added {
            tracing::info!(
                kid,
                signs_from = times.signs_from,
                "a signing key was added"
            );
        }
        Ok(added.then_some(kid))
    }

    /// Creates a key in its stored form.
    fn make(&self, times: KeyTimes) -> Result<StoredKey, KeyError> {
        let private = PrivateKey::generate(&*self.entropy);
        let kid = private.public().kid().to_owned();
        let der = private
            .to_pkcs8()
            .ok_or_else(|| KeyError::Malformed { kid: kid.clone() })?;
        let (private, sealed) = match &self.secrets.present {
            Some(secret) => (secret.seal(&der, &kid, &*self.entropy)?, true),
            None => (der.to_vec(), false),
        };
        Ok(StoredKey {
            kid,
            private,
            sealed,
            created_at: times.created_at,
            signs_from: times.signs_from,
            token_millis: times.token_millis,
        })
    }

    /// Checks that the secrets open these keys, and that each is the key of its `kid`.
    ///
    /// # Errors
    /// What is wrong with the first that is not.
    pub fn check(&self, stored: Vec<StoredKey>) -> Result<(), KeyError> {
        let mut stored = stored.into_iter();
        stored.try_for_each(|key| self.ready(key).map(drop))
    }

    /// Replaces the ring by one with these keys.
    ///
    /// # Errors
    /// A key cannot be unsealed, or is damaged; the ring then stays unchanged.
    fn replace(&self, stored: Vec<StoredKey>) -> Result<(), KeyError> {
        let present = self.ring.load();
        if present.keys.iter().map(|key| &key.stored).eq(&stored) {
            return Ok(());
        }
        let schedule = schedule(&stored);
        let keys = stored
            .into_iter()
            .map(|stored| {
                // One `kid` is one key, even if it is sealed differently now.
                let known = present.keys.iter().find(|key| key.stored.kid == stored.kid);
                match known {
                    Some(ready) if ready.stored == stored => Ok(Arc::clone(ready)),
                    Some(ready) => Ok(Arc::new(ready.lying_as(stored))),
                    None => self.ready(stored).map(Arc::new),
                }
            })
            .collect::<Result<Vec<_>, _>>()?;
        let key_set = KeySet {
            keys: keys.iter().map(|key| &key.public).collect(),
        };
        let key_set = serde_json::to_string(&key_set)?;
        // Caches of verified tokens compare the identity of this string.
        let key_set = if *key_set == *present.key_set {
            Arc::clone(&present.key_set)
        } else {
            Arc::from(key_set)
        };
        self.ring.store(Arc::new(Ring {
            keys,
            schedule,
            key_set,
        }));
        Ok(())
    }

    /// Opens a stored key and checks that it matches its `kid`.
    fn ready(&self, stored: StoredKey) -> Result<ReadyKey, KeyError> {
        let kid = || stored.kid.clone();
        let der = self.secrets.private_of(&stored)?;
        let malformed = || KeyError::Malformed { kid: kid() };
        let private = PrivateKey::from_pkcs8(&der).ok_or_else(malformed)?;
        let public = private.public();
        if public.kid() != stored.kid {
            return Err(malformed());
        }
        Ok(ReadyKey {
            header: encoded_header("JWT", &stored.kid)?,
            signer: private.into_signer().into(),
            public,
            stored,
        })
    }
}

impl ReadyKey {
    /// Returns a JWT in compact form (RFC 7515 §3.1) with this encoded header, which includes the
    /// dot that follows it.
    fn sign(&self, header: &str, claims: &impl Serialize) -> Result<String, KeyError> {
        let payload = serde_json::to_vec(claims)?;
        // A third more for base64, and 87 bytes for the signature with its dot.
        let mut token = String::with_capacity(header.len() + payload.len() * 4 / 3 + 91);
        token.push_str(header);
        URL_SAFE_NO_PAD.encode_string(&payload, &mut token);
        let signature = self.signer.sign(token.as_bytes());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature.ok_or(KeyError::Signing)?, &mut token);
        Ok(token)
    }

    /// Returns the same key with its new stored form.
    fn lying_as(&self, stored: StoredKey) -> Self {
        Self {
            header: self.header.clone(),
            signer: Arc::clone(&self.signer),
            public: self.public.clone(),
            stored,
        }
    }
}

/// Returns an encoded JOSE header, with the dot that follows it.
fn encoded_header(typ: &str, kid: &str) -> Result<String, KeyError> {
    let header = serde_json::to_vec(&GameTokenHeader {
        alg: ALGORITHM.into(),
        typ: typ.into(),
        kid: kid.into(),
    })?;
    Ok(format!("{}.", URL_SAFE_NO_PAD.encode(header)))
}

fn schedule(stored: &[StoredKey]) -> KeySchedule {
    KeySchedule::new(stored.iter().map(StoredKey::times).collect())
}
