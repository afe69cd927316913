//! The slots for connections: how many there are in total, per network and per surrounding network,
//! and which connection is closed when a new one needs its slot.
//!
//! A connection *waits* while it has not sent a whole request head: it is new, or idle between two
//! requests. If it is closed, a browser simply connects again, so the connection that has waited
//! longest is closed first. A connection with a request in progress or a WebSocket is never closed.
//!
//! Some connections are long-lived: `lasting` limits how many.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::client_address::Network;

mod lasting;

use self::lasting::Crowd;
pub(crate) use self::lasting::LONG;
pub use self::lasting::{Lasting, Stay};

/// The order in which connections are closed: first those that wait, oldest first; then those that
/// lag.
type Rank = (bool, u64);

/// The groups by which connections are counted, in addition to their total number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// One network, as for all other limits.
    Network(Network),
    /// The surrounding network, in which one customer of a provider can have many networks.
    Around(IpAddr),
}

impl Group {
    /// Returns the surrounding network of this address.
    pub const fn around(address: IpAddr) -> Self {
        Self::Around(Network::of(address).around())
    }
}

/// The slots of one listening socket.
#[derive(Clone, Debug)]
pub(super) struct Places(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    all: usize,
    table: Mutex<Table>,
    /// The long-lived connections.
    crowd: Crowd,
    /// Notifies that a connection ended, or began to wait.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    held: usize,
    /// The number of connections that were told to close and have not closed yet.
    leaving: usize,
    /// The number for the next connection that waits or lags.
    next: u64,
    /// The connections that wait or lag.
    waiting: BTreeMap<Rank, CancellationToken>,
    groups: HashMap<Group, Members>,
}

#[derive(Debug, Default)]
struct Members {
    held: usize,
    waiting: BTreeSet<Rank>,
}

/// The reason why there was no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Full {
    /// A slot will be free soon.
    ForNow,
    /// The network has reached its limit, and none of its connections waits.
    ForThem,
}

impl Places {
    /// Creates `all` slots.
    pub(super) fn new(all: usize) -> Self {
        Self(Arc::new(Shared {
            all,
            table: Mutex::default(),
            crowd: Crowd::of(all),
            changed: Notify::new(),
        }))
    }

    /// Returns a slot for a new connection in these groups, each with its limit, or `None` if one
    /// of the groups has reached its limit and all of its connections are in use. If all slots are
    /// in use, it waits until a connection ends.
    pub(super) async fn take(&self, groups: &[(Group, usize)]) -> Option<Place> {
        loop {
            let changed = self.0.changed.notified();
            match self.try_take(groups) {
                Ok(place) => return Some(place),
                Err(Full::ForThem) => return None,
                Err(Full::ForNow) => changed.await,
            }
        }
    }

    /// Waits until there are no connections.
    pub(super) async fn empty(&self) {
        loop {
            let changed = self.0.changed.notified();
            if self.table().held == 0 {
                return;
            }
            changed.await;
        }
    }

    fn try_take(&self, groups: &[(Group, usize)]) -> Result<Place, Full> {
        let mut table = self.table();
        let full = groups.iter().find_map(|(group, limit)| {
            let members = table.groups.get(group)?;
            (members.held >= *limit).then(|| members.waiting.first().copied())
        });
        let all_are_held = table.held >= self.0.all;
        if full.is_some() || all_are_held {
            if table.leaving > 0 {
                return Err(Full::ForNow);
            }
            let oldest = match full {
                Some(of_the_group) => of_the_group.ok_or(Full::ForThem)?,
                None => *table.waiting.keys().next().ok_or(Full::ForNow)?,
            };
            table.dismiss(oldest);
            return Err(Full::ForNow);
        }
        table.held += 1;
        for (group, _) in groups {
            table.groups.entry(*group).or_default().held += 1;
        }
        drop(table);
        let place = Place(Arc::new(Held {
            places: self.clone(),
            groups: groups.iter().map(|(group, _)| *group).collect(),
            give_way: CancellationToken::new(),
            since: Mutex::new(None),
        }));
        place.wait();
        Ok(place)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Tells a waiting connection to close. It is counted until it has closed.
    fn dismiss(&mut self, rank: Rank) {
        if let Some(give_way) = self.waiting.remove(&rank) {
            give_way.cancel();
            self.leaving += 1;
        }
    }
}

/// A connection's slot. It is freed when the last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Place(Arc<Held>);

#[derive(Debug)]
struct Held {
    places: Places,
    groups: Vec<Group>,
    give_way: CancellationToken,
    /// The connection's rank among those that wait or lag.
    since: Mutex<Option<Rank>>,
}

impl Place {
    /// Marks that the connection waits for its peer.
    pub(super) fn wait(&self) {
        self.give_way(false);
    }

    /// Marks that the connection is too slow: it is closed for a new one if no connection waits.
    pub(super) fn lag(&self) {
        if !matches!(*self.0.since(), Some((true, _))) {
            self.give_way(true);
        }
    }

    fn give_way(&self, lags: bool) {
        let held = &*self.0;
        let mut table = held.places.table();
        // A connection that was told to close is closed, whatever else it does.
        if held.give_way.is_cancelled() {
            return;
        }
        held.stop_waiting(&mut table);
        let since = (lags, table.next);
        table.next += 1;
        table.waiting.insert(since, held.give_way.clone());
        for group in &held.groups {
            if let Some(members) = table.groups.get_mut(group) {
                members.waiting.insert(since);
            }
        }
        *held.since() = Some(since);
        drop(table);
        held.places.0.changed.notify_waiters();
    }

