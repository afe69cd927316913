//! Private keys of certificates and of accounts, as the store keeps them: sealed if the operator set a
//! secret.

use std::sync::Arc;

use zeroize::Zeroizing;

use crate::config::{Config, Secret};
use crate::entropy::Entropy;
use crate::platform::sealing::SealingKey;

/// Binds the derived key to this use of the secret.
const PURPOSE: &[u8] = b"platform certificate, version 1";

/// Seals with the current secret; opens what the current or the previous one sealed.
#[derive(Clone, Debug)]
pub(super) struct Sealing {
    present: Option<SealingKey>,
    former: Option<SealingKey>,
    entropy: Arc<dyn Entropy>,
}

impl Sealing {
    /// Uses the secrets of the settings.
    pub(super) fn new(config: &Config, entropy: &Arc<dyn Entropy>) -> Self {
        let derive = |secret: &Option<Secret>| {
            let secret = secret.as_ref()?;
            SealingKey::derive(secret.expose(), PURPOSE)
        };
        Self {
            present: derive(&config.key_secret),
            former: derive(&config.key_secret_old),
            entropy: Arc::clone(entropy),
        }
    }

    /// Returns a secret as it is stored, and whether it is sealed. `name` says what it is.
    pub(super) fn close(&self, secret: &[u8], name: &str) -> (Vec<u8>, bool) {
        let present = self.present.as_ref();
        let sealed = present.and_then(|key| key.seal(secret, name, &*self.entropy));
        match sealed {
            Some(sealed) => (sealed, true),
            None => (secret.to_vec(), false),
        }
    }

    /// Returns the secret again; `None` if none of the operator's secrets opens it.
    pub(super) fn open(
        &self,
        stored: &[u8],
        sealed: bool,
        name: &str,
    ) -> Option<Zeroizing<Vec<u8>>> {
        if !sealed {
            return Some(Zeroizing::new(stored.to_vec()));
        }
        let mut keys = [&self.present, &self.former].into_iter().flatten();
        keys.find_map(|key| key.open(stored, name))
    }

    /// Returns a stored secret sealed with the current secret of the operator; `None` if it is already,
    /// if there is no such secret, or if it cannot be opened.
    pub(super) fn reseal(&self, stored: &[u8], sealed: bool, name: &str) -> Option<Vec<u8>> {
        let present = self.present.as_ref()?;
        if sealed && present.open(stored, name).is_some() {
            return None;
        }
        let secret = self.open(stored, sealed, name)?;
        present.seal(&secret, name, &*self.entropy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;

    fn sealing(present: Option<&str>, former: Option<&str>) -> Sealing {
        let secret = |letter: Option<&str>| letter.map(|letter| Secret::new(letter.repeat(32)));
        let config = Config {
            key_secret: secret(present),
            key_secret_old: secret(former),
            ..Config::default()
        };
        let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
        Sealing::new(&config, &entropy)
    }

    #[test]
    fn a_key_is_sealed_opened_and_sealed_again() {
        let (stored, sealed) = sealing(None, None).close(b"key", "name");
        assert_eq!((stored.as_slice(), sealed), (&b"key"[..], false));
        let resealed = sealing(Some("a"), None).reseal(&stored, sealed, "name");
        let resealed = resealed.unwrap();
        let opens = |sealing: &Sealing, stored: &[u8]| {
            let opened = sealing.open(stored, true, "name");
            opened.is_some_and(|key| key.as_slice() == b"key")
        };
        assert!(opens(&sealing(Some("a"), None), &resealed));
        assert!(opens(&sealing(Some("b"), Some("a")), &resealed));
        assert!(!opens(&sealing(Some("b"), None), &resealed));
        assert!(!opens(&sealing(None, None), &resealed));
        let both = sealing(Some("b"), Some("a"));
        let again = both.reseal(&resealed, true, "name").unwrap();
        assert!(opens(&sealing(Some("b"), None), &again));
        assert_eq!(both.reseal(&again, true, "name"), None);
        assert_eq!(both.reseal(&again, true, "other"), None);
        assert_eq!(sealing(None, None).reseal(&again, true, "name"), None);
    }
}
