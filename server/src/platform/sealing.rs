//! Sealing of secrets in the store, under a key that is derived from the operator's secret.

use std::fmt;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::{Zeroize, Zeroizing};

use crate::entropy::Entropy;

const NONCE_BYTES: usize = 24;

/// A key that seals for one purpose.
#[derive(Clone)]
pub struct SealingKey(Zeroizing<[u8; 32]>);

impl SealingKey {
    /// Derives the key for `purpose` from a secret (RFC 5869). `None` never happens: the output of one
    /// block cannot be too long.
    #[must_use]
    pub fn derive(secret: &str, purpose: &[u8]) -> Option<Self> {
        let mut key = Zeroizing::new([0; 32]);
        let derived = Hkdf::<Sha256>::new(None, secret.as_bytes());
        derived.expand(purpose, key.as_mut_slice()).ok()?;
        Some(Self(key))
    }

    /// Seals a text: the result is a random nonce, then the ciphertext with its tag. `name` is
    /// authenticated with it, so it can only be opened as what it was. `None` if the text is too long
    /// for the cipher.
    #[must_use]
    pub fn seal(&self, text: &[u8], name: &str, entropy: &dyn Entropy) -> Option<Vec<u8>> {
        let nonce: [u8; NONCE_BYTES] = entropy.bytes();
        let payload = Payload {
            msg: text,
            aad: name.as_bytes(),
        };
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), payload).ok()?;
        Some([nonce.as_slice(), &sealed].concat())
    }

    /// Opens the result of [`SealingKey::seal`]. `None` if it is another key's, another name's, or
    /// damaged.
    #[must_use]
    pub fn open(&self, sealed: &[u8], name: &str) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, ciphertext) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let payload = Payload {
            msg: ciphertext,
            aad: name.as_bytes(),
        };
        let text = self.cipher().decrypt(&XNonce::from(*nonce), payload);
        text.ok().map(Zeroizing::new)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.0).into())
    }
}

impl Drop for SealingKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;

    #[test]
    fn what_is_sealed_for_one_purpose_opens_for_no_other() {
        let secret = "a".repeat(32);
        let key = |purpose: &[u8]| SealingKey::derive(&secret, purpose).unwrap();
        let sealed = key(b"one")
            .seal(b"private", "name", &SystemEntropy)
            .unwrap();
        assert_eq!(
            key(b"one").open(&sealed, "name").unwrap().as_slice(),
            b"private"
        );
        assert!(key(b"two").open(&sealed, "name").is_none());
        assert!(key(b"one").open(&sealed, "other").is_none());
        assert_eq!(format!("{:?}", key(b"one")), "SealingKey(hidden)");
    }
}
