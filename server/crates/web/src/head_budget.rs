//! The memory budget for the heads of requests, of all connections and of each network. A head may
//! be large, since it contains the cookies of all sites under one domain, and a client that sends
//! large heads slowly must not use up the memory for all others.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::client_address::Network;
use super::memory_budget::MemoryBudget;

/// The maximum size of a request's head in bytes: 180 cookies of 4,096 bytes, which is what
/// browsers keep for the sites under one domain, and some reserve.
pub(super) const MAX_HEAD: usize = 768 * 1_024;
/// The bytes of a head that every connection may use without the budget.
const FREE: usize = 32 * 1_024;

impl MemoryBudget {
    /// Creates a meter for the heads of a new connection. A trusted proxy serves many visitors, so its
    /// connections have no `network`, and no limit per network.
    pub(super) fn meter(self: &Arc<Self>, network: Option<Network>) -> Arc<HeadMeter> {
        Arc::new(HeadMeter {
            budget: Arc::clone(self),
            network,
            arrived: Arc::default(),
            state: Mutex::new(Reading {
                counts: true,
                ..Reading::default()
            }),
        })
    }
}

/// The memory that one connection uses for the head that it reads or is responding to.
#[derive(Debug)]
pub(super) struct HeadMeter {
    budget: Arc<MemoryBudget>,
    network: Option<Network>,
    /// The number of bytes that have arrived, including bodies.
    arrived: Arc<AtomicU64>,
    state: Mutex<Reading>,
}

#[derive(Debug, Default)]
struct Reading {
    /// Whether arriving bytes belong to a head.
    counts: bool,
    /// The number of bytes of the head that have arrived.
    bytes: usize,
    /// The number of bytes of heads that were read, and whose requests are in progress beside one another.
    held: usize,
    /// The number of all these that were taken from the budget.
    taken: usize,
}

impl HeadMeter {
    fn lock(&self) -> MutexGuard<'_, Reading> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts arrived bytes. Returns whether they may be kept.
    fn count(&self, bytes: usize) -> bool {
        self.arrived
            .fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
        let mut reading = self.lock();
        if !reading.counts {
            return true;
        }
        // A body that nobody reads is counted here, too, but is not kept.
        let bytes = (reading.bytes + bytes).min(MAX_HEAD);
        let held = reading.held;
        self.become_of(&mut reading, bytes, held)
    }

    /// Takes or returns what this connection needs now. Returns whether there is enough; if not,
    /// nothing changes.
    fn become_of(&self, reading: &mut Reading, bytes: usize, held: usize) -> bool {
        let wanted = (bytes + held).saturating_sub(FREE);
        match wanted.checked_sub(reading.taken) {
            Some(0) => {}
            Some(more) if !self.budget.take(self.network, more) => return false,
            Some(_) => {}
            None => self
                .budget
                .give_back(self.network, reading.taken.saturating_sub(wanted)),
        }
        (reading.bytes, reading.held, reading.taken) = (bytes, held, wanted);
        true
    }

    /// Counts bytes that arrive and belong to no head.
    pub(super) fn pass(&self, bytes: u64) {
        self.arrived.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes of the head that is being read, of a connection whose requests are in progress
    /// beside one another. Returns whether they may be kept.
    pub(super) fn read_head(&self, bytes: usize) -> bool {
        let mut reading = self.lock();
        let (bytes, held) = (reading.bytes + bytes, reading.held);
        self.become_of(&mut reading, bytes, held)
    }

    /// Marks the head that is being read as complete.
    pub(super) fn head_is_read(&self) {
        let mut reading = self.lock();
        let held = reading.held;
        // It needs less than before.
        self.become_of(&mut reading, 0, held);
    }

    /// Keeps a head of this size until the guard is dropped, beside those of other requests of the
    /// connection. Returns `None` if it may not be kept.
    pub(super) fn hold(self: &Arc<Self>, size: usize) -> Option<Held> {
        let mut reading = self.lock();
        let (bytes, held) = (reading.bytes, reading.held + size);
        self.become_of(&mut reading, bytes, held).then(|| Held {
            meter: Arc::clone(self),
            size,
        })
    }

    /// Marks the head as complete: bytes that arrive until the guard is dropped belong to no head.
    pub(super) fn answer(self: &Arc<Self>) -> Answering {
        self.lock().counts = false;
        Answering(Arc::clone(self))
    }

    /// Returns the counter of arrived bytes, including bodies.
    pub(super) fn arrived(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.arrived)
    }

