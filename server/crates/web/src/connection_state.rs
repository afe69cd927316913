//! Tracks whether one connection is in use, and the state of its slot meanwhile.
//!
//! A connection is in use from the end of a request's head until the whole response has been
//! written: the part that was handed over may be megabytes that the peer has yet to read. A request
//! that takes long becomes long-lived, if the limits allow it. A request is too slow if its peer
//! does not read, or if it may not become long-lived and nothing is transferred. Its connection is
//! closed if a new one needs the slot and no connection waits for a request. Nothing else closes
//! it.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;

use super::minimum_rate::Pace;
use super::places::{Lasting, Stay};

/// The state of one connection.
#[derive(Debug)]
pub(super) struct Turn {
    /// Whether a request is in progress: its response is not yet handed over completely.
    answering: AtomicBool,
    /// Whether everything that was handed over has been written.
    written: AtomicBool,
    /// Whether the system accepts no more data for now: the peer has not read what was sent.
    blocked: AtomicBool,
    /// The number of bytes that were sent, and that have arrived.
    sent: AtomicU64,
    arrived: Arc<AtomicU64>,
    /// The request whose response is not yet written.
    current: Mutex<Option<Current>>,
}

#[derive(Debug)]
struct Current {
    stay: Stay,
    /// When the request began, or was last checked.
    since: Instant,
    /// The number of bytes transferred by then.
    moved: u64,
    /// Set if it takes long and counts as long-lived.
    lasting: Option<Lasting>,
}

impl Turn {
    /// Creates the state without a request. `arrived` counts the bytes that arrive.
    pub(super) fn new(arrived: Arc<AtomicU64>) -> Self {
        Self {
            answering: AtomicBool::new(false),
            written: AtomicBool::new(true),
            blocked: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            arrived,
            current: Mutex::new(None),
        }
    }

    // Only one task at a time uses the connection, so no memory ordering is needed.
    pub(super) fn is_hypers(&self) -> bool {
        !self.answering.load(Ordering::Relaxed) && self.written.load(Ordering::Relaxed)
    }

    /// Records that everything handed over so far has been written. After the whole response, the
    /// connection waits for its peer.
    pub(super) fn flushed(&self) {
        let answering = self.answering.load(Ordering::Relaxed);
        let was_written = self.written.swap(!answering, Ordering::Relaxed);
        if answering || was_written {
            return;
        }
        let answered = self.current().take();
        if let Some(answered) = answered {
            answered.stay.place().wait();
        }
    }

    /// Records that bytes were sent, or `None` if the system accepts no more.
    pub(super) fn sent(&self, bytes: Option<u64>) {
        self.blocked.store(bytes.is_none(), Ordering::Relaxed);
        self.sent.fetch_add(bytes.unwrap_or(0), Ordering::Relaxed);
    }

    fn moved(&self) -> u64 {
        let arrived = self.arrived.load(Ordering::Relaxed);
        arrived.wrapping_add(self.sent.load(Ordering::Relaxed))
    }

    /// Checks how the request progresses, if the last check was long enough ago. Returns when to
    /// check again.
    pub(super) fn look(&self, long: Duration, pace: Pace) -> Instant {
        let now = Instant::now();
        let mut current = self.current();
        let Some(current) = current.as_mut() else {
            return now + long;
        };
        if now < current.since + long {
            return current.since + long;
        }
        let moved = self.moved();
        let more = u128::from(moved.wrapping_sub(current.moved));
        let took = (now - current.since).as_millis();
        let keeps_pace = more * pace.within.as_millis() >= u128::from(pace.bytes) * took;
        (current.since, current.moved) = (now, moved);
        current.judge(keeps_pace, self.blocked.load(Ordering::Relaxed));
        now + long
    }

    fn current(&self) -> MutexGuard<'_, Option<Current>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Current {
    /// Decides about the state of its slot.
    fn judge(&mut self, keeps_pace: bool, blocked: bool) {
        let place = self.stay.place();
        // WebSockets and streams may be silent for any time.
        if self.stay.is_upload() || self.stay.lasts_beside(self.lasting.as_ref()) {
            place.use_it();
        } else if blocked && !keeps_pace {
            self.lasting = None;
            place.lag();
        } else {
            if self.lasting.is_none() {
                self.lasting = self.stay.last().ok();
            }
            if keeps_pace || self.lasting.is_some() {
                place.use_it();
            } else {
                place.lag();
            }
        }
    }
}

/// A request, from the end of its head until its response is handed over.
#[derive(Debug)]
pub(super) struct Answering {
    /// `None` once the connection has switched to another protocol.
    turn: Option<Arc<Turn>>,
}

