//! A connection to a backend that may respond before it has read the whole request.
//!
//! Many backends do this: they detect an invalid token or a body that is too long, respond, and
//! close the connection while the body is still being sent. Writing the rest then fails. But the
//! response has arrived and must be forwarded to the player (RFC 9112 §9.5), so the error is kept
//! until the connection is read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

/// A connection whose other side may stop reading. Later writes are discarded, and reading decides
/// whether there is a response.
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

    /// Returns the result of writing `bytes`; reports all of them as written if the other side does
    /// not read any more.
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
