//! The signing keys: made, kept, published, used and rotated.
//!
//! Private keys lie in the store, since every node needs the same ones; the
//! embedded store's file is readable by its owner alone, and with an
//! operator's secret they are sealed besides. `sign` picks the key by the
//! clock from a ring in memory, and never touches the store.

mod secret;
mod signer;
mod sole;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_protocol::claims::{ALGORITHM, GameTokenHeader};
use serde::Serialize;
use zeroize::Zeroizing;

pub use self::secret::{KeySecret, MIN_SECRET_BYTES};
pub use self::signer::Signer;
use self::signer::{PrivateKey, PublicJwk};
pub use self::sole::SoleKey;
use crate::clock::{Clock, Millis};
use crate::domain::audit::{Actor, By};
use crate::domain::key::{KeyPhase, KeySchedule, KeyTimes, LONGEST_TOKEN_MILLIS, StoredKey};
use crate::entropy::Entropy;
use crate::store::{Store, StoreError};

/// Why keys could not be read, made or used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The operator's secret is too short to be one.
    #[error("the key secret has fewer than {MIN_SECRET_BYTES} bytes; take one from a generator")]
    SecretTooShort,
    /// A key is sealed, and no secret was given.
    #[error(
        "signing key {kid} is sealed: set PLATFORM_KEY_SECRET to the key secret that sealed it"
    )]
    SecretMissing {
        /// Which key.
        kid: String,
    },
    /// A key is sealed under another secret, or was changed in the store.
    #[error(
        "signing key {kid} cannot be opened with this PLATFORM_KEY_SECRET: set the key secret that sealed it"
    )]
    WrongSecret {
        /// Which key.
        kid: String,
    },
    /// What the store holds is not the private key of this `kid`.
    #[error("signing key {kid} is damaged")]
    Malformed {
        /// Which key.
        kid: String,
    },
    /// There is no key, or the signature could not be made.
    #[error("no token could be signed")]
    Signing,
    /// Claims or keys could not be written as JSON.
    #[error("JSON could not be written")]
    Json(#[from] serde_json::Error),
    /// Others changed the keys again and again while this ring tried to.
    #[error("the signing keys are being changed by others; try again")]
    Contended,
    /// The store failed.
    #[error("the signing keys could not be read or written")]
    Store(#[from] StoreError),
}

/// A key as an operator may see it: nothing of it is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// RFC 7638 thumbprint.
    pub kid: String,
    /// What it does now.
    pub phase: KeyPhase,
    /// Whether it is sealed in the store.
    pub sealed: bool,
    /// When it was made.
    pub created_at: Millis,
    /// From when on it signs.
    pub signs_from: Millis,
    /// When it stops signing, if another key follows it.
    pub stops_at: Option<Millis>,
}

/// A key that is ready to sign.
#[derive(Debug)]
struct ReadyKey {
    /// The JOSE header, encoded, with the dot that follows it.
    header: String,
    signer: Box<dyn Signer>,
    public: PublicJwk,
    stored: StoredKey,
}

/// All keys at one moment. Never changed, only replaced as a whole.
#[derive(Debug)]
struct Ring {
    /// In the order of the store: the newest last.
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
    secret: Option<KeySecret>,
    ring: ArcSwap<Ring>,
}

#[derive(Serialize)]
struct KeySet<'a> {
    keys: Vec<&'a PublicJwk>,
}

/// How often to look again when another node was first.
const ATTEMPTS: usize = 8;

impl KeyRing {
    /// Reads the keys, and makes the first one where there is none.
    /// `token_seconds` is the life of the tokens that will be signed.
    ///
    /// # Errors
    /// [`KeyError`], above all when the secret is not the right one.
    pub async fn open(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        token_seconds: u64,
        secret: Option<KeySecret>,
    ) -> Result<Arc<Self>, KeyError> {
        let token_millis = Millis::try_from(token_seconds)
            .unwrap_or(Millis::MAX)
            .saturating_mul(1_000)
            .max(LONGEST_TOKEN_MILLIS);
        let empty = Ring {
            keys: Vec::new(),
            schedule: KeySchedule::new(Vec::new(), token_millis),
            key_set: Arc::from(r#"{"keys":[]}"#),
        };
        let ring = ArcSwap::from_pointee(empty);
        let ring = Self {
            store,
            clock,
            entropy,
            token_millis,
            secret,
            ring,
        };
        ring.refresh().await?;
        Ok(Arc::new(ring))
    }

    /// A game token with these claims, in compact form (RFC 7515 §3.1), signed
    /// by the key whose turn it is.
    ///
    /// # Errors
    /// [`KeyError::Signing`] or [`KeyError::Json`]; neither is expected.
    pub fn sign<C: Serialize>(&self, claims: &C) -> Result<String, KeyError> {
        let ring = self.ring.load();
        let index = ring
            .schedule
            .signing_at(self.clock.now())
            .ok_or(KeyError::Signing)?;
        let key = &ring.keys[index];
        let payload = serde_json::to_vec(claims)?;
        // A third more for base64, and 87 for the signature with its dot.
        let mut token = String::with_capacity(key.header.len() + payload.len() * 4 / 3 + 91);
        token.push_str(&key.header);
        URL_SAFE_NO_PAD.encode_string(&payload, &mut token);
        let signature = key.signer.sign(token.as_bytes()).ok_or(KeyError::Signing)?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token)
    }

