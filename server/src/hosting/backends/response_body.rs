//! The body of a backend's response, which is cut off if the backend stalls, or if its game is
//! taken down.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A body that ends with an error after `quiet` without new data. The time of a slow reader does
/// not count: only waiting for the backend does.
struct IdleTimeoutBody<H> {
    body: Body,
    /// Dropped at the end of the body.
    held: Option<H>,
    quiet: Duration,
    silence: Pin<Box<Sleep>>,
    end: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// Cuts off `body` if it stalls for `quiet`, and when `end` is cancelled. Drops `held` with the
/// last piece, or with the body.
pub(super) fn listen<H: Send + Unpin + 'static>(
    body: Body,
    quiet: Duration,
    end: CancellationToken,
    held: H,
) -> Body {
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
        held: Some(held),
        quiet,
        silence,
        end: Box::pin(end.cancelled_owned()),
    })
}

impl<H: Unpin> HttpBody for IdleTimeoutBody<H> {
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
            if matches!(frame, None | Some(Err(_))) || this.body.is_end_stream() {
                this.held = None;
            }
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
    use std::sync::Arc;

    use super::*;
    use futures_util::stream;
    use http_body_util::BodyExt as _;

    /// A body with one piece every `pause`, which stalls after three pieces.
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
            (),
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
        let mut body = listen(pieces, Duration::from_secs(60), end.clone(), ());
        assert!(body.frame().await.unwrap().is_ok());
        let (next, ()) = tokio::join!(body.frame(), async { end.cancel() });
        assert!(next.unwrap().is_err());
    }

    fn two_pieces() -> Body {
        let pieces = ["a", "b"].map(Ok::<_, std::io::Error>);
        Body::from_stream(stream::iter(pieces))
    }

    #[tokio::test]
    async fn what_is_held_goes_with_the_last_piece_and_with_the_body() {
        let held = Arc::new(());
        let hold = |body| {
            let end = CancellationToken::new();
            listen(body, Duration::from_secs(60), end, Arc::clone(&held))
        };
        let mut body = hold(two_pieces());
        for _ in 0..2 {
            assert!(body.frame().await.unwrap().is_ok());
            assert_eq!(Arc::strong_count(&held), 2);
        }
        assert!(body.frame().await.is_none());
        assert_eq!(Arc::strong_count(&held), 1, "the body is still there");

        let mut body = hold(Body::from("whole"));
        assert!(body.frame().await.unwrap().is_ok());
        assert_eq!(Arc::strong_count(&held), 1, "its end was never asked for");

        let body = hold(two_pieces());
        drop(body);
        assert_eq!(Arc::strong_count(&held), 1);
        let empty = hold(Body::empty());
        assert_eq!(Arc::strong_count(&held), 1);
        drop(empty);
    }
}
