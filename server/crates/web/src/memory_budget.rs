//! A memory budget of all connections, and of the connections of each network, so that no network can use
//! up the memory that all share.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::client_address::Network;

/// What may be taken, and what is taken.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    total: usize,
    per_network: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Only contains networks that use some of the budget.
    networks: HashMap<Network, usize>,
}

impl Taken {
    fn of(&self, network: Network) -> usize {
        self.networks.get(&network).copied().unwrap_or_default()
    }
}

impl MemoryBudget {
    /// Creates a budget for all connections and for the connections of one network, in bytes.
    pub(super) fn new(total: usize, per_network: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            per_network,
            taken: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `bytes`, or nothing if they are not available.
    pub(super) fn take(&self, network: Option<Network>, bytes: usize) -> bool {
        let mut taken = self.lock();
        if taken.all + bytes > self.total {
            return false;
        }
        if let Some(network) = network {
            let before = taken.of(network);
            if before + bytes > self.per_network {
                return false;
            }
            taken.networks.insert(network, before + bytes);
        }
        taken.all += bytes;
        true
    }

    /// Takes `bytes` that are in memory already, even if they exceed the budget.
    pub(super) fn take_over(&self, network: Option<Network>, bytes: usize) {
        let mut taken = self.lock();
        taken.all += bytes;
        if let Some(network) = network {
            *taken.networks.entry(network).or_default() += bytes;
        }
    }

    /// Whether this network may take no more, since its part or the whole is taken.
    pub(super) fn is_used_up(&self, network: Option<Network>) -> bool {
        let taken = self.lock();
        taken.all >= self.total
            || network.is_some_and(|network| taken.of(network) >= self.per_network)
    }

    /// Gives `bytes` back.
    pub(super) fn give_back(&self, network: Option<Network>, bytes: usize) {
        let mut taken = self.lock();
        taken.all = taken.all.saturating_sub(bytes);
        let Some(network) = network else { return };
        if let Entry::Occupied(mut of_network) = taken.networks.entry(network) {
            *of_network.get_mut() = of_network.get().saturating_sub(bytes);
            if *of_network.get() == 0 {
                of_network.remove();
            }
        }
    }
}

#[cfg(test)]
impl MemoryBudget {
    /// How many bytes are taken.
    pub(super) fn taken(&self) -> usize {
        self.lock().all
    }

    /// Whether nothing is taken, by no network either.
    pub(super) fn is_free(&self) -> bool {
        let taken = self.lock();
        taken.all == 0 && taken.networks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exceeds_the_budget_is_counted_and_given_back() {
        let one = Some(Network::of("192.0.2.1".parse().unwrap()));
        let other = Some(Network::of("192.0.2.2".parse().unwrap()));
        let budget = MemoryBudget::new(1_000, 600);
        let used_up = || [one, other, None].map(|who| budget.is_used_up(who));
        budget.take_over(one, 599);
        assert_eq!(used_up(), [false, false, false]);
        budget.take_over(one, 200);
        assert_eq!(used_up(), [true, false, false], "only its own part");
        assert!(budget.take(other, 201) && !budget.take(other, 1));
        assert_eq!(used_up(), [true, true, true], "the whole");
        budget.give_back(one, 799);
        assert_eq!(used_up(), [false, false, false]);
        budget.give_back(other, 201);
        assert!(budget.is_free());
    }
}
