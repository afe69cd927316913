//! The life of a signing key: published, then signing, then only published,
//! then gone. Times are handed in; see `keys` for the cryptography.

use crate::clock::Millis;

/// How long a new key is published before it signs. A verifier's cached key
/// set, at most ten minutes old, has it by then, and so has every node.
pub const PUBLISH_AHEAD_MILLIS: Millis = 21 * 60 * 1_000;
/// How long beyond the last token's life an old key stays published.
pub const LINGER_MILLIS: Millis = 10 * 60 * 1_000;
/// Age at which a signing key is replaced by itself.
pub const ROTATE_AFTER_MILLIS: Millis = 90 * 24 * 60 * 60 * 1_000;

/// A signing key as the store keeps it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// RFC 7638 thumbprint of the public key, base64url.
    pub kid: String,
    /// The private key: PKCS#8 DER, sealed if the operator set a secret.
    pub private: Vec<u8>,
    /// Whether `private` is sealed.
    pub sealed: bool,
    /// When it was made, and so published.
    pub created_at: Millis,
    /// From when on it signs, until the next key's time comes.
    pub signs_from: Millis,
}

impl std::fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredKey")
            .field("kid", &self.kid)
            .field("created_at", &self.created_at)
            .field("signs_from", &self.signs_from)
            .finish_non_exhaustive()
    }
}

/// What a key does at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPhase {
    /// In the key set, not signing yet.
    Published,
    /// Signing.
    Signing,
    /// In the key set, for tokens that it signed before.
    Retiring,
    /// Out of the key set.
    Gone,
}
