//! Monitors a request's body that is forwarded to a game's backend: its size, its progress, and its
//! speed.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use platform_protocol::problem::ProblemCode;
use tokio::sync::watch;

use crate::web::api_error::ApiError;
use crate::web::minimum_rate::{Pace, Waiting};

/// The limits of a body and of the response to it.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum number of bytes of the body.
    pub bytes: u64,
    /// How long there may be no progress: no new data of the body, and after its end, no response.
    /// As long as there is progress, an upload may take any time.
    pub quiet: Duration,
    /// The minimum speed.
    pub pace: Pace,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 32 * 1024 * 1024,
            quiet: Duration::from_secs(30),
            pace: Pace::default(),
        }
    }
}

/// The progress of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Flowing,
    Ended,
    TooLarge,
    TooSlow,
    Broken,
}

/// A monitor of a body that is being forwarded.
#[derive(Debug)]
pub struct Upload {
    progress: watch::Receiver<Progress>,
    starved: Arc<AtomicBool>,
    quiet: Duration,
}

impl Upload {
    /// Monitors `body`, and returns the body to forward.
    pub fn watch(body: Body, limits: Limits) -> (Self, Body) {
        let (sender, progress) = watch::channel(Progress::Flowing);
        let starved = Arc::new(AtomicBool::new(false));
        let upload = Self {
            progress,
            starved: Arc::clone(&starved),
            quiet: limits.quiet,
        };
        if body.is_end_stream() {
            sender.send_replace(Progress::Ended);
            return (upload, body);
        }
        let watched = Watched {
            body,
            left: limits.bytes,
            progress: sender,
            starved,
            waiting: Waiting::new(limits.pace),
        };
        (upload, Body::new(watched))
    }

    /// Waits for the response as long as there is progress.
    ///
    /// # Errors
    /// 408 if the client stops sending; `backend-timeout` if the backend neither reads nor
    /// responds.
    pub async fn wait_for<T>(&self, answer: impl Future<Output = T>) -> Result<T, ApiError> {
        let mut progress = self.progress.clone();
        let quiet = async {
            loop {
                match tokio::time::timeout(self.quiet, progress.changed()).await {
                    Ok(Ok(())) => {}
                    // The body was dropped, so only the response is awaited.
                    Ok(Err(_)) => {
                        let never = std::future::pending::<()>();
                        let _ = tokio::time::timeout(self.quiet, never).await;
                        return;
                    }
                    Err(_) => return,
                }
            }
        };
        tokio::select! {
            biased;
            answer = answer => Ok(answer),
            () = quiet => Err(self.gone_quiet()),
        }
    }

    /// Whether the body could be forwarded.
    ///
    /// # Errors
    /// `payload-too-large`, 408 if it was too slow, or `invalid-request` if it broke off.
    pub fn check(&self) -> Result<(), ApiError> {
        match *self.progress.borrow() {
            Progress::TooLarge => Err(ProblemCode::PayloadTooLarge.into()),
            Progress::TooSlow => Err(ApiError::request_timeout()),
            Progress::Broken => {
                Err(ApiError::new(ProblemCode::InvalidRequest)
                    .with_detail("The request was cut off."))
            }
            Progress::Flowing | Progress::Ended => Ok(()),
        }
    }

    fn gone_quiet(&self) -> ApiError {
        if *self.progress.borrow() == Progress::Flowing && self.starved.load(Ordering::Relaxed) {
            return ApiError::request_timeout();
        }
        ApiError::new(ProblemCode::BackendTimeout)
            .with_cause("the backend neither read nor answered")
    }
}

/// A body that reports its progress.
struct Watched {
    body: Body,
    left: u64,
    progress: watch::Sender<Progress>,
    /// Whether the next piece was requested and has not arrived.
    starved: Arc<AtomicBool>,
    waiting: Waiting,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(context);
        this.starved.store(polled.is_pending(), Ordering::Relaxed);
        let Poll::Ready(frame) = polled else {
            if this.waiting.poll_over(context).is_pending() {
                return Poll::Pending;
            }
            this.progress.send_replace(Progress::TooSlow);
            let error = axum::Error::new("the body comes too slowly");
            return Poll::Ready(Some(Err(error)));
        };
        let (progress, frame) = match frame {
            None => (Progress::Ended, None),
            Some(Err(error)) => (Progress::Broken, Some(Err(error))),
            Some(Ok(frame)) => {
                let length = frame.data_ref().map_or(0, Bytes::len);
                let length = u64::try_from(length).unwrap_or(u64::MAX);
                this.waiting.moved(length);
                match this.left.checked_sub(length) {
                    None => {
                        let error = axum::Error::new("the body is too large");
                        (Progress::TooLarge, Some(Err(error)))
                    }
                    Some(left) => {
                        this.left = left;
                        let ended = this.body.is_end_stream();
                        let progress = if ended {
                            Progress::Ended
                        } else {
                            Progress::Flowing
                        };
                        (progress, Some(Ok(frame)))
                    }
                }
            }
        };
        this.progress.send_replace(progress);
        Poll::Ready(frame)
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

