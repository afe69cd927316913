//! Verified assertions of the platform. One assertion comes with every request of a minute, so it
//! is verified only once.

use std::sync::{PoisonError, RwLock};

/// How many assertions are remembered: a platform has a few nodes, and each signs its own.
const REMEMBERED: usize = 32;

/// Verified assertions and their expiry times.
#[derive(Debug, Default)]
pub(crate) struct KnownAssertions(RwLock<Vec<Known>>);

struct Known {
    assertion: String,
    ends: u64,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known")
            .field("ends", &self.ends)
            .finish_non_exhaustive()
    }
}

impl KnownAssertions {
    /// Whether this assertion was verified and has not expired. No leeway is needed here: an
    /// expired one is verified once more.
    pub(crate) fn knows(&self, assertion: &str, now: u64) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known
            .iter()
            .any(|known| now < known.ends && known.assertion == assertion)
    }

    /// Remembers a verified assertion.
    pub(crate) fn remember(&self, assertion: &str, ends: u64) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.remove(0);
        }
        known.push(Known {
            assertion: assertion.to_owned(),
            ends,
        });
    }
}
