//! The memory that the heads of requests may take, of all connections and of
//! each network. A head may be large, since the cookies of all sites under one
//! domain go into it, and whoever sends large ones slowly must not take the
//! room of everybody else.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::client_address::Network;

/// Bytes of a request's head, at most: 180 cookies of 4,096 bytes, which is
/// what browsers keep for the sites under one domain, and some room.
pub(super) const MAX_HEAD: usize = 768 * 1_024;
/// Bytes of a head that every connection may hold without asking.
const FREE: usize = 32 * 1_024;

/// What is left for large heads.
#[derive(Debug)]
pub(super) struct HeadBudget {
    total: usize,
    per_network: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Networks that hold none are not in it.
    networks: HashMap<Network, usize>,
}

impl HeadBudget {
    /// So many bytes for all connections, and for those of one network.
    pub(super) fn new(total: usize, per_network: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            per_network,
            taken: Mutex::default(),
        })
    }

    /// A meter for a new connection. Behind a trusted proxy are many visitors,
    /// so for those there is no `network`, and the share of one is not looked at.
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

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes so many bytes more, or none.
    fn take(&self, network: Option<Network>, bytes: usize) -> bool {
        let mut taken = self.lock();
        if taken.all + bytes > self.total {
            return false;
        }
        if let Some(network) = network {
            let held = taken.networks.get(&network).copied().unwrap_or_default();
            if held + bytes > self.per_network {
                return false;
            }
            taken.networks.insert(network, held + bytes);
        }
        taken.all += bytes;
        true
    }

    fn give_back(&self, network: Option<Network>, bytes: usize) {
        let mut taken = self.lock();
        taken.all = taken.all.saturating_sub(bytes);
        let Some(network) = network else { return };
        if let Entry::Occupied(mut held) = taken.networks.entry(network) {
            *held.get_mut() = held.get().saturating_sub(bytes);
            if *held.get() == 0 {
                held.remove();
            }
        }
    }
}

/// What one connection holds for the head that it reads or answers.
#[derive(Debug)]
pub(super) struct HeadMeter {
    budget: Arc<HeadBudget>,
    network: Option<Network>,
    /// Bytes that have arrived in all, of bodies too.
    arrived: Arc<AtomicU64>,
    state: Mutex<Reading>,
}

#[derive(Debug, Default)]
struct Reading {
    /// Whether what arrives now belongs to a head.
    counts: bool,
    /// How much of it has arrived.
    bytes: usize,
    /// How much of that was taken from the budget.
    taken: usize,
}

impl HeadMeter {
    fn lock(&self) -> MutexGuard<'_, Reading> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many bytes more have arrived. Answers whether they may be kept.
    fn count(&self, bytes: usize) -> bool {
        self.arrived
            .fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
        let mut reading = self.lock();
        if !reading.counts {
            return true;
        }
        // A body that nobody reads goes by here too, and is not kept.
        let bytes = (reading.bytes + bytes).min(MAX_HEAD);
        let wanted = bytes.saturating_sub(FREE);
        let more = wanted.saturating_sub(reading.taken);
        if more > 0 && !self.budget.take(self.network, more) {
            return false;
        }
        reading.bytes = bytes;
        reading.taken += more;
        true
    }

    /// The head is whole and its request is being answered; what arrives until
    /// the guard is dropped is no head.
    pub(super) fn answer(self: &Arc<Self>) -> Answering {
        self.lock().counts = false;
        Answering(Arc::clone(self))
    }

    /// Counts the bytes that arrive, of bodies too.
    pub(super) fn arrived(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.arrived)
    }

    /// No head follows any more: the connection becomes another protocol's.
    pub(super) fn retire(&self) {
        let mut reading = self.lock();
        self.release(&mut reading);
        reading.counts = false;
    }

    fn release(&self, reading: &mut Reading) {
        if reading.taken > 0 {
            self.budget.give_back(self.network, reading.taken);
        }
        (reading.bytes, reading.taken) = (0, 0);
    }
}

impl Drop for HeadMeter {
    fn drop(&mut self) {
        let mut reading = self.lock();
        self.release(&mut reading);
    }
}

/// A request is being answered. Dropping it gives back what its head took.
#[derive(Debug)]
pub(super) struct Answering(Arc<HeadMeter>);

impl Drop for Answering {
    fn drop(&mut self) {
        let mut reading = self.0.lock();
        self.0.release(&mut reading);
        reading.counts = true;
    }
}

/// A connection whose heads are counted. One whose head finds no room any more
/// ends with an error.
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
        let budget = HeadBudget::new(1_000, 600);
        let (first, second) = (
            budget.meter(network("192.0.2.1")),
            budget.meter(network("192.0.2.1")),
        );
        assert!(first.count(FREE) && second.count(FREE));
        assert_eq!(budget.lock().all, 0);
        assert!(first.count(400));
        assert!(!second.count(201), "beyond the network's share");
        assert_eq!(budget.lock().all, 400, "what was refused was not taken");
        let answering = first.answer();
        assert!(first.count(1 << 20), "a body is no head");
        drop(answering);
        assert!(budget.lock().networks.is_empty(), "nothing is left over");
        assert!(second.count(600 - 201));
        drop(second);
        assert_eq!(budget.lock().all, 0);
    }

    #[test]
    fn a_network_cannot_take_what_all_share() {
        let budget = HeadBudget::new(1_000, 600);
        let all = ["192.0.2.1", "192.0.2.2"].map(|text| budget.meter(network(text)));
        assert!(all[0].count(FREE + 600) && all[1].count(FREE + 400));
        assert!(!budget.meter(network("192.0.2.3")).count(FREE + 1));
        let proxy = budget.meter(None);
        drop(all);
        assert!(proxy.count(FREE + 1_000), "a proxy stands for many");
        proxy.retire();
        assert!(proxy.count(1 << 20), "a WebSocket has no heads");
        assert_eq!(budget.lock().all, 0);
    }
}