    /// The published key set (RFC 7517 §5) as JSON. It is the same string, and
    /// the same allocation, until [`KeyRing::refresh`] finds another.
    #[must_use]
    pub fn key_set(&self) -> Arc<str> {
        Arc::clone(&self.ring.load().key_set)
    }

    /// Reads the keys again, adds one if the last is 90 days old, and forgets
    /// those that are out of the key set. To be called every 30 s: a key that
    /// another node or the operator added has to be published here as well
    /// long before it signs.
    ///
    /// # Errors
    /// [`KeyError`]; the ring then stays what it was.
    pub async fn refresh(&self) -> Result<(), KeyError> {
        let now = self.clock.now();
        let mut stored = self.store.list_keys().await?;
        if self.schedule(&stored).is_overdue(now) {
            let times = if stored.is_empty() {
                KeyTimes::first(now)
            } else {
                KeyTimes::following(now)
            };
            // If it was not added, another node was first, and its key is read.
            let after = stored.last().map(|key| key.kid.as_str());
            self.add(times, after, Actor::Own.into()).await?;
            stored = self.store.list_keys().await?;
        }
        let schedule = self.schedule(&stored);
        let mut kept = Vec::with_capacity(stored.len());
        let mut gone = Vec::new();
        for (index, key) in stored.into_iter().enumerate() {
            match schedule.phase(index, now) {
                KeyPhase::Gone => gone.push(key.kid),
                _ => kept.push(key),
            }
        }
        self.replace(kept)?;
        if !gone.is_empty() {
            self.store.remove_keys(&gone).await?;
            tracing::info!(
                ?gone,
                "signing keys that no token needs any more were forgotten"
            );
        }
        Ok(())
    }

    /// Adds a key, published now, that signs 21 minutes later. Answers its
    /// `kid`.
    ///
    /// # Errors
    /// [`KeyError`].
    pub async fn rotate(&self, by: impl Into<By>) -> Result<String, KeyError> {
        let by = by.into();
        for _ in 0..ATTEMPTS {
            let stored = self.store.list_keys().await?;
            let times = KeyTimes::following(self.clock.now());
            let after = stored.last().map(|key| key.kid.as_str());
            if let Some(kid) = self.add(times, after, by.clone()).await? {
                self.refresh().await?;
                return Ok(kid);
            }
        }
        Err(KeyError::Contended)
    }

    /// Every key that this node knows, oldest first.
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

    fn schedule(&self, stored: &[StoredKey]) -> KeySchedule {
        let times = stored.iter().map(StoredKey::times).collect();
        KeySchedule::new(times, self.token_millis)
    }

    /// Makes a key and adds it after the newest one. `None` if that one is the
    /// newest no longer.
    async fn add(
        &self,
        times: KeyTimes,
        after: Option<&str>,
        by: By,
    ) -> Result<Option<String>, KeyError> {
        let private = PrivateKey::generate(&*self.entropy);
        let kid = private.public().kid().to_owned();
        let der = private
            .to_pkcs8()
            .ok_or_else(|| KeyError::Malformed { kid: kid.clone() })?;
        let (private, sealed) = match &self.secret {
            Some(secret) => (secret.seal(&der, &kid, &*self.entropy)?, true),
            None => (der.to_vec(), false),
        };
        let key = StoredKey {
            kid: kid.clone(),
            private,
            sealed,
            created_at: times.created_at,
            signs_from: times.signs_from,
        };
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

    /// Puts a ring of these keys in the place of the present one.
    fn replace(&self, stored: Vec<StoredKey>) -> Result<(), KeyError> {
        let present = self.ring.load();
        if present.keys.iter().map(|key| &key.stored).eq(&stored) {
            return Ok(());
        }
        let schedule = self.schedule(&stored);
        let keys = stored
            .into_iter()
            .map(
                |stored| match present.keys.iter().find(|key| key.stored == stored) {
                    Some(ready) => Ok(Arc::clone(ready)),
                    None => self.ready(stored).map(Arc::new),
                },
            )
            .collect::<Result<Vec<_>, _>>()?;
        let key_set = KeySet {
            keys: keys.iter().map(|key| &key.public).collect(),
        };
        let key_set = Arc::from(serde_json::to_string(&key_set)?);
        self.ring.store(Arc::new(Ring {
            keys,
            schedule,
            key_set,
        }));
        Ok(())
    }

    /// Opens a key of the store and checks that it is what it says.
    fn ready(&self, stored: StoredKey) -> Result<ReadyKey, KeyError> {
        let kid = || stored.kid.clone();
        let der = match (stored.sealed, &self.secret) {
            (true, Some(secret)) => secret.open(&stored.private, &stored.kid)?,
            (true, None) => return Err(KeyError::SecretMissing { kid: kid() }),
            (false, _) => Zeroizing::new(stored.private.clone()),
        };
        let malformed = || KeyError::Malformed { kid: kid() };
        let private = PrivateKey::from_pkcs8(&der).ok_or_else(malformed)?;
        let public = private.public();
        if public.kid() != stored.kid {
            return Err(malformed());
        }
        let header = serde_json::to_vec(&GameTokenHeader {
            alg: ALGORITHM.into(),
            typ: "JWT".into(),
            kid: kid(),
        })?;
        let header = format!("{}.", URL_SAFE_NO_PAD.encode(header));
        Ok(ReadyKey {
            header,
            signer: private.into_signer(),
            public,
            stored,
        })
    }
}
