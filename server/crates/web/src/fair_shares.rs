//! Counts how many of something each holder has, such as uploads of a player or requests of a
//! network, so that no holder can use up all of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts by holder. Only contains holders of at least one.
#[derive(Clone, Debug)]
pub struct Shares<K>(Arc<Mutex<HashMap<K, usize>>>);

impl<K> Default for Shares<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Clone + Eq + Hash> Shares<K> {
    /// Adds one for `holder`, who may have `limit` at the same time.
    #[must_use]
    pub fn take(&self, holder: K, limit: usize) -> Option<Share<K>> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(holder.clone()).or_default();
        if *count >= limit {
            if *count == 0 {
                held.remove(&holder);
            }
            return None;
        }
        *count += 1;
        Some(Share {
            shares: self.clone(),
            holder,
        })
    }

    /// Whether nobody holds anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.is_empty()
    }
}

/// One item of a holder; dropping it frees the item.
#[derive(Debug)]
#[must_use = "dropping it gives it back"]
pub struct Share<K: Clone + Eq + Hash> {
    shares: Shares<K>,
    holder: K,
}

impl<K: Clone + Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        let mut held = self.shares.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = held.entry(self.holder.clone()) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_holds_its_own_number_and_gives_it_back() {
        let shares = Shares::default();
        let first = shares.take("a", 2);
        let second = shares.take("a", 2);
        assert!(first.is_some() && second.is_some());
        assert!(shares.take("a", 2).is_none());
        assert!(shares.take("b", 2).is_some());
        drop(first);
        assert!(shares.take("a", 2).is_some());
        drop(second);
        assert!(shares.take("c", 0).is_none());
        assert!(shares.is_empty(), "nothing is left over");
    }
}
