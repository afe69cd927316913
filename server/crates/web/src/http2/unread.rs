//! What a connection's responses hold in memory until its peer reads them.
//!
//! A peer of HTTP/2 decides with its windows (RFC 9113 §5.2) when a response is sent, and may ask for a
//! hundred at once. Without a limit, each of these responses would be in memory, complete, for as long as
//! the peer likes. So a request waits before it reaches the application while the responses before it wait
//! for the peer, and a response waits with its next part. Three rules let a slow peer go on:
//!
//! - each time that the peer has read [`BYTES_PER_REQUEST`], one more of its requests is answered: the small
//!   script of a page need not wait for the eight films before it;
//! - where a network has used up its budget, each of its connections has one response at a time, and one more
//!   for [`BYTES_PER_REQUEST_IF_USED_UP`], up to [`MAX_RESPONSES`];
//! - a response that has nothing on its way to the peer always gets its next part.
//!
//! What others share, such as a file in the server's memory, is not counted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::frames::Transfer;
use crate::client_address::Network;
use crate::memory_budget::MemoryBudget;

/// How many responses of a connection may wait for its peer before its next request waits, and how many
/// bytes they may hold.
const MAX_RESPONSES: usize = 8;
const MAX_BYTES: usize = 512 * 1_024;
/// For each of these bytes that the peer reads, one more request is answered; and where the budget of its
/// network is used up.
const BYTES_PER_REQUEST: u64 = 16 * 1_024;
const BYTES_PER_REQUEST_IF_USED_UP: u64 = 64 * 1_024;
/// A request that the application has for less time counts as a response, since its response may
/// be there at any moment. One that it has for longer waits for something else, such as a backend.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(100);

/// A budget, and the network that takes from it.
#[derive(Clone, Debug)]
pub(crate) struct NetworkShare {
    budget: Arc<MemoryBudget>,
    network: Option<Network>,
}

impl NetworkShare {
    /// The share of a network. A trusted proxy has none of its own: only the budget of all limits it.
    pub(crate) const fn new(budget: Arc<MemoryBudget>, network: Option<Network>) -> Self {
        Self { budget, network }
    }

    fn is_used_up(&self) -> bool {
        self.budget.is_used_up(self.network)
    }
}

/// The unread responses of one connection.
#[derive(Debug)]
pub(super) struct Unread {
    share: NetworkShare,
    transfer: Arc<Transfer>,
    state: Mutex<State>,
    /// Wakes a request that waits.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The responses that have a part on its way to the peer.
    responses: usize,
    /// The bytes that are in memory for them.
    bytes: usize,
    /// When the application got each of the requests that it has, and their numbers.
    answering: VecDeque<(u64, Instant)>,
    last_number: u64,
    /// What had been sent when a request was answered beyond the limits.
    sent: u64,
    /// The responses that wait with their next part.
    paused: VecDeque<Weak<Pause>>,
}

