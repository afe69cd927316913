//! Looks at the frames of a connection (RFC 9113 §4) while they pass: what a head takes of the budget,
//! whether the peer reads what is sent, and floods of frames that cost the server work and carry
//! nothing.
//!
//! The number of frames that carry nothing may be in proportion to the requests, to the bytes of
//! bodies in both directions, and to the time; and resets may be half of the requests. Browsers stay
//! far below both. `h2` by itself limits neither.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::fields::{FieldCounter, MAX_FIELDS};
use crate::head_budget::HeadMeter;
use crate::minimum_rate::{Pace, Waiting};

/// What a client sends first, which is no frame (RFC 9113 §3.4).
const PREFACE: usize = 24;
const FRAME_HEAD: usize = 9;
/// The types of frames (RFC 9113 §6), and two of their flags.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;
/// How large a trailer may be (RFC 9113 §8.1), which is kept until the body before it is read, without a
/// budget.
const MAX_TRAILER_BYTES: usize = 4 * 1_024;
const MAX_TRAILER_FIELDS: usize = 32;
/// The bytes of a priority in the frame of a head.
const PRIORITY_BYTES: usize = 5;

/// The frames that carry nothing which are allowed: at once, for each request, for each second, and
/// for this number of bytes.
const EMPTY: u64 = 1_000;
const EMPTY_PER_REQUEST: u64 = 10;
const EMPTY_PER_SECOND: u64 = 10;
const BYTES_PER_EMPTY: u64 = 1_024;
/// The resets that are allowed, beside half of the requests.
const RESETS: u64 = 100;

/// What a connection has transferred.
#[derive(Debug)]
pub(super) struct Transfer {
    arrived: Arc<AtomicU64>,
    sent: AtomicU64,
    /// Whether the system accepts no more data for now, and how often that was so.
    blocked: AtomicBool,
    blocks: AtomicU64,
}

/// How much was transferred until a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    at: Instant,
    sent: u64,
    blocks: u64,
    is_blocked: bool,
}

impl Mark {
    /// The moment.
    pub(super) const fn at(self) -> Instant {
        self.at
    }
}

impl Transfer {
    /// Nothing yet. `arrived` counts the bytes that arrive.
    pub(super) const fn new(arrived: Arc<AtomicU64>) -> Self {
        Self {
            arrived,
            sent: AtomicU64::new(0),
            blocked: AtomicBool::new(false),
            blocks: AtomicU64::new(0),
        }
    }

    /// The number of bytes in both directions.
    pub(super) fn moved(&self) -> u64 {
        let arrived = self.arrived.load(Ordering::Relaxed);
        arrived.wrapping_add(self.sent_bytes())
    }

    /// The number of bytes that were sent.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            at: Instant::now(),
            sent: self.sent_bytes(),
            blocks: self.blocks.load(Ordering::Relaxed),
            is_blocked: self.is_blocked(),
        }
    }

    /// Returns the number of bytes that were sent since the mark, and whether the system accepted no more at
    /// some moment since then: the peer could not read faster.
    pub(super) fn since(&self, mark: Mark) -> (u64, bool) {
        let now = self.mark();
        let sent = now.sent.wrapping_sub(mark.sent);
        (sent, mark.is_blocked || now.blocks != mark.blocks)
    }

    /// Whether the peer has read as fast as it must since the mark.
    pub(super) fn kept_pace_since(&self, mark: Mark, pace: Pace) -> bool {
        let now = self.mark();
        let sent = u128::from(now.sent.wrapping_sub(mark.sent));
        let took = (now.at - mark.at).as_millis();
        sent * pace.within.as_millis() >= u128::from(pace.bytes) * took
    }

    /// Counts bytes that were sent.
    pub(super) fn count_sent(&self, bytes: u64) {
        self.blocked.store(false, Ordering::Relaxed);
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }

    fn block(&self) {
        self.blocked.store(true, Ordering::Relaxed);
        self.blocks.fetch_add(1, Ordering::Relaxed);
    }
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Flood {
    #[error("the heads of requests take all the room that they may")]
    Heads,
    #[error("the peer sends too many frames that carry nothing")]
    Empty,
    #[error("the peer resets too many of its requests")]
    Resets,
}

/// What is still to come of the frame of a head, around the fields and of them (RFC 9113 §6.2).
#[derive(Debug, Default)]
struct HeadFrame {
    has_padding: bool,
    before: usize,
    fields: usize,
}

