//! The requests of one connection of HTTP/2: how many are in progress, and which are too slow.
//!
//! A connection is in use while it has a request in progress, or a part of a response that is not yet
//! sent. Each request runs in a task of its own.
//! Its task ends, which resets the request, if its peer does not take the response: by its own window,
//! while it could read more of the connection. A request that takes long becomes long-lived, as in
//! HTTP/1.1; where too many are, one whose response does not move is reset.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::rt::Executor;
use tokio::time::{Instant, Sleep};

use super::frames::{Mark, Transfer};
use super::unread::{Admission, Part, Pause, Unread};
use crate::minimum_rate::{Pace, Waiting};
use crate::places::{Lasting, Place, Stay};
use crate::serve::ConnectionLimits;

/// The largest piece of a response that is handed over at once: a frame. What is handed over is in
/// memory until the peer takes it.
const PIECE: usize = 16 * 1_024;

tokio::task_local! {
    /// The request whose task this is.
    static CURRENT: Open;
}

/// The requests of one connection.
#[derive(Debug)]
pub(super) struct Streams {
    place: Place,
    transfer: Arc<Transfer>,
    limits: ConnectionLimits,
    pace: Pace,
    unread: Arc<Unread>,
    open: Mutex<Count>,
}

#[derive(Debug)]
struct Count {
    /// The requests whose tasks run.
    open: usize,
    /// The pieces of responses that are handed over and not yet sent.
    unsent: usize,
    /// Since when no task runs, or since when one does.
    since: Instant,
}

impl Streams {
    /// A new connection, without requests.
    pub(super) fn new(
        place: Place,
        transfer: Arc<Transfer>,
        limits: ConnectionLimits,
        pace: Pace,
        unread: Arc<Unread>,
    ) -> Arc<Self> {
        Arc::new(Self {
            place,
            transfer,
            limits,
            pace,
            unread,
            open: Mutex::new(Count {
                open: 0,
                unsent: 0,
                since: Instant::now(),
            }),
        })
    }

    fn count(&self) -> MutexGuard<'_, Count> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self) {
        let mut count = self.count();
        count.open += 1;
        if count.open == 1 {
            count.since = Instant::now();
            // Under the lock, so that the slot's state is always that of the last change.
            self.place.use_it();
        }
    }

    fn closed(&self) {
        let mut count = self.count();
        count.open -= 1;
        if count.open == 0 {
            count.since = Instant::now();
            self.wait_if_all_is_sent(&count);
        }
    }

    fn sent(&self) {
        let mut count = self.count();
        count.unsent -= 1;
        self.wait_if_all_is_sent(&count);
        drop(count);
        self.unread.read();
    }

    fn wait_if_all_is_sent(&self, count: &Count) {
        if (count.open, count.unsent) == (0, 0) {
            self.place.wait();
        }
    }

    /// Waits until there was no request in progress for as long as a connection may be idle. Meanwhile
    /// it looks whether the peer reads.
    pub(super) async fn idle(&self) {
        let mut before = self.transfer.moved();
        loop {
            let now = Instant::now();
            let moved = self.transfer.moved();
            let wait = {
                let count = self.count();
                let idle = now - count.since;
                match self.limits.head.checked_sub(idle) {
                    _ if count.open > 0 => {
                        self.look(moved.wrapping_sub(before));
                        self.limits.long
                    }
                    None | Some(Duration::ZERO) => return,
                    Some(left) => left.min(self.limits.long),
                }
            };
            before = moved;
            tokio::time::sleep_until(now + wait).await;
        }
    }

    /// Decides whether the connection gives way to new ones, after `more` bytes were transferred
    /// within the time of a long request.
    fn look(&self, more: u64) {
        let took = self.limits.long.as_millis();
        let keeps_pace = self.keeps_pace(more, took);
        if self.transfer.is_blocked() && !keeps_pace {
            self.place.lag();
        } else {
            self.place.use_it();
        }
    }

    fn keeps_pace(&self, bytes: u64, took: u128) -> bool {
        u128::from(bytes) * self.pace.within.as_millis() >= u128::from(self.pace.bytes) * took
    }

    /// Waits until no request was in progress for this time, from now on.
    pub(super) async fn quiet(&self, time: Duration) {
        let from = Instant::now();
        loop {
            let end = {
                let count = self.count();
                let since = if count.open > 0 {
                    Instant::now()
                } else {
                    count.since.max(from)
                };
                since + time
            };
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}

/// Runs each request of a connection in a task of its own.
#[derive(Clone, Debug)]
pub(super) struct Tasks(pub(super) Arc<Streams>);

impl<F> Executor<F> for Tasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, answering: F) {
        // In a box, or the task would have room for it twice.
        let answering = Box::pin(answering);
        let open = Open::new(Arc::clone(&self.0));
        let answering = CURRENT.scope(open.clone(), answering);
        tokio::spawn(async move {
            let too_slow = std::future::poll_fn(|context| open.0.poll_too_slow(context));
            tokio::select! {
                biased;
                () = answering => {}
                () = too_slow => tracing::debug!("a request whose peer does not read is reset"),
            }
        });
    }
}