    /// Marks that no other head follows: the connection switches to another protocol.
    pub(super) fn retire(&self) {
        let mut reading = self.lock();
        self.release(&mut reading);
        reading.counts = false;
    }

    fn release(&self, reading: &mut Reading) {
        if reading.taken > 0 {
            self.budget.give_back(self.network, reading.taken);
        }
        (reading.bytes, reading.held, reading.taken) = (0, 0, 0);
    }
}

impl Drop for HeadMeter {
    fn drop(&mut self) {
        let mut reading = self.lock();
        self.release(&mut reading);
    }
}

/// A request in progress. Dropping it returns what its head took from the budget.
#[derive(Debug)]
pub(super) struct Answering(Arc<HeadMeter>);

impl Drop for Answering {
    fn drop(&mut self) {
        let mut reading = self.0.lock();
        self.0.release(&mut reading);
        reading.counts = true;
    }
}

/// The head of a request in progress, beside others of the same connection.
#[derive(Debug)]
pub(super) struct Held {
    meter: Arc<HeadMeter>,
    size: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut reading = self.meter.lock();
        let (bytes, held) = (reading.bytes, reading.held.saturating_sub(self.size));
        self.meter.become_of(&mut reading, bytes, held);
    }
}

/// A connection whose heads are counted. It ends with an error if the budget is exhausted.
#[derive(Debug)]
pub(super) struct Metered<S> {
    stream: S,
    meter: Arc<HeadMeter>,
}

impl<S> Metered<S> {
    /// Counts what is read from `stream`.
    pub(super) const fn new(stream: S, meter: Arc<HeadMeter>) -> Self {
        Self { stream, meter }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let read = buffer.filled().len().saturating_sub(before);
        if self.meter.count(read) {
            Poll::Ready(Ok(()))
        } else {
            Poll::Ready(Err(io::Error::new(
                io::ErrorKind::OutOfMemory,
                "the heads of requests take all the room that they may",
            )))
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Option<Network> {
        Some(Network::of(text.parse().unwrap()))
    }

    #[test]
    fn small_heads_take_nothing_and_large_ones_give_back_what_they_took() {
        let budget = MemoryBudget::new(1_000, 600);
        let (first, second) = (
            budget.meter(network("192.0.2.1")),
            budget.meter(network("192.0.2.1")),
        );
        assert!(first.count(FREE) && second.count(FREE));
        assert_eq!(budget.taken(), 0);
        assert!(first.count(400));
        assert!(!second.count(201), "beyond the network's share");
        assert_eq!(budget.taken(), 400, "what was refused was not taken");
        let answering = first.answer();
        assert!(first.count(1 << 20), "a body is no head");
        drop(answering);
        assert!(budget.is_free(), "nothing is left over");
        assert!(second.count(600 - 201));
        drop(second);
        assert_eq!(budget.taken(), 0);
    }

    #[test]
    fn heads_beside_one_another_share_what_is_free_for_a_connection() {
        let budget = MemoryBudget::new(1_000, 600);
        let meter = budget.meter(network("192.0.2.1"));
        let first = meter.hold(FREE).unwrap();
        assert_eq!(budget.taken(), 0);
        let second = meter.hold(500).unwrap();
        assert!(meter.read_head(100) && !meter.read_head(1), "the share");
        assert!(meter.hold(1).is_none());
        meter.head_is_read();
        assert_eq!(budget.taken(), 500);
        drop(first);
        assert_eq!(budget.taken(), 0, "the rest is free");
        assert!(meter.read_head(FREE));
        assert_eq!(budget.taken(), 500);
        drop((second, meter));
        assert!(budget.is_free());
    }

    #[test]
    fn a_network_cannot_take_what_all_share() {
        let budget = MemoryBudget::new(1_000, 600);
        let all = ["192.0.2.1", "192.0.2.2"].map(|text| budget.meter(network(text)));
        assert!(all[0].count(FREE + 600) && all[1].count(FREE + 400));
        assert!(!budget.meter(network("192.0.2.3")).count(FREE + 1));
        let proxy = budget.meter(None);
        drop(all);
        assert!(proxy.count(FREE + 1_000), "a proxy stands for many");
        proxy.retire();
        assert!(proxy.count(1 << 20), "a WebSocket has no heads");
        assert_eq!(budget.taken(), 0);
    }
}
