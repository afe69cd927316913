//! Values that the browser carries and only the provider can read: requests and codes. Several
//! nodes may be one provider, and any of them may be asked next, so a value is not kept on the node
//! that made it.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::clock::{CLOCKS_DIFFER, Millis};
use crate::entropy::Entropy;

const NONCE_BYTES: usize = 24;
/// The maximum number of remembered used values; the oldest are forgotten first. One person on one
/// machine needs only a few.
const MOST: usize = 1_024;

/// Seals values of one kind. Each can be taken once on a node, for a short time.
pub(super) struct Sealed<T> {
    cipher: XChaCha20Poly1305,
    life: Millis,
    used: Mutex<VecDeque<Used>>,
    kind: PhantomData<fn(T) -> T>,
}

/// A value with the time at which it was sealed.
#[derive(Deserialize, Serialize)]
struct Stamped<T> {
    at: Millis,
    value: T,
}

/// A value that was taken, by its hash.
struct Used {
    hash: [u8; 32],
    until: Millis,
}

impl<T: Serialize + DeserializeOwned> Sealed<T> {
    /// Creates the kind whose values are sealed with `key` and can be taken for `life`. Every kind
    /// has a key of its own, so that no value is taken for one of another kind.
    pub(super) fn new(key: [u8; 32], life: Duration) -> Self {
        Self {
            cipher: XChaCha20Poly1305::new(&key.into()),
            life: Millis::try_from(life.as_millis()).unwrap_or(Millis::MAX),
            used: Mutex::default(),
            kind: PhantomData,
        }
    }

    /// Seals a value. Returns `None` if it has no JSON form, which does not happen.
    pub(super) fn seal(&self, value: T, now: Millis, entropy: &dyn Entropy) -> Option<String> {
        let plain = serde_json::to_vec(&Stamped { at: now, value }).ok()?;
        let nonce: [u8; NONCE_BYTES] = entropy.bytes();
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), plain.as_slice());
        Some(URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed.ok()?].concat()))
    }

    /// Whether this is a value that can be taken.
    pub(super) fn has(&self, sealed: &str, now: Millis) -> bool {
        self.open(sealed, now).is_some() && !self.is_used(&hash(sealed))
    }

    /// Returns the value, once.
    pub(super) fn take(&self, sealed: &str, now: Millis) -> Option<T> {
        let opened = self.open(sealed, now)?;
        let hash = hash(sealed);
        let mut used = self.lock();
        while used.front().is_some_and(|used| used.until < now) {
            used.pop_front();
        }
        if used.iter().any(|used| used.hash == hash) {
            return None;
        }
        if used.len() == MOST {
            used.pop_front();
        }
        let until = opened.at.saturating_add(self.life);
        used.push_back(Used { hash, until });
        Some(opened.value)
    }

    fn open(&self, sealed: &str, now: Millis) -> Option<Stamped<T>> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let plain = self.cipher.decrypt(&XNonce::from(*nonce), sealed).ok()?;
        let opened: Stamped<T> = serde_json::from_slice(&plain).ok()?;
        let age = now.saturating_sub(opened.at);
        (-CLOCKS_DIFFER..self.life).contains(&age).then_some(opened)
    }

    fn is_used(&self, hash: &[u8; 32]) -> bool {
        self.lock().iter().any(|used| used.hash == *hash)
    }

    /// No holder panics, and no partial change is ever visible.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Used>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(sealed: &str) -> [u8; 32] {
    Sha256::digest(sealed).into()
}

impl<T> fmt::Debug for Sealed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;

    fn kind(key: u8) -> Sealed<u64> {
        Sealed::new([key; 32], Duration::from_secs(60))
    }

    const fn second(number: i64) -> Millis {
        number * 1_000
    }

    #[test]
    fn a_value_is_taken_once_on_a_node_and_read_by_every_node() {
        let (one, another) = (kind(1), kind(1));
        let sealed = one.seal(7, second(0), &SystemEntropy).unwrap();
        for node in [&another, &one] {
            assert!(node.has(&sealed, second(1)));
            assert_eq!(node.take(&sealed, second(1)), Some(7));
            assert!(!node.has(&sealed, second(1)));
            assert_eq!(node.take(&sealed, second(1)), None);
        }
    }

    #[test]
    fn a_value_does_not_outlive_its_time_and_may_come_from_a_clock_ahead() {
        let kind = kind(1);
        let sealed = kind.seal(7, second(0), &SystemEntropy).unwrap();
        assert!(kind.has(&sealed, second(59)) && kind.has(&sealed, -CLOCKS_DIFFER));
        assert!(!kind.has(&sealed, second(60)) && !kind.has(&sealed, -CLOCKS_DIFFER - 1));
        assert_eq!(kind.take(&sealed, second(60)), None);
    }

    #[test]
    fn what_was_changed_or_sealed_for_something_else_is_no_value() {
        let kind = kind(1);
        let sealed = kind.seal(7, second(0), &SystemEntropy).unwrap();
        let other = self::kind(2).seal(7, second(0), &SystemEntropy).unwrap();
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 1;
            assert!(!kind.has(&URL_SAFE_NO_PAD.encode(changed), second(0)));
        }
        for wrong in ["", "a", "AAAA", &sealed[1..], other.as_str()] {
            assert!(!kind.has(wrong, second(0)), "{wrong}");
        }
    }
}