    const LIMITS: Limits = Limits {
        bytes: 100,
        quiet: Duration::from_secs(30),
        pace: Pace {
            bytes: 1,
            within: Duration::from_secs(60),
        },
    };

    /// A body of `pieces` pieces of ten bytes, one every `pause`; if it `stays`, it then stalls
    /// without an end.
    fn body(pieces: u32, pause: Duration, stays: bool) -> Body {
        let ticks = tokio::time::interval(pause);
        let stream = stream::unfold((ticks, pieces), move |(mut ticks, left)| async move {
            ticks.tick().await;
            if left == 0 && stays {
                std::future::pending::<()>().await;
            }
            let piece = Ok::<_, std::io::Error>(Bytes::from_static(&[0; 10]));
            Some((piece, (ticks, left.checked_sub(1)?)))
        });
        Body::from_stream(stream)
    }

    async fn read(body: Body) -> bool {
        body.collect().await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_that_flows_may_take_its_time() {
        let (upload, body) = Upload::watch(body(10, Duration::from_secs(20), false), LIMITS);
        assert!(upload.wait_for(read(body)).await.unwrap());
        assert!(upload.check().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_that_stops_is_given_up() {
        let (upload, body) = Upload::watch(body(3, Duration::from_secs(1), true), LIMITS);
        let refusal = upload.wait_for(read(body)).await.unwrap_err();
        assert_eq!(refusal.slug(), ProblemCode::InvalidRequest);
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_that_trickles_is_given_up() {
        let slow = Limits {
            pace: Pace {
                bytes: 20,
                within: Duration::from_secs(30),
            },
            ..LIMITS
        };
        for (pause, kept) in [(14, true), (16, false)] {
            let trickle = body(10, Duration::from_secs(pause), false);
            let (upload, body) = Upload::watch(trickle, slow);
            let arrived = upload.wait_for(read(body)).await.unwrap();
            assert_eq!(arrived, kept, "a piece every {pause} s");
            let status = upload.check().map_err(|refusal| refusal.status().as_u16());
            assert_eq!(status, if kept { Ok(()) } else { Err(408) });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_the_backend_reads_nothing_is_not_the_clients() {
        let quick = body(5, Duration::from_millis(1), false);
        let (upload, mut body) = Upload::watch(quick, LIMITS);
        let reading = async {
            let mut pieces = 0;
            while let Some(frame) = body.frame().await {
                assert!(frame.is_ok());
                pieces += 1;
                // The backend is slow, but not as slow as the limit.
                tokio::time::advance(Duration::from_secs(25)).await;
            }
            pieces
        };
        assert_eq!(upload.wait_for(reading).await.unwrap(), 5);
        assert!(upload.check().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_backend_that_neither_reads_nor_answers_is_given_up() {
        let unread = Upload::watch(body(3, Duration::from_secs(1), false), LIMITS);
        let never = std::future::pending::<()>();
        let refusal = unread.0.wait_for(never).await.unwrap_err();
        assert_eq!(refusal.slug(), ProblemCode::BackendTimeout);

        for sent in [Body::empty(), body(3, Duration::from_secs(1), false)] {
            let (upload, body) = Upload::watch(sent, LIMITS);
            let silent = async {
                assert!(read(body).await);
                std::future::pending::<()>().await;
            };
            let refusal = upload.wait_for(silent).await.unwrap_err();
            assert_eq!(refusal.slug(), ProblemCode::BackendTimeout);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_over_the_limit_is_too_large() {
        let (upload, body) = Upload::watch(body(11, Duration::from_secs(1), false), LIMITS);
        assert!(!upload.wait_for(read(body)).await.unwrap());
        let refusal = upload.check().unwrap_err();
        assert_eq!(refusal.slug(), ProblemCode::PayloadTooLarge);
    }
}