impl HeadFrame {
    fn of(kind: u8, flags: u8, length: usize) -> Self {
        let has = |flag| kind == HEADERS && flags & flag != 0;
        let before = if has(PRIORITY) { PRIORITY_BYTES } else { 0 };
        Self {
            has_padding: has(PADDED),
            before,
            fields: length.saturating_sub(before + usize::from(has(PADDED))),
        }
    }

    /// Returns the bytes of fields that are in the next bytes of the frame.
    fn part<'a>(&mut self, mut bytes: &'a [u8]) -> &'a [u8] {
        if self.has_padding {
            let Some((length, rest)) = bytes.split_first() else {
                return bytes;
            };
            self.fields = self.fields.saturating_sub(usize::from(*length));
            (self.has_padding, bytes) = (false, rest);
        }
        let before = self.before.min(bytes.len());
        self.before -= before;
        let fields = bytes.get(before..).unwrap_or_default();
        let fields = fields.get(..self.fields).unwrap_or(fields);
        self.fields -= fields.len();
        fields
    }
}

/// Counts the frames that arrive.
#[derive(Debug)]
pub(crate) struct Counter {
    since: Instant,
    /// The bytes of the preface, or of the current frame, that are still to come.
    left: usize,
    head: [u8; FRAME_HEAD],
    /// How much of `head` has arrived.
    known: usize,
    /// Whether the current frame is the last one of a head.
    ends_head: bool,
    block: HeadFrame,
    fields: FieldCounter,
    /// The last stream of the peer, and whether the current head belongs to an earlier request.
    last_stream: u32,
    is_trailer: bool,
    trailer_bytes: usize,
    requests: u64,
    resets: u64,
    empty: u64,
    body_bytes: u64,
}

impl Counter {
    pub(crate) fn new() -> Self {
        Self {
            since: Instant::now(),
            left: PREFACE,
            head: [0; FRAME_HEAD],
            known: 0,
            ends_head: false,
            block: HeadFrame::default(),
            fields: FieldCounter::default(),
            last_stream: 0,
            is_trailer: false,
            trailer_bytes: 0,
            requests: 0,
            resets: 0,
            empty: 0,
            body_bytes: 0,
        }
    }

    /// Counts what arrived, after `sent` bytes were sent.
    ///
    /// # Errors
    /// Why the connection must end.
    pub(crate) fn read(
        &mut self,
        mut bytes: &[u8],
        sent: u64,
        meter: &HeadMeter,
    ) -> Result<(), Flood> {
        loop {
            let (passed, rest) = bytes.split_at(self.left.min(bytes.len()));
            self.left -= passed.len();
            bytes = rest;
            self.fields.read(self.block.part(passed));
            let limit = if self.is_trailer {
                MAX_TRAILER_FIELDS
            } else {
                MAX_FIELDS
            };
            if self.fields.count() > limit {
                return Err(Flood::Heads);
            }
            if self.left > 0 {
                return Ok(());
            }
            if self.ends_head {
                self.ends_head = false;
                meter.head_is_read();
            }
            let Some((first, rest)) = bytes.split_first() else {
                return Ok(());
            };
            if let Some(byte) = self.head.get_mut(self.known) {
                *byte = *first;
            }
            self.known += 1;
            bytes = rest;
            if self.known == FRAME_HEAD {
                self.known = 0;
                self.begin_frame(sent, meter)?;
            }
        }
    }

    /// Returns the numbers of requests, resets, frames that carry nothing, and bytes of bodies.
    pub(crate) const fn figures(&self) -> [u64; 4] {
        [self.requests, self.resets, self.empty, self.body_bytes]
    }

