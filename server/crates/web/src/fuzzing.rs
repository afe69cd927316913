//! What of a connection strangers' bytes reach, without a socket: for the fuzz targets alone, which
//! cannot see inside.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::http::StatusCode;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

use crate::client_address::Network;
use crate::http2::frames::Counter;
use crate::http2::{self, unread::NetworkShare};
use crate::memory_budget::MemoryBudget;
use crate::places::Places;
use crate::serve::{self, Application, ConnectionLimits, Visitor};
use crate::unreadable_head;

/// The version of HTTP that a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// Serves a connection of a stranger who sends `bytes` in pieces of at most `piece` bytes, and then
/// nothing more. Returns everything that was sent to them. It needs a runtime with time.
pub async fn converse<A: Application>(
    version: Version,
    bytes: Bytes,
    piece: usize,
    app: A,
) -> Vec<u8> {
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let limits = ConnectionLimits::default();
    let sent = Arc::new(Mutex::new(Vec::new()));
    let wire = Wire {
        bytes,
        piece: piece.max(1),
        sent: Arc::clone(&sent),
    };
    let Some(place) = Places::new(1).take(&[]).await else {
        return Vec::new();
    };
    // The connection ends when this is dropped.
    let (_running, stopping) = watch::channel(false);
    let network = Some(Network::of(peer.ip()));
    let heads = MemoryBudget::new(limits.heads, limits.heads_per_network);
    let unread = MemoryBudget::new(limits.unread, limits.unread_per_network);
    let visitor = Visitor {
        peer,
        place,
        meter: heads.meter(network),
        answers: NetworkShare::new(unread, network),
        limits,
        app: Arc::new(app),
        stopping,
        shown: None,
    };
    match version {
        Version::Http1 => serve::connection(serve::protocol(&limits), wire, visitor).await,
        Version::Http2 => http2::connection(wire, visitor).await,
    }
    let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut *sent)
}

/// The bytes of a stranger, and what is sent to them.
#[derive(Debug)]
struct Wire {
    bytes: Bytes,
    piece: usize,
    sent: Arc<Mutex<Vec<u8>>>,
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let most = self.piece.min(buffer.remaining()).min(self.bytes.len());
        buffer.put_slice(&self.bytes.split_to(most));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// What was counted of the frames of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Frames that begin a request.
    pub requests: u64,
    /// Resets.
    pub resets: u64,
    /// Frames that carry nothing.
    pub empty: u64,
    /// Bytes of bodies.
    pub body_bytes: u64,
    /// Whether the connection was ended because of them.
    pub is_flood: bool,
}

/// Counts the frames of a connection whose bytes arrive in pieces of at most `piece` bytes, and whose
/// heads may take `budget` bytes beside those that are free.
#[must_use]
pub fn count_frames(bytes: &[u8], piece: usize, budget: usize) -> Counted {
    let meter = MemoryBudget::new(budget, budget).meter(None);
    let mut counter = Counter::new();
    let mut pieces = bytes.chunks(piece.max(1));
    let is_flood = pieces.any(|piece| counter.read(piece, 0, &meter).is_err());
    let [requests, resets, empty, body_bytes] = counter.figures();
    Counted {
        requests,
        resets,
        empty,
        body_bytes,
        is_flood,
    }
}

/// Returns the status of a response that hyper makes itself, and what is before and after the length
/// of its empty body.
#[must_use]
pub fn own_answer(bytes: &[u8]) -> Option<(StatusCode, &[u8], &[u8])> {
    unreadable_head::own_answer(bytes)
}