    /// Marks that the connection is in use.
    pub(super) fn use_it(&self) {
        let mut table = self.0.places.table();
        self.0.stop_waiting(&mut table);
    }

    fn crowd(&self) -> &Crowd {
        &self.0.places.0.crowd
    }

    /// Whether the connection would be closed for a new one.
    #[cfg(test)]
    pub(super) fn gives_way(&self) -> bool {
        self.0.since().is_some()
    }

    /// Waits until a new connection needs the slot.
    pub(super) async fn dismissed(&self) {
        self.0.give_way.cancelled().await;
    }
}

impl Held {
    fn since(&self) -> MutexGuard<'_, Option<Rank>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop_waiting(&self, table: &mut Table) {
        let Some(since) = self.since().take() else {
            return;
        };
        table.waiting.remove(&since);
        for group in &self.groups {
            if let Some(members) = table.groups.get_mut(group) {
                members.waiting.remove(&since);
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut table = self.places.table();
        self.stop_waiting(&mut table);
        table.held -= 1;
        if self.give_way.is_cancelled() {
            table.leaving -= 1;
        }
        for group in &self.groups {
            if let Some(members) = table.groups.get_mut(group) {
                members.held -= 1;
                if members.held == 0 {
                    table.groups.remove(group);
                }
            }
        }
        drop(table);
        self.places.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Two of a network, three of those around it.
    fn groups(text: &str) -> [(Group, usize); 2] {
        let address = address(text);
        [
            (Group::Network(Network::of(address)), 2),
            (Group::around(address), 3),
        ]
    }

    fn is_dismissed(place: &Place) -> bool {
        place.0.give_way.is_cancelled()
    }

    #[test]
    fn networks_are_counted_alone_and_with_those_around_them() {
        for (one, other, together) in [
            ("192.0.2.1", "192.0.2.200", true),
            ("192.0.2.1", "192.0.3.1", false),
            ("::ffff:192.0.2.1", "192.0.2.200", true),
            ("2001:db8:1:2::1", "2001:db8:1:ffff::1", true),
            ("2001:db8:1:2::1", "2001:db8:2:2::1", false),
        ] {
            let same = Group::around(address(one)) == Group::around(address(other));
            assert_eq!(same, together, "{one} {other}");
        }
    }

    #[test]
    fn a_network_that_uses_all_its_places_gets_no_further_one() {
        let places = Places::new(100);
        let mut held = Vec::new();
        for network in ["192.0.2.1", "192.0.2.1", "192.0.2.2"] {
            let place = places.try_take(&groups(network)).unwrap();
            place.use_it();
            held.push(place);
        }
        for full in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
            let refused = places.try_take(&groups(full)).unwrap_err();
            assert_eq!(refused, Full::ForThem, "{full}");
        }
        let other = places.try_take(&groups("192.0.3.1"));
        assert!(other.is_ok());
        held.pop();
        assert!(places.try_take(&groups("192.0.2.3")).is_ok());
        drop((held, other));
        let table = places.table();
        assert!(table.groups.is_empty() && table.waiting.is_empty());
        assert_eq!((table.held, table.leaving), (0, 0));
    }

    #[test]
    fn the_one_of_a_network_that_has_waited_longest_gives_way() {
        let places = Places::new(100);
        let other = places.try_take(&groups("198.51.100.1")).unwrap();
        let first = places.try_take(&groups("192.0.2.1")).unwrap();
        let second = places.try_take(&groups("192.0.2.1")).unwrap();
        // It has had a request in between, so it has not waited long.
        first.use_it();
        first.wait();
        for _ in 0..2 {
            // However often it asks, a new connection takes only one slot.
            let full = places.try_take(&groups("192.0.2.1")).unwrap_err();
            assert_eq!(full, Full::ForNow);
            assert!(is_dismissed(&second) && !is_dismissed(&first) && !is_dismissed(&other));
        }
        // It is too late for a request now.
        second.wait();
        drop(second);
        assert!(places.try_take(&groups("192.0.2.1")).is_ok());
    }

    #[test]
    fn who_lags_gives_way_after_all_who_wait() {
        let places = Places::new(3);
        let take = || places.try_take(&[]).unwrap();
        let (slow, slower, waiting) = (take(), take(), take());
        slower.lag();
        slow.lag();
        // It still lags, and keeps its position in the order.
        slower.lag();
        let mut newcomers = Vec::new();
        for next in [waiting, slower, slow] {
            assert_eq!(places.try_take(&[]).unwrap_err(), Full::ForNow);
            assert!(is_dismissed(&next));
            drop(next);
            let newcomer = places.try_take(&[]).unwrap();
            newcomer.use_it();
            newcomers.push(newcomer);
        }
        assert_eq!(places.try_take(&[]).unwrap_err(), Full::ForNow);
    }

    #[tokio::test]
    async fn where_all_places_are_held_a_newcomer_gets_the_one_that_waited_longest() {
        let places = Places::new(2);
        let busy = places.try_take(&[]).unwrap();
        busy.use_it();
        let waiting = places.try_take(&[]).unwrap();
        let newcomer = places.take(&[]);
        let leaving = async {
            waiting.dismissed().await;
            drop(waiting);
        };
        let (newcomer, ()) = tokio::join!(newcomer, leaving);
        let newcomer = newcomer.unwrap();
        assert!(!is_dismissed(&busy));
        // Now both are in use, and the next one waits until one of them ends.
        newcomer.use_it();
        assert_eq!(places.try_take(&[]).unwrap_err(), Full::ForNow);
        let next = places.take(&[]);
        let ending = async { drop(busy) };
        let (next, ()) = tokio::join!(next, ending);
        drop((next, newcomer));
        places.empty().await;
    }
}