impl Unread {
    /// A new connection of this network.
    pub(super) fn new(share: NetworkShare, transfer: Arc<Transfer>) -> Arc<Self> {
        Arc::new(Self {
            share,
            transfer,
            state: Mutex::default(),
            changed: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the application may have one more request.
    pub(super) async fn admit(self: &Arc<Self>) -> Admission {
        loop {
            let changed = self.changed.notified();
            let again = match self.try_admit(Instant::now()) {
                Ok(admission) => return admission,
                Err(again) => again,
            };
            match again {
                // Both mean the same: there may be room now.
                Some(again) => drop(tokio::time::timeout_at(again, changed).await),
                None => changed.await,
            }
        }
    }

    /// Admits a request. Otherwise, returns when to try again, if nothing changes before.
    fn try_admit(self: &Arc<Self>, now: Instant) -> Result<Admission, Option<Instant>> {
        let is_used_up = self.share.is_used_up();
        let mut state = self.state();
        // In the order in which the application got them.
        let old = state
            .answering
            .partition_point(|(_, since)| *since + ANSWER_TIMEOUT <= now);
        let first_recent = state.answering.get(old);
        let again = first_recent.map(|(_, since)| *since + ANSWER_TIMEOUT);
        let count = state.responses + state.answering.len() - old;
        let (has_room, bytes_per_request) = if !is_used_up {
            let has_room = count < MAX_RESPONSES && state.bytes < MAX_BYTES;
            (has_room, BYTES_PER_REQUEST)
        } else if count < MAX_RESPONSES {
            (count == 0, BYTES_PER_REQUEST_IF_USED_UP)
        } else {
            // What the system takes from the server need not have been read, so this has a limit.
            (false, u64::MAX)
        };
        if !has_room {
            let sent = self.transfer.sent_bytes();
            if sent.wrapping_sub(state.sent) < bytes_per_request {
                return Err(again);
            }
            state.sent = sent;
        }
        state.last_number += 1;
        let number = state.last_number;
        state.answering.push_back((number, now));
        drop(state);
        // There may be room for another one.
        self.changed.notify_one();
        Ok(Admission {
            unread: Arc::clone(self),
            number,
        })
    }

    /// Records that the peer has read something, which may be enough for one more request.
    pub(super) fn read(&self) {
        self.changed.notify_one();
    }

    /// Counts a part of a response, which is in memory until the returned value is dropped.
    pub(super) fn hold(self: &Arc<Self>, part: &Bytes, pause: &Arc<Pause>) -> Arc<Part> {
        let bytes = if part.is_unique() { part.len() } else { 0 };
        if bytes > 0 {
            self.share.budget.take_over(self.share.network, bytes);
        }
        let mut state = self.state();
        let mut pausing = pause.state();
        state.bytes += bytes;
        state.responses += usize::from(pausing.parts == 0);
        pausing.parts += 1;
        drop((pausing, state));
        Arc::new(Part {
            unread: Arc::clone(self),
            pause: Arc::clone(pause),
            bytes,
        })
    }

    /// Whether the next part of a response has to wait, for which the context is woken then.
    pub(super) fn must_pause(&self, pause: &Arc<Pause>, context: &Context<'_>) -> bool {
        let is_used_up = self.share.is_used_up();
        let mut state = self.state();
        let mut pausing = pause.state();
        if pausing.parts == 0 || (!is_used_up && state.bytes < MAX_BYTES) {
            return false;
        }
        pausing.waker = Some(context.waker().clone());
        if !std::mem::replace(&mut pausing.is_queued, true) {
            state.paused.push_back(Arc::downgrade(pause));
        }
        true
    }

    /// Wakes the response of a part that was sent, and the next one that waits.
    fn sent(&self, part: &Part) {
        let mut state = self.state();
        state.bytes -= part.bytes;
        let mut pausing = part.pause.state();
        pausing.parts -= 1;
        state.responses -= usize::from(pausing.parts == 0);
        let own = pausing.waker.take();
        drop(pausing);
        let mut next = None;
        while next.is_none() && state.bytes < MAX_BYTES {
            let Some(pause) = state.paused.pop_front() else {
                break;
            };
            next = pause
                .upgrade()
                .and_then(|pause| pause.state().leave_queue());
        }
        drop(state);
        self.changed.notify_one();
        for waker in own.into_iter().chain(next) {
            waker.wake();
        }
    }
}

/// A request that the application has. Dropping it means that the response is there.
#[derive(Debug)]
pub(super) struct Admission {
    unread: Arc<Unread>,
    number: u64,
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut state = self.unread.state();
        state.answering.retain(|(number, _)| *number != self.number);
        drop(state);
        self.unread.changed.notify_one();
    }
}

/// Whether a response waits with its next part.
#[derive(Debug, Default)]
pub(super) struct Pause(Mutex<Pausing>);

#[derive(Debug, Default)]
struct Pausing {
    /// The parts that are on their way to the peer.
    parts: usize,
    waker: Option<Waker>,
    is_queued: bool,
}

impl Pausing {
    fn leave_queue(&mut self) -> Option<Waker> {
        self.is_queued = false;
        self.waker.take()
    }
}

impl Pause {
    fn state(&self) -> MutexGuard<'_, Pausing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of a response that is not yet sent.
#[derive(Debug)]
pub(super) struct Part {
    unread: Arc<Unread>,
    pause: Arc<Pause>,
    bytes: usize,
}

impl Drop for Part {
    fn drop(&mut self) {
        let share = &self.unread.share;
        if self.bytes > 0 {
            share.budget.give_back(share.network, self.bytes);
        }
        self.unread.sent(self);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn connection(per_network: usize) -> (Arc<Unread>, Arc<Transfer>) {
        let transfer = Arc::new(Transfer::new(Arc::new(AtomicU64::new(0))));
        let network = Some(Network::of("192.0.2.1".parse().unwrap()));
        let budget = MemoryBudget::new(usize::MAX, per_network);
        let share = NetworkShare::new(budget, network);
        (Unread::new(share, Arc::clone(&transfer)), transfer)
    }

    /// How many requests the application may have now, of at most 100.
    fn admitted(unread: &Arc<Unread>) -> Vec<Admission> {
        let one = |_| unread.try_admit(Instant::now()).ok();
        (0..100).map_while(one).collect()
    }

    fn part(bytes: usize) -> Bytes {
        Bytes::from(vec![1; bytes])
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_take_long_keep_others_from_nothing() {
        let (unread, _) = connection(usize::MAX);
        let first = admitted(&unread);
        assert_eq!(first.len(), MAX_RESPONSES);
        let began = Instant::now();
        let ninth = unread.admit().await;
        assert_eq!(began.elapsed(), ANSWER_TIMEOUT);
        drop((first, ninth));
        assert_eq!(admitted(&unread).len(), MAX_RESPONSES);
    }

    #[tokio::test]
    async fn what_waits_for_the_peer_keeps_requests_back_until_it_is_read() {
        let (unread, transfer) = connection(usize::MAX);
        let pauses: Vec<Arc<Pause>> = (0..MAX_RESPONSES).map(|_| Arc::default()).collect();
        let shared = Bytes::from_static(b"shared");
        let mut parts: Vec<_> = pauses
            .iter()
            .map(|pause| unread.hold(&shared, pause))
            .collect();
        assert_eq!(admitted(&unread).len(), 0);
        transfer.count_sent(BYTES_PER_REQUEST);
        assert_eq!(admitted(&unread).len(), 1, "for what was read");
        parts.pop();
        assert_eq!(admitted(&unread).len(), 1);
        drop(parts);
        let large = unread.hold(&part(MAX_BYTES), &pauses[0]);
        assert_eq!(admitted(&unread).len(), 0);
        drop(large);
        assert_eq!(admitted(&unread).len(), MAX_RESPONSES);
    }

    #[tokio::test]
    async fn a_network_that_has_used_up_its_budget_has_one_response_a_connection() {
        let (unread, transfer) = connection(10);
        let pause = Arc::default();
        let held = unread.hold(&part(10), &pause);
        transfer.count_sent(BYTES_PER_REQUEST);
        assert_eq!(admitted(&unread).len(), 0);
        transfer.count_sent(BYTES_PER_REQUEST_IF_USED_UP);
        assert_eq!(admitted(&unread).len(), 1);
        drop(held);
        assert_eq!(admitted(&unread).len(), MAX_RESPONSES);
        assert!(unread.share.budget.is_free());
    }

    #[tokio::test]
    async fn a_response_waits_with_its_next_part_while_others_fill_the_connection() {
        let (unread, _) = connection(usize::MAX);
        let [large, small, none]: [Arc<Pause>; 3] = Default::default();
        let wakers = [(); 2].map(|()| Arc::new(Woken::default()));
        let waits = |pause, woken: &Arc<Woken>| {
            woken.0.store(false, Ordering::Relaxed);
            unread.must_pause(pause, &Context::from_waker(&Waker::from(Arc::clone(woken))))
        };
        let is_woken = || {
            wakers
                .each_ref()
                .map(|woken| woken.0.load(Ordering::Relaxed))
        };
        let first = unread.hold(&part(MAX_BYTES), &large);
        let second = unread.hold(&part(1), &small);
        assert!(!waits(&none, &wakers[0]), "nothing of it is on its way");
        assert!(waits(&large, &wakers[0]) && waits(&small, &wakers[1]));
        drop(second);
        assert_eq!(is_woken(), [false, true], "its own part was sent");
        assert!(!waits(&small, &wakers[1]));
        let third = unread.hold(&part(1), &small);
        assert!(waits(&small, &wakers[1]));
        drop(first);
        assert_eq!(is_woken(), [true, true], "there is room again");
        assert!(!waits(&large, &wakers[0]) && !waits(&small, &wakers[1]));
        drop(third);
    }
}
