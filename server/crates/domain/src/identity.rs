//! An identity at an OpenID provider, as the platform stores it.

use sha2::{Digest, Sha256};

use crate::clock::Millis;

/// SHA-256 of issuer and subject, which together identify a person at a provider permanently
/// (OpenID Connect Core 1.0 §5.7). The platform stores neither of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdentityKey(pub [u8; 32]);

/// A person's identity at an OpenID provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The provider's id in the settings.
    pub provider: String,
    /// The key. It does not depend on the provider's id, which an operator may change.
    pub key: IdentityKey,
}

impl Identity {
    /// The identity of `subject` at `issuer`: the claims `sub` and `iss` of a verified ID token.
    #[must_use]
    pub fn new(provider: &str, issuer: &str, subject: &str) -> Self {
        // The length distinguishes `a` + `bc` from `ab` + `c`.
        let length = u64::try_from(issuer.len()).unwrap_or(u64::MAX);
        let key = Sha256::new()
            .chain_update(length.to_be_bytes())
            .chain_update(issuer)
            .chain_update(subject)
            .finalize();
        Self {
            provider: provider.to_owned(),
            key: IdentityKey(key.into()),
        }
    }
}

/// An identity that is linked to an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedIdentity {
    /// The id of the provider that was first used for it.
    pub provider: String,
    /// The key.
    pub key: IdentityKey,
    /// When it was linked.
    pub linked_at: Millis,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuer_and_subject_together_are_the_identity() {
        let key = |issuer, subject| Identity::new("id", issuer, subject).key;
        let one = key("https://id.example", "7");
        assert_eq!(
            one,
            Identity::new("other", "https://id.example", "7").key,
            "an operator may rename a provider"
        );
        for other in [
            key("https://id.example", "8"),
            key("https://id.example7", ""),
            key("https://id.exampl", "e7"),
            key("https://id.example/", "7"),
        ] {
            assert_ne!(one, other);
        }
    }
}