/// A request in progress.
#[derive(Clone, Debug)]
pub(super) struct Open(Arc<Stream>);

#[derive(Debug)]
struct Stream {
    connection: Arc<Streams>,
    stay: Stay,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The length of the piece of the response that waits for the peer, and what had been transferred
    /// when it began to.
    waiting: Option<(u64, Mark)>,
    reading: Waiting,
    meanwhile: Meanwhile,
    /// The bytes of the response that were taken since the last check, and when the next one is.
    taken: u64,
    check: Option<Pin<Box<Sleep>>>,
    /// Set if it takes long and counts as long-lived.
    lasting: Option<Lasting>,
    /// Whether it waits for the application, since the peer has yet to read other responses.
    is_kept_back: bool,
}

/// What happened on the connection while a request waited for its peer, since `reading` began anew.
#[derive(Clone, Copy, Debug, Default)]
struct Meanwhile {
    /// The bytes that were sent, of all responses.
    sent: u64,
    /// Whether the system accepted no more at some moment.
    was_blocked: bool,
}

impl State {
    /// Adds what was sent since the piece of the response began to wait.
    fn add(&mut self, transfer: &Transfer) {
        if let Some((_, mark)) = &mut self.waiting {
            let (sent, was_blocked) = transfer.since(*mark);
            self.meanwhile.sent += sent;
            self.meanwhile.was_blocked |= was_blocked;
            *mark = transfer.mark();
        }
    }
}

impl Open {
    fn new(connection: Arc<Streams>) -> Self {
        connection.opened();
        Self(Arc::new(Stream {
            stay: Stay::at(&connection.place),
            state: Mutex::new(State {
                waiting: None,
                reading: Waiting::new(connection.pace),
                meanwhile: Meanwhile::default(),
                taken: 0,
                check: None,
                lasting: None,
                is_kept_back: false,
            }),
            connection,
        }))
    }

    /// Returns the request whose task this is.
    pub(super) fn current() -> Self {
        CURRENT.with(Clone::clone)
    }

    /// Waits until the application may have the request. Returns `None` if the peer has not read what
    /// it must have read meanwhile.
    pub(super) async fn admit(&self) -> Option<Admission> {
        let connection = &self.0.connection;
        let admission = connection.unread.admit();
        let mut admission = std::pin::pin!(admission);
        self.0.state().is_kept_back = true;
        let admitted = loop {
            let mark = connection.transfer.mark();
            tokio::select! {
                biased;
                admission = &mut admission => break Some(admission),
                () = tokio::time::sleep_until(mark.at() + connection.pace.within) => {}
            }
            if !connection.transfer.kept_pace_since(mark, connection.pace) {
                break None;
            }
        };
        self.0.state().is_kept_back = false;
        admitted
    }

    /// Returns its slot.
    pub(super) fn stay(&self) -> &Stay {
        &self.0.stay
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.closed();
    }
}

impl Stream {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the piece of the response that was handed over last has found room.
    fn taken(&self) {
        let mut state = self.state();
        state.add(&self.connection.transfer);
        if let Some((bytes, _)) = state.waiting.take() {
            if state.reading.moved(bytes) {
                state.meanwhile = Meanwhile::default();
            }
            state.taken += bytes;
        }
    }