    fn begin_frame(&mut self, sent: u64, meter: &HeadMeter) -> Result<(), Flood> {
        let [high, middle, low, kind, flags, stream @ ..] = self.head;
        let length = u32::from_be_bytes([0, high, middle, low]);
        self.left = usize::try_from(length).unwrap_or(usize::MAX);
        match kind {
            HEADERS | CONTINUATION => {
                if kind == HEADERS {
                    let stream = u32::from_be_bytes(stream) & (u32::MAX >> 1);
                    // A head of no stream is an error, which `h2` answers.
                    self.is_trailer = stream > 0 && stream <= self.last_stream;
                    self.last_stream = self.last_stream.max(stream);
                    if self.is_trailer {
                        self.empty += 1;
                    } else {
                        self.requests += 1;
                    }
                    (self.fields, self.trailer_bytes) = (FieldCounter::default(), 0);
                }
                if self.is_trailer {
                    self.trailer_bytes = self.trailer_bytes.saturating_add(self.left);
                    if self.trailer_bytes > MAX_TRAILER_BYTES {
                        return Err(Flood::Heads);
                    }
                }
                self.block = HeadFrame::of(kind, flags, self.left);
                self.ends_head = flags & END_HEADERS != 0;
                if !meter.read_head(self.left) {
                    return Err(Flood::Heads);
                }
            }
            DATA if length > 0 || flags & END_STREAM != 0 => self.body_bytes += u64::from(length),
            RST_STREAM => self.resets += 1,
            // Settings, pings, priorities, windows, and types that nobody knows.
            _ => self.empty += 1,
        }
        if self.resets > RESETS + self.requests / 2 {
            return Err(Flood::Resets);
        }
        if self.empty > EMPTY && self.empty > self.allowed(sent) {
            return Err(Flood::Empty);
        }
        Ok(())
    }

    /// Returns how many frames that carry nothing are allowed by now.
    fn allowed(&self, sent: u64) -> u64 {
        EMPTY
            + self.requests * EMPTY_PER_REQUEST
            + self.since.elapsed().as_secs() * EMPTY_PER_SECOND
            + (self.body_bytes + sent) / BYTES_PER_EMPTY
    }
}

/// A connection whose frames are counted, and whose peer has to read what is sent.
#[derive(Debug)]
pub(super) struct Frames<S> {
    stream: S,
    meter: Arc<HeadMeter>,
    transfer: Arc<Transfer>,
    counter: Counter,
    reading: Waiting,
}

impl<S> Frames<S> {
    pub(super) fn new(
        stream: S,
        meter: Arc<HeadMeter>,
        transfer: Arc<Transfer>,
        pace: Pace,
    ) -> Self {
        Self {
            stream,
            meter,
            transfer,
            counter: Counter::new(),
            reading: Waiting::new(pace),
        }
    }

