//! The operator's secret, with which private keys are sealed in the store.

use std::fmt;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::{Zeroize, Zeroizing};

use super::KeyError;
use crate::domain::key::{MIN_SECRET_BYTES, StoredKey};
use crate::entropy::Entropy;

const NONCE_BYTES: usize = 24;
/// Binds the derived key to this use of the secret.
const PURPOSE: &[u8] = b"platform signing key, version 1";

/// The operator's secret. Anyone who has it and the store can mint tokens.
#[derive(Clone)]
pub struct KeySecret(Zeroizing<[u8; 32]>);

impl KeySecret {
    /// Creates a secret from at least [`MIN_SECRET_BYTES`] random bytes, in any form that is the
    /// same at every start.
    ///
    /// # Errors
    /// [`KeyError::SecretTooShort`].
    pub fn new(text: &str) -> Result<Self, KeyError> {
        if text.len() < MIN_SECRET_BYTES {
            return Err(KeyError::SecretTooShort);
        }
        let mut key = Zeroizing::new([0; 32]);
        // RFC 5869. The output of one block cannot be too long.
        Hkdf::<Sha256>::new(None, text.as_bytes())
            .expand(PURPOSE, key.as_mut_slice())
            .map_err(|_| KeyError::SecretTooShort)?;
        Ok(Self(key))
    }

    /// Seals a private key: the result is a random nonce, then the ciphertext with its tag. The
    /// `kid` is authenticated with it, so a sealed key cannot be used as another one.
    pub(super) fn seal(
        &self,
        private: &[u8],
        kid: &str,
        entropy: &dyn Entropy,
    ) -> Result<Vec<u8>, KeyError> {
        let nonce: [u8; NONCE_BYTES] = entropy.bytes();
        let sealed = self
            .cipher()
            .encrypt(
                &XNonce::from(nonce),
                Payload {
                    msg: private,
                    aad: kid.as_bytes(),
                },
            )
            .map_err(|_| KeyError::Malformed {
                kid: kid.to_owned(),
            })?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// Opens the result of [`KeySecret::seal`].
    pub(super) fn open(&self, sealed: &[u8], kid: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        let (nonce, ciphertext) =
            sealed
                .split_first_chunk::<NONCE_BYTES>()
                .ok_or_else(|| KeyError::Malformed {
                    kid: kid.to_owned(),
                })?;
        self.cipher()
            .decrypt(
                &XNonce::from(*nonce),
                Payload {
                    msg: ciphertext,
                    aad: kid.as_bytes(),
                },
            )
            .map(Zeroizing::new)
            .map_err(|_| KeyError::WrongSecret {
                kid: kid.to_owned(),
            })
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.0).into())
    }
}

/// The secrets of a platform: the current one, which seals, and the previous one, which only opens
/// keys that are still sealed with it.
#[derive(Clone, Debug, Default)]
pub struct KeySecrets {
    /// Seals and opens.
    pub present: Option<KeySecret>,
    /// Opens.
    pub former: Option<KeySecret>,
}

impl KeySecrets {
    /// Returns the private key of `key`, sealed or not.
    pub(super) fn private_of(&self, key: &StoredKey) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        if !key.sealed {
            return Ok(Zeroizing::new(key.private.clone()));
        }
        let mut outcome = Err(KeyError::SecretMissing {
            kid: key.kid.clone(),
        });
        for secret in [&self.present, &self.former].into_iter().flatten() {
            outcome = secret.open(&key.private, &key.kid);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }
}

impl Drop for KeySecret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;

    fn secret(letter: &str) -> KeySecret {
        KeySecret::new(&letter.repeat(MIN_SECRET_BYTES)).unwrap()
    }

    #[test]
    fn a_sealed_key_opens_with_the_secret_and_the_kid_that_sealed_it() {
        let sealed = secret("a").seal(b"private", "kid", &SystemEntropy).unwrap();
        assert!(!sealed.windows(7).any(|window| window == b"private"));
        assert_eq!(
            secret("a").open(&sealed, "kid").unwrap().as_slice(),
            b"private"
        );
        let wrong = |result| matches!(result, Err(KeyError::WrongSecret { .. }));
        assert!(wrong(secret("b").open(&sealed, "kid")));
        assert!(wrong(secret("a").open(&sealed, "other")));
    }

    #[test]
    fn a_changed_or_cut_sealed_key_is_refused() {
        let sealed = secret("a").seal(b"private", "kid", &SystemEntropy).unwrap();
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert!(secret("a").open(&changed, "kid").is_err(), "byte {index}");
            assert!(
                secret("a").open(&sealed[..index], "kid").is_err(),
                "length {index}"
            );
        }
    }

    #[test]
    fn a_short_secret_is_refused_and_none_is_printed() {
        assert!(matches!(
            KeySecret::new(&"a".repeat(31)),
            Err(KeyError::SecretTooShort)
        ));
        assert_eq!(format!("{:?}", secret("a")), "KeySecret(hidden)");
    }
}