    /// Records that a piece of the response waits for the peer.
    fn wait_for_peer(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.state().waiting = Some((bytes, self.connection.transfer.mark()));
    }

    /// Ready if the request must be reset.
    fn poll_too_slow(&self, context: &mut Context<'_>) -> Poll<()> {
        let (connection, mut state) = (&*self.connection, self.state());
        let state = &mut *state;
        while state.waiting.is_some() {
            if state.reading.poll_over(context).is_pending() {
                break;
            }
            state.add(&connection.transfer);
            // A peer that reads as fast as it can, and as fast as it must, reads other responses: this one
            // waits for its turn.
            let Meanwhile { sent, was_blocked } = std::mem::take(&mut state.meanwhile);
            if !was_blocked || sent < connection.pace.bytes {
                return Poll::Ready(());
            }
            state.reading = Waiting::new(connection.pace);
        }
        let long = connection.limits.long;
        loop {
            let check = state
                .check
                .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + long)));
            ready!(check.as_mut().poll(context));
            check.as_mut().reset(Instant::now() + long);
            if self.may_not_go_on(state) {
                return Poll::Ready(());
            }
        }
    }

    /// Decides about a request that takes long, as for a connection of HTTP/1.1.
    fn may_not_go_on(&self, state: &mut State) -> bool {
        let taken = std::mem::take(&mut state.taken);
        // It takes nothing of the server but its head.
        if state.is_kept_back {
            return false;
        }
        if self.stay.is_upload() || self.stay.lasts_beside(state.lasting.as_ref()) {
            return false;
        }
        let took = self.connection.limits.long.as_millis();
        if self.connection.keeps_pace(taken, took) {
            return false;
        }
        if state.lasting.is_none() {
            state.lasting = self.stay.last().ok();
        }
        state.lasting.is_none()
    }
}

/// The body of a response, in pieces that its peer takes one after the other.
#[derive(Debug)]
pub(super) struct Answer {
    body: Body,
    /// What is left of a part of the body, and the count of the memory of this part.
    rest: Bytes,
    part: Option<Arc<Part>>,
    pause: Arc<Pause>,
    stream: Open,
    /// Set for a stream of events.
    _lasting: Option<Lasting>,
}

impl Answer {
    /// Moves the request into the body of its response.
    pub(super) fn of(stream: Open, mut response: Response<Body>) -> Response<Self> {
        let lasting = response.extensions_mut().remove::<Lasting>();
        response.map(|body| Self {
            body,
            rest: Bytes::new(),
            part: None,
            pause: Arc::default(),
            stream,
            _lasting: lasting,
        })
    }
}

/// A piece of a response that is handed over. It is dropped once it is sent.
struct Unsent {
    piece: Bytes,
    connection: Arc<Streams>,
    _part: Option<Arc<Part>>,
}

impl Unsent {
    fn new(piece: Bytes, connection: &Arc<Streams>, part: Option<Arc<Part>>) -> Self {
        connection.count().unsent += 1;
        Self {
            piece,
            connection: Arc::clone(connection),
            _part: part,
        }
    }
}

impl AsRef<[u8]> for Unsent {
    fn as_ref(&self) -> &[u8] {
        &self.piece
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.connection.sent();
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let stream = &this.stream.0;
        stream.taken();
        if this.rest.is_empty() {
            let unread = &stream.connection.unread;
            if unread.must_pause(&this.pause, context) {
                return Poll::Pending;
            }
            match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        this.part = Some(unread.hold(&data, &this.pause));
                        this.rest = data;
                    }
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
            }
        }
        let piece = this.rest.split_to(this.rest.len().min(PIECE));
        stream.wait_for_peer(piece.len());
        let part = if this.rest.is_empty() {
            this.part.take()
        } else {
            this.part.clone()
        };
        let unsent = Unsent::new(piece, &stream.connection, part);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(unsent)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let hint = self.body.size_hint();
        if rest == 0 {
            return hint;
        }
        let mut all = SizeHint::new();
        all.set_lower(hint.lower().saturating_add(rest));
        if let Some(upper) = hint.upper() {
            all.set_upper(upper.saturating_add(rest));
        }
        all
    }
}