    /// Applies the time limit to the result of a write of this length.
    fn paced<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        length: impl Fn(&T) -> usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        match &written {
            Poll::Ready(Ok(done)) => {
                let bytes = u64::try_from(length(done)).unwrap_or(u64::MAX);
                self.reading.moved(bytes);
                self.transfer.count_sent(bytes);
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                self.transfer.block();
                ready!(self.reading.poll_over(context));
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Frames<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        let read = buffer.filled().get(before..).unwrap_or_default();
        this.meter
            .pass(u64::try_from(read.len()).unwrap_or(u64::MAX));
        let sent = this.transfer.sent_bytes();
        let counted = this.counter.read(read, sent, &this.meter);
        Poll::Ready(counted.map_err(io::Error::other))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Frames<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.paced(written, |bytes| *bytes, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.paced(flushed, |()| 0, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.paced(shut, |()| 0, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.paced(written, |bytes| *bytes, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::memory_budget::MemoryBudget;

    const SETTINGS: u8 = 4;

    fn frame(kind: u8, flags: u8, length: usize) -> Vec<u8> {
        let length = u32::try_from(length).unwrap().to_be_bytes();
        let head = [length[1], length[2], length[3], kind, flags, 0, 0, 0, 0];
        // In a head, these are a few long fields.
        let body = vec![0x7f; usize::try_from(u32::from_be_bytes(length)).unwrap()];
        [&head[..], &body].concat()
    }

    struct Peer {
        counter: Counter,
        meter: Arc<HeadMeter>,
    }

    impl Peer {
        fn new(budget: usize) -> Self {
            let mut peer = Self {
                counter: Counter::new(),
                meter: MemoryBudget::new(budget, budget).meter(None),
            };
            peer.sends(&[0; PREFACE]).unwrap();
            peer
        }

        fn sends(&mut self, bytes: &[u8]) -> Result<(), Flood> {
            self.counter.read(bytes, 0, &self.meter)
        }

        /// Returns how many of these frames it may send, of at most 100,000.
        fn how_many(&mut self, frames: &[u8]) -> (usize, Option<Flood>) {
            for sent in 0..100_000 {
                if let Err(flood) = self.sends(frames) {
                    return (sent, Some(flood));
                }
            }
            (100_000, None)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn frames_that_carry_nothing_are_allowed_in_proportion_to_requests_and_time() {
        let ping = frame(6, 0, 8);
        for (kind, flags, length) in [
            (SETTINGS, 0, 0),
            (6, 0, 8),
            (2, 0, 5),
            (8, 0, 4),
            (77, 0, 0),
            (DATA, 0, 0),
        ] {
            let (sent, flood) = Peer::new(0).how_many(&frame(kind, flags, length));
            assert_eq!((sent, flood), (1_000, Some(Flood::Empty)), "{kind}");
        }
        let mut peer = Peer::new(0);
        peer.sends(&frame(HEADERS, END_HEADERS, 10).repeat(10))
            .unwrap();
        assert_eq!(peer.how_many(&ping).0, 1_100);
        let mut peer = Peer::new(0);
        let mut trailer = frame(HEADERS, END_HEADERS | END_STREAM, 10);
        trailer[FRAME_HEAD - 1] = 1;
        peer.sends(&trailer).unwrap();
        let sent = peer.how_many(&trailer);
        assert_eq!(
            sent,
            (1_010, Some(Flood::Empty)),
            "all but the first are trailers"
        );
        let mut peer = Peer::new(0);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(peer.how_many(&ping).0, 1_050);
        let mut peer = Peer::new(0);
        peer.sends(&frame(DATA, 0, 16_384)).unwrap();
        assert_eq!(peer.how_many(&ping).0, 1_016);
    }

    #[tokio::test]
    async fn half_of_the_requests_and_some_more_may_be_reset() {
        let request = frame(HEADERS, END_HEADERS | END_STREAM, 10);
        let reset = [request.clone(), frame(RST_STREAM, 0, 4)].concat();
        assert_eq!(Peer::new(0).how_many(&reset), (200, Some(Flood::Resets)));
        let now_and_then = [request.repeat(2), frame(RST_STREAM, 0, 4)].concat();
        assert_eq!(Peer::new(0).how_many(&now_and_then).1, None);
    }

    #[tokio::test]
    async fn a_head_takes_of_the_budget_while_it_arrives() {
        let part = frame(CONTINUATION, 0, 16_384);
        let mut peer = Peer::new(100_000);
        peer.sends(&frame(HEADERS, 0, 16_384)).unwrap();
        assert_eq!(
            peer.how_many(&part),
            (7, Some(Flood::Heads)),
            "and 32 KiB are free"
        );
        let mut peer = Peer::new(100_000);
        let whole = [
            frame(HEADERS, 0, 16_384),
            part.repeat(5),
            frame(CONTINUATION, END_HEADERS, 1),
        ];
        for _ in 0..10 {
            peer.sends(&whole.concat()).unwrap();
        }
    }

    #[tokio::test]
    async fn a_head_has_a_limited_number_of_fields_in_all_of_its_frames() {
        let head = |kind, flags, before: &[u8], fields: usize, after: usize| {
            let content = [before, &vec![0x82; fields], &vec![0x82; after]].concat();
            let mut frame = frame(kind, flags, content.len());
            frame.splice(FRAME_HEAD.., content);
            frame
        };
        let priority = [PRIORITY_BYTES as u8; PRIORITY_BYTES];
        let padding = [&[200][..], &priority].concat();
        let mut peer = Peer::new(0);
        for _ in 0..3 {
            peer.sends(&head(HEADERS, PADDED | PRIORITY, &padding, 24, 200))
                .unwrap();
            let rest = head(CONTINUATION, END_HEADERS, &[], 1_000, 0);
            for piece in rest.chunks(300) {
                peer.sends(piece).unwrap();
            }
        }
        peer.sends(&head(HEADERS, PRIORITY, &priority, 1_024, 0))
            .unwrap();
        let one_more = head(CONTINUATION, END_HEADERS, &[], 1, 0);
        assert_eq!(peer.sends(&one_more), Err(Flood::Heads));
    }

    #[tokio::test]
    async fn frames_are_counted_however_they_are_cut() {
        let all = [
            frame(SETTINGS, 0, 6),
            frame(HEADERS, END_HEADERS, 20),
            frame(DATA, END_STREAM, 30),
        ];
        let mut peer = Peer::new(0);
        for piece in all.concat().chunks(4) {
            peer.sends(piece).unwrap();
        }
        let counter = &peer.counter;
        assert_eq!(
            (counter.requests, counter.empty, counter.body_bytes),
            (1, 1, 30)
        );
        assert_eq!((counter.left, counter.known), (0, 0));
    }
}
