//! Randomness that is derived from one secret, so that every node that has the secret gets the same.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use hkdf::Hkdf;
use sha2::Sha256;

use crate::entropy::Entropy;

/// Binds what is derived to this use of the secret.
const PURPOSE: &[u8] = b"platform demo provider, version 1";

/// A sequence of random bytes (RFC 5869): the same one for the same secret.
pub(super) struct Derived {
    secret: Hkdf<Sha256>,
    /// How often bytes were drawn.
    drawn: AtomicU32,
}

impl Derived {
    /// The sequence of a secret, from its beginning.
    pub(super) fn new(secret: &[u8; 32]) -> Self {
        Self {
            secret: Hkdf::new(None, secret),
            drawn: AtomicU32::new(0),
        }
    }
}

impl Entropy for Derived {
    fn fill(&self, bytes: &mut [u8]) {
        let number = self.drawn.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let filled = self.secret.expand_multi_info(&[PURPOSE, &number], bytes);
        #[expect(
            clippy::expect_used,
            reason = "only more than 8,160 bytes are too many, and nobody draws so many at once"
        )]
        filled.expect("so few bytes can be derived");
    }
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Derived(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_secrets_and_does_not_repeat() {
        let draw = |derived: &dyn Entropy| [derived.bytes::<32>(), derived.bytes()];
        let first = draw(&Derived::new(&[1; 32]));
        assert_eq!(first, draw(&Derived::new(&[1; 32])));
        assert_ne!(first, draw(&Derived::new(&[2; 32])));
        assert_ne!(first[0], first[1]);
    }
}
