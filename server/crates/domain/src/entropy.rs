//! Randomness, which callers pass in.

use uuid::{Builder, Uuid};

use crate::clock::Millis;

/// Fills buffers with unpredictable random bytes.
pub trait Entropy: Send + Sync + std::fmt::Debug {
    /// Overwrites all of `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}

impl dyn Entropy + '_ {
    /// `N` random bytes.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// A time-ordered UUID, version 7 (RFC 9562 §5.7): rows that are made one after the other are
    /// neighbours in the store.
    pub fn uuid_v7(&self, now: Millis) -> Uuid {
        Builder::from_unix_timestamp_millis(now.unsigned_abs(), &self.bytes()).into_uuid()
    }

    /// A random UUID, version 4 (RFC 9562 §5.4).
    pub fn uuid_v4(&self) -> Uuid {
        Builder::from_random_bytes(self.bytes()).into_uuid()
    }
}

/// The operating system's generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the one place that asks for randomness"
        )]
        let filled = getrandom::fill(bytes);
        #[expect(
            clippy::expect_used,
            reason = "without randomness no secret can be made: stop at once"
        )]
        filled.expect("the operating system gives random bytes");
    }
}
