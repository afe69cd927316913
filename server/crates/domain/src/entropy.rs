//! Randomness, which callers pass in.

use rand::Rng as _;
use uuid::{Builder, Uuid};

use crate::clock::Millis;

/// Fills buffers with unpredictable random bytes.
pub trait Entropy: Send + Sync + std::fmt::Debug {
    /// Overwrites all of `bytes` with bytes for a secret.
    fn fill(&self, bytes: &mut [u8]);

    /// Overwrites all of `bytes` with bytes for an id that nobody has to keep secret.
    fn fill_id(&self, bytes: &mut [u8]) {
        self.fill(bytes);
    }
}

impl dyn Entropy + '_ {
    /// `N` random bytes for a secret.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// `N` random bytes for an id that nobody has to keep secret.
    pub fn id_bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill_id(&mut bytes);
        bytes
    }

    /// A time-ordered UUID, version 7 (RFC 9562 §5.7): rows that are made one after the other are
    /// neighbours in the store.
    pub fn uuid_v7(&self, now: Millis) -> Uuid {
        Builder::from_unix_timestamp_millis(now.unsigned_abs(), &self.id_bytes()).into_uuid()
    }

    /// A random UUID, version 4 (RFC 9562 §5.4).
    pub fn uuid_v4(&self) -> Uuid {
        Builder::from_random_bytes(self.id_bytes()).into_uuid()
    }

    /// A random UUID, version 8 (RFC 9562 §5.8), for ids that must not be taken for one of version 4.
    pub fn uuid_v8(&self) -> Uuid {
        Builder::from_custom_bytes(self.id_bytes()).into_uuid()
    }
}

/// The operating system's generator, which is asked for every secret. Every request needs ids, and
/// asking it for each would be a system call, so ids come from a generator of the thread (ChaCha,
/// reseeded every 64 KiB). Its state would be in a snapshot of a virtual machine, so that two
/// machines might make the same ids; secrets must not be at stake then.
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

    fn fill_id(&self, bytes: &mut [u8]) {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the one place that asks for randomness"
        )]
        rand::rng().fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_of_all_threads_differ() {
        let draw = || {
            let entropy: &dyn Entropy = &SystemEntropy;
            // More than one seed gives.
            (0..10_000).map(|_| entropy.id_bytes::<16>()).collect()
        };
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(draw)).collect();
        let drawn: Vec<Vec<[u8; 16]>> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        let ids: HashSet<[u8; 16]> = drawn.into_iter().flatten().collect();
        assert_eq!(ids.len(), 40_000);
    }
}
