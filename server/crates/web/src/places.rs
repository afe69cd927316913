//! The slots for connections: how many there are in total, per network and per surrounding network,
//! and which connection is closed when a new one needs its slot.
//!
//! A connection *waits* while it has not sent a whole request head: it is new, or idle between two
//! requests. If it is closed, a browser simply connects again, so the connection that has waited
//! longest is closed first. A connection with a request in progress or a WebSocket is never closed.
//!
//! Some connections are long-lived: `lasting` limits how many.

//!
//! Every request changes whether its connection waits, so that takes no lock: the connection only
//! stores it. The table lists the connections by when they began to wait as far as it knows, which is
//! never later than they did. Only when a slot is needed, it asks the first ones how it is now, and
//! corrects its list until the first one is right.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::client_address::Network;

mod lasting;

use self::lasting::Crowd;
pub(crate) use self::lasting::LONG;
pub use self::lasting::{Lasting, Stay};

/// The state of a connection: one of the next three, or its rank.
type State = u64;
/// In use, and still listed with an earlier rank.
const LISTED: State = 0;
/// In use, and not listed.
const UNLISTED: State = 1;
/// Told to close.
const LEAVING: State = 2;
/// The first rank.
const FIRST: Rank = 3;

/// The order in which connections are closed: first those that wait, oldest first; then those that
/// lag, which have this bit.
type Rank = u64;
const LAGS: Rank = 1 << 63;

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
    /// The number for the next connection that waits or lags.
    next: AtomicU64,
    /// The number of new connections that wait for a slot.
    asking: AtomicUsize,
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
    /// The connections that waited or lagged when they were last asked.
    waiting: BTreeMap<Rank, Arc<Seat>>,
    groups: HashMap<Group, Members>,
}

#[derive(Debug, Default)]
struct Members {
    held: usize,
    waiting: BTreeSet<Rank>,
}

/// What the table and a connection know of each other.
#[derive(Debug)]
struct Seat {
    groups: Vec<Group>,
    give_way: CancellationToken,
    state: AtomicU64,
    /// The rank in the table, or 0; only used under the table's lock.
    listed: AtomicU64,
}

impl Seat {
    /// Changes the state, unless the connection was told to close. Returns the state before.
    fn change(&self, to: impl Fn(State) -> State) -> State {
        let changed = self
            .state
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| {
                (now != LEAVING).then(|| to(now))
            });
        changed.unwrap_or(LEAVING)
    }

    /// Changes the state, if it is still this one. Returns what it is instead.
    fn change_from(&self, from: State, to: State) -> Result<State, State> {
        self.state
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
    }
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
            next: AtomicU64::new(FIRST),
            asking: AtomicUsize::new(0),
            crowd: Crowd::of(all),
            changed: Notify::new(),
        }))
    }

    /// Returns a slot for a new connection in these groups, each with its limit, or `None` if one
    /// of the groups has reached its limit and all of its connections are in use. If all slots are
    /// in use, it waits until a connection ends.
    pub(super) async fn take(&self, groups: &[(Group, usize)]) -> Option<Place> {
        let _asking = Asking::begin(&self.0.asking);
        loop {
            let changed = self.0.changed.notified();
            match self.try_take(groups) {
                Ok(place) => return Some(place),
                Err(Full::ForThem) => return None,
                Err(Full::ForNow) => changed.await,
            }
        }
    }

    /// Returns the number of connections.
    pub(super) fn held(&self) -> usize {
        self.table().held
    }

    /// Returns the maximum number of connections.
    pub(super) fn all(&self) -> usize {
        self.0.all
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
        let full = groups.iter().find(|(group, limit)| {
            let members = table.groups.get(group);
            members.is_some_and(|members| members.held >= *limit)
        });
        if full.is_some() || table.held >= self.0.all {
            if table.leaving > 0 {
                return Err(Full::ForNow);
            }
            let dismissed = table.dismiss_oldest(full.map(|(group, _)| group));
            return Err(if full.is_some() && !dismissed {
                Full::ForThem
            } else {
                Full::ForNow
            });
        }
        table.held += 1;
        for (group, _) in groups {
            table.groups.entry(*group).or_default().held += 1;
        }
        drop(table);
        let place = Place(Arc::new(Held {
            places: self.clone(),
            seat: Arc::new(Seat {
                groups: groups.iter().map(|(group, _)| *group).collect(),
                give_way: CancellationToken::new(),
                state: AtomicU64::new(UNLISTED),
                listed: AtomicU64::new(0),
            }),
        }));
        place.wait();
        Ok(place)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn next(&self) -> Rank {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Notifies new connections, if there are any, that a connection gives way now.
    fn tell(&self) {
        // They count themselves before they look at the connections, so that either they see the
        // new state, or this sees them.
        if self.asking.load(Ordering::SeqCst) > 0 {
            self.changed.notify_waiters();
        }
    }
}

/// A new connection that needs a slot.
struct Asking<'a>(&'a AtomicUsize);

