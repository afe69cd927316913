//! The body of a backend's answer, given up where the backend goes silent in
//! the middle of it, and where its game is taken down.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A body that ends with an error after `quiet` without a piece. The time that
/// a slow reader takes does not count: it is the backend that is waited for.
struct IdleTimeoutBody {
    body: Body,
    quiet: Duration,
    silence: Pin<Box<Sleep>>,
    end: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// Gives `body` up where it is silent for `quiet`, and with `end`.
pub(super) fn listen(body: Body, quiet: Duration, end: CancellationToken) -> Body {
    if body.is_end_stream() {
        return body;
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "a connection's silence is real time, whatever clock tests move"
    )]
    let silence = Box::pin(tokio::time::sleep(quiet));
    Body::new(IdleTimeoutBody {
        body,
        quiet,
        silence,
        end: Box::pin(end.cancelled_owned()),
    })
}

impl HttpBody for IdleTimeoutBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if this.end.as_mut().poll(context).is_ready() {
            let error = axum::Error::new("the game was taken down");
            return Poll::Ready(Some(Err(error)));
        }
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            this.silence.as_mut().reset(Instant::now() + this.quiet);
            return Poll::Ready(frame);
        }
        if this.silence.as_mut().poll(context).is_ready() {
            tracing::info!("a backend went silent in the middle of its answer");
            let error = axum::Error::new("the backend went silent");
            return Poll::Ready(Some(Err(error)));
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use http_body_util::BodyExt as _;

    /// A body with a piece every `pause`, which goes silent after three of them.
    fn three_pieces(pause: Duration) -> Body {
        let ticks = tokio::time::interval(pause);
        Body::from_stream(stream::unfold((ticks, 0), |(mut ticks, sent)| async move {
            ticks.tick().await;
            if sent == 3 {
                std::future::pending::<()>().await;
            }
            let piece = Ok::<_, std::io::Error>(Bytes::from_static(b"x"));
            Some((piece, (ticks, sent + 1)))
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_flows_may_take_its_time_and_one_that_stops_ends() {
        let mut body = listen(
            three_pieces(Duration::from_secs(50)),
            Duration::from_secs(60),
            CancellationToken::new(),
        );
        for _ in 0..3 {
            assert!(body.frame().await.unwrap().is_ok());
        }
        assert!(body.frame().await.unwrap().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_flows_ends_with_its_game() {
        let end = CancellationToken::new();
        let pieces = three_pieces(Duration::from_secs(50));
        let mut body = listen(pieces, Duration::from_secs(60), end.clone());
        assert!(body.frame().await.unwrap().is_ok());
        let (next, ()) = tokio::join!(body.frame(), async { end.cancel() });
        assert!(next.unwrap().is_err());
    }
}