impl Answering {
    /// Begins after a whole head was read.
    pub(super) fn begin(turn: &Arc<Turn>, stay: &Stay) -> Self {
        stay.place().use_it();
        turn.answering.store(true, Ordering::Relaxed);
        turn.written.store(false, Ordering::Relaxed);
        let before = turn.current().replace(Current {
            stay: stay.clone(),
            since: Instant::now(),
            moved: turn.moved(),
            lasting: None,
        });
        drop(before);
        Self {
            turn: Some(Arc::clone(turn)),
        }
    }

    /// Moves into the body of the response.
    pub(super) fn go_with(mut self, mut response: Response<Body>) -> Response<Answered> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            // What follows is not HTTP, and in use until it ends.
            self.turn = None;
        }
        let lasting = response.extensions_mut().remove::<Lasting>();
        response.map(|body| Answered {
            body,
            _answering: self,
            _lasting: lasting,
        })
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if let Some(turn) = self.turn.take() {
            turn.answering.store(false, Ordering::Relaxed);
        }
    }
}

/// The body of a response. hyper drops it once it has taken over the last byte.
#[derive(Debug)]
pub(super) struct Answered {
    body: Body,
    _answering: Answering,
    /// Set for a stream.
    _lasting: Option<Lasting>,
}

impl HttpBody for Answered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
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
    use super::super::places::{LONG, Places};
    use super::*;

    /// A connection and its request.
    struct Asked {
        turn: Arc<Turn>,
        stay: Stay,
        answering: Option<Answering>,
    }

    impl Asked {
        async fn at(places: &Places) -> Self {
            let turn = Arc::new(Turn::new(Arc::default()));
            let stay = Stay::at(&places.take(&[]).await.unwrap());
            let answering = Some(Answering::begin(&turn, &stay));
            Self {
                turn,
                stay,
                answering,
            }
        }

        fn look(&self) {
            self.turn.look(LONG, Pace::default());
        }

        fn gives_way(&self) -> bool {
            self.stay.place().gives_way()
        }
    }

    #[tokio::test]
    async fn a_connection_is_in_use_until_all_of_its_answer_is_written() {
        let places = Places::new(1);
        let mut asked = Asked::at(&places).await;
        assert!(!asked.turn.is_hypers());
        // Everything handed over so far is written, and more will come.
        asked.turn.flushed();
        assert!(!asked.gives_way());
        asked.answering = None;
        assert!(!asked.turn.is_hypers() && !asked.gives_way());
        asked.turn.flushed();
        assert!(asked.turn.is_hypers() && asked.gives_way());
        let next = Answering::begin(&asked.turn, &asked.stay);
        assert!(!asked.gives_way());
        // Another protocol has no next request.
        let mut switched = Response::new(Body::empty());
        *switched.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        drop(next.go_with(switched));
        asked.turn.flushed();
        assert!(!asked.gives_way());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_takes_long_lasts_and_goes_on_where_too_many_do() {
        // One of two connections may be long-lived.
        let places = Places::new(2);
        let (first, second) = (Asked::at(&places).await, Asked::at(&places).await);
        tokio::time::advance(LONG / 2).await;
        first.look();
        assert!(second.stay.last().is_ok(), "it is not long yet");
        tokio::time::advance(LONG / 2).await;
        first.look();
        assert!(second.stay.last().is_err());
        // It has delivered as much as a slow network can, so it stays.
        second.turn.arrived.store(64 * 1024, Ordering::Relaxed);
        second.look();
        assert!(!first.gives_way() && !second.gives_way());
        // Nothing has been transferred since then.
        tokio::time::advance(LONG).await;
        second.look();
        assert!(second.gives_way());
        drop(first);
        tokio::time::advance(LONG).await;
        second.look();
        assert!(!second.gives_way(), "it may last now");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_not_read_gives_way_and_does_not_last() {
        let places = Places::new(2);
        let (asked, other) = (Asked::at(&places).await, Asked::at(&places).await);
        let a_while = || tokio::time::advance(LONG);
        // As much as the system accepts at once.
        asked.turn.sent(Some(1_000_000));
        asked.turn.sent(None);
        a_while().await;
        asked.look();
        assert!(!asked.gives_way() && other.stay.last().is_err());
        a_while().await;
        asked.look();
        assert!(asked.gives_way() && other.stay.last().is_ok());
        asked.turn.sent(Some(30_000));
        asked.turn.sent(None);
        a_while().await;
        asked.look();
        assert!(!asked.gives_way(), "it reads, slowly");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_may_be_silent_and_an_upload_may_take_its_time() {
        let places = Places::new(2);
        let (stream, upload) = (Asked::at(&places).await, Asked::at(&places).await);
        // No other one may be long-lived.
        let lasting = stream.stay.last().unwrap();
        upload.stay.is_of([192, 0, 2, 1].into(), None);
        upload.stay.mark_upload();
        stream.turn.sent(None);
        for _ in 0..10 {
            tokio::time::advance(LONG).await;
            for asked in [&stream, &upload] {
                asked.look();
                assert!(!asked.gives_way());
            }
        }
        drop(lasting);
    }
}