impl<'a> Asking<'a> {
    fn begin(asking: &'a AtomicUsize) -> Self {
        asking.fetch_add(1, Ordering::SeqCst);
        Self(asking)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Table {
    /// Tells the connection of a group, or of all, that has waited longest to close. It is counted
    /// until it has closed. Returns whether there is one.
    fn dismiss_oldest(&mut self, group: Option<&Group>) -> bool {
        loop {
            let first = match group {
                Some(group) => self.groups.get(group).and_then(|of| of.waiting.first()),
                None => self.waiting.keys().next(),
            };
            let Some((listed, seat)) = first.and_then(|rank| self.waiting.get_key_value(rank))
            else {
                return false;
            };
            let (listed, seat) = (*listed, Arc::clone(seat));
            match seat.change_from(listed, LEAVING) {
                Ok(_) => {
                    self.unlist(&seat);
                    seat.give_way.cancel();
                    self.leaving += 1;
                    return true;
                }
                // If it begins to wait meanwhile, it is asked again.
                Err(LISTED) => {
                    if seat.change_from(LISTED, UNLISTED).is_ok() {
                        self.unlist(&seat);
                    }
                }
                Err(now) => self.list(&seat, now),
            }
        }
    }

    /// Lists a connection with this rank, and with no earlier one.
    fn list(&mut self, seat: &Arc<Seat>, rank: Rank) {
        self.unlist(seat);
        if rank < FIRST {
            return;
        }
        seat.listed.store(rank, Ordering::Relaxed);
        self.waiting.insert(rank, Arc::clone(seat));
        for group in &seat.groups {
            if let Some(members) = self.groups.get_mut(group) {
                members.waiting.insert(rank);
            }
        }
    }

    fn unlist(&mut self, seat: &Seat) {
        let listed = seat.listed.swap(0, Ordering::Relaxed);
        if listed == 0 {
            return;
        }
        self.waiting.remove(&listed);
        for group in &seat.groups {
            if let Some(members) = self.groups.get_mut(group) {
                members.waiting.remove(&listed);
            }
        }
    }
}

/// A connection's slot. It is freed when the last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Place(Arc<Held>);

#[derive(Debug)]
struct Held {
    places: Places,
    seat: Arc<Seat>,
}

impl Place {
    /// Marks that the connection waits for its peer.
    pub(super) fn wait(&self) {
        let (shared, seat) = (&*self.0.places.0, &self.0.seat);
        let rank = shared.next();
        let before = seat.change(|_| rank);
        // One that lagged is listed after all that wait.
        if before == UNLISTED || before >= LAGS {
            self.0.places.table().list(seat, rank);
        }
        shared.tell();
    }

    /// Marks that the connection is too slow: it is closed for a new one if no connection waits.
    pub(super) fn lag(&self) {
        let (shared, seat) = (&*self.0.places.0, &self.0.seat);
        let mut table = self.0.places.table();
        let rank = LAGS | shared.next();
        // One that still lags keeps its position in the order.
        let before = seat.change(|now| if now < LAGS { rank } else { now });
        if before == LEAVING || before >= LAGS {
            return;
        }
        table.list(seat, rank);
        drop(table);
        shared.tell();
    }

    /// Marks that the connection is in use.
    pub(super) fn use_it(&self) {
        let seat = &self.0.seat;
        let before = seat.change(|now| match now {
            UNLISTED => UNLISTED,
            lags if lags >= LAGS => UNLISTED,
            _ => LISTED,
        });
        if before >= LAGS {
            self.0.places.table().unlist(seat);
        }
    }

    fn crowd(&self) -> &Crowd {
        &self.0.places.0.crowd
    }

    /// Whether the connection would be closed for a new one.
    #[cfg(test)]
    pub(super) fn gives_way(&self) -> bool {
        self.0.seat.state.load(Ordering::SeqCst) >= FIRST
    }

    /// Waits until a new connection needs the slot.
    pub(super) async fn dismissed(&self) {
        self.0.seat.give_way.cancelled().await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut table = self.places.table();
        table.unlist(&self.seat);
        table.held -= 1;
        if self.seat.give_way.is_cancelled() {
            table.leaving -= 1;
        }
        for group in &self.seat.groups {
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
        place.0.seat.give_way.is_cancelled()
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

    #[test]
    fn who_is_asked_while_it_begins_or_ends_to_wait_is_neither_lost_nor_counted_twice() {
        let places = Places::new(2);
        let busy: Vec<_> = (0..2).map(|_| places.try_take(&[]).unwrap()).collect();
        std::thread::scope(|threads| {
            for place in busy {
                threads.spawn(move || {
                    while !is_dismissed(&place) {
                        place.use_it();
                        place.wait();
                    }
                });
            }
            let mut newcomers = Vec::new();
            while newcomers.len() < 2 {
                match places.try_take(&[]) {
                    Ok(newcomer) => {
                        newcomer.use_it();
                        newcomers.push(newcomer);
                    }
                    Err(full) => assert_eq!(full, Full::ForNow),
                }
                std::thread::yield_now();
            }
        });
        let table = places.table();
        assert!(table.waiting.is_empty());
        assert_eq!((table.held, table.leaving), (0, 0));
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
