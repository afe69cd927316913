//! Responses to unreadable requests: heads that cannot be parsed.
//!
//! hyper responds to these itself, with 400, 414 or 431 and an empty body, and offers no way to
//! change it. So the connection is watched: everything that is written while no request is in
//! progress, and after the previous response has been written completely, can only be hyper's own
//! response. It gets the request id and the problem body that every response of the platform has.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use platform_protocol::problem::MEDIA_TYPE;
use tokio::time::Sleep;

use super::connection_state::Turn;
use super::minimum_rate::{Pace, Waiting};
use super::request_id::{RequestId, X_REQUEST_ID};

/// How long the rest of an unreadable request is still read, and how many bytes of it. If the
/// connection were closed at once, a client that is still writing would see a reset, and never the
/// response (RFC 9112 §9.6).
const LINGER: (Duration, usize) = (Duration::from_secs(2), 4 * 1024 * 1024);

/// A connection on which every response has a request id, and whose peer has to read them.
/// `explain` returns the id and the body of a response with this status.
#[derive(Debug)]
pub(super) struct Explained<T, F> {
    stream: T,
    turn: Arc<Turn>,
    explain: F,
    reading: Waiting,
    /// The remaining bytes that replace hyper's response.
    own: Bytes,
    refused: bool,
    lingering: Option<(Pin<Box<Sleep>>, usize)>,
}

impl<T, F> Explained<T, F>
where
    T: Read + Write + Unpin,
    F: Fn(StatusCode) -> (RequestId, Vec<u8>) + Unpin,
{
    pub(super) const fn new(stream: T, turn: Arc<Turn>, pace: Pace, explain: F) -> Self {
        Self {
            stream,
            turn,
            explain,
            reading: Waiting::new(pace),
            own: Bytes::new(),
            refused: false,
            lingering: None,
        }
    }

    /// Whether `bytes` were a response of hyper's own, which is replaced.
    fn replaces(&mut self, bytes: &[u8]) -> bool {
        if !self.turn.is_hypers() {
            return false;
        }
        let Some((status, before, after)) = own_answer(bytes) else {
            return false;
        };
        let (id, body) = (self.explain)(status);
        let fields = format!(
            "content-type: {MEDIA_TYPE}\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
             x-content-type-options: nosniff\r\n{X_REQUEST_ID}: {}\r\n",
            body.len(),
            id.as_str()
        );
        self.own = [before, fields.as_bytes(), after, &body].concat().into();
        self.refused = true;
        true
    }

    fn poll_own(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.own.is_empty() {
            let written = Pin::new(&mut self.stream).poll_write(context, &self.own);
            let written = ready!(self.paced(written, context))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let _ = self.own.split_to(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Applies the time limit to the result of a write.
    fn paced(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(bytes)) => {
                let bytes = u64::try_from(*bytes).unwrap_or(u64::MAX);
                self.reading.moved(bytes);
                self.turn.sent(Some(bytes));
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                self.turn.sent(None);
                ready!(self.reading.poll_over(context));
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        written
    }

    /// Reads and discards data until the peer has closed, too.
    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some((patience, left)) = &mut self.lingering else {
            return Poll::Ready(());
        };
        if patience.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut piece = [0; 4_096];
        loop {
            let mut into = ReadBuf::new(&mut piece);
            match ready!(Pin::new(&mut self.stream).poll_read(context, into.unfilled())) {
                Ok(()) if !into.filled().is_empty() => {}
                Ok(()) | Err(_) => return Poll::Ready(()),
            }
            match left.checked_sub(into.filled().len()) {
                Some(rest) => *left = rest,
                None => return Poll::Ready(()),
            }
        }
    }
}

/// Returns the status of a response that hyper makes itself, and the text before and after the
/// length of its empty body.
pub(super) fn own_answer(bytes: &[u8]) -> Option<(StatusCode, &[u8], &[u8])> {
    const NO_BODY: &[u8] = b"content-length: 0\r\n";
    if !bytes.starts_with(b"HTTP/1.") || !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let status = StatusCode::from_bytes(bytes.get(9..12)?).ok()?;
    let at = bytes
        .windows(NO_BODY.len())
        .position(|part| part == NO_BODY)?;
    let (before, rest) = bytes.split_at(at);
    let after = rest.get(NO_BODY.len()..)?;
    status.is_client_error().then_some((status, before, after))
}

impl<T, F> Read for Explained<T, F>
where
    T: Read + Unpin,
    F: Unpin,
{
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<T, F> Write for Explained<T, F>
where
    T: Read + Write + Unpin,
    F: Fn(StatusCode) -> (RequestId, Vec<u8>) + Unpin,
{
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_own(context))?;
        if self.replaces(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.paced(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_own(context))?;
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if flushed.is_pending() {
            // TLS has taken what its peer has yet to read.
            self.turn.sent(None);
            ready!(self.reading.poll_over(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        // hyper flushes when it has nothing left to write.
        self.turn.flushed();
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_own(context))?;
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            if !self.refused {
                return Poll::Ready(Ok(()));
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "a connection's silence is real time, whatever clock tests move"
            )]
            let patience = Box::pin(tokio::time::sleep(LINGER.0));
            self.lingering = Some((patience, LINGER.1));
        }
        self.poll_rest(context).map(Ok)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_own(context))?;
        // A response without a body is one piece.
        if let [head] = pieces
            && self.replaces(head)
        {
            return Poll::Ready(Ok(head.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.paced(written, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_refusal_is_hypers_own() {
        let head = b"HTTP/1.1 431 Request Header Fields Too Large\r\n\
            connection: close\r\ncontent-length: 0\r\ndate: now\r\n\r\n";
        let (status, before, after) = own_answer(head).unwrap();
        assert_eq!(status, 431);
        assert!(before.ends_with(b"close\r\n"));
        assert_eq!(after, b"date: now\r\n\r\n");
        for other in [
            &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 5\r\n\r\nhello",
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"",
        ] {
            assert!(own_answer(other).is_none());
        }
    }
}
