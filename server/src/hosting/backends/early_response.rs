//! A connection to a backend that may answer before it has read a request.
//!
//! Many do: they see that a token is bad, or that a body is too long, answer, and
//! close the connection while the body is still being sent. Writing the rest of
//! it fails then. But the answer is there, and it is what the player is to hear
//! (RFC 9112 §9.5), so the failure is kept for whoever reads.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

/// A connection whose other end may stop listening. What is written after that
/// goes nowhere, and what reading finds decides: an answer, or that there is none.
#[derive(Debug)]
pub(super) struct EarlyResponseStream<T> {
    stream: T,
    is_deaf: bool,
}

impl<T> EarlyResponseStream<T> {
    pub(super) const fn new(stream: T) -> Self {
        Self {
            stream,
            is_deaf: false,
        }
    }

    /// The outcome of writing `bytes`, all of them where nobody listens any more.
    fn heard<R>(
        &mut self,
        written: Poll<io::Result<R>>,
        unheard: impl FnOnce() -> R,
    ) -> Poll<io::Result<R>> {
        match written {
            Poll::Ready(Err(error)) if is_deafness(error.kind()) => {
                self.is_deaf = true;
                Poll::Ready(Ok(unheard()))
            }
            other => other,
        }
    }
}

fn is_deafness(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

impl<T: Read + Unpin> Read for EarlyResponseStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<T: Write + Unpin> Write for EarlyResponseStream<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_deaf {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.heard(written, || bytes.len())
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_deaf {
            return Poll::Ready(Ok(()));
        }
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.heard(flushed, || ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let all = || pieces.iter().map(|piece| piece.len()).sum();
        if self.is_deaf {
            return Poll::Ready(Ok(all()));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.heard(written, all)
    }
}

impl<T: Connection> Connection for EarlyResponseStream<T> {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}
