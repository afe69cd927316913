//! The operator's secret, with which private keys are sealed in the store.

use std::fmt;

use zeroize::Zeroizing;

use super::KeyError;
use crate::domain::key::{MIN_SECRET_BYTES, StoredKey};
use crate::entropy::Entropy;
use crate::platform::sealing::SealingKey;

/// Binds the derived key to this use of the secret.
const PURPOSE: &[u8] = b"platform signing key, version 1";

/// The operator's secret. Anyone who has it and the store can mint tokens.
#[derive(Clone)]
pub struct KeySecret(SealingKey);

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
        let key = SealingKey::derive(text, PURPOSE);
        key.map(Self).ok_or(KeyError::SecretTooShort)
    }

    /// Seals a private key. The `kid` is authenticated with it, so a sealed key cannot be used as
    /// another one.
    pub(super) fn seal(
        &self,
        private: &[u8],
        kid: &str,
        entropy: &dyn Entropy,
    ) -> Result<Vec<u8>, KeyError> {
        let malformed = || KeyError::Malformed {
            kid: kid.to_owned(),
        };
        self.0.seal(private, kid, entropy).ok_or_else(malformed)
    }

    /// Opens the result of [`KeySecret::seal`].
    pub(super) fn open(&self, sealed: &[u8], kid: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        let wrong = || KeyError::WrongSecret {
            kid: kid.to_owned(),
        };
        self.0.open(sealed, kid).ok_or_else(wrong)
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
