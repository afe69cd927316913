//! When a token is asked for, shared, kept and given up.
//!
//! [`Tokens`] is a state machine without a browser: it is told who asks, when,
//! and how a request ended, and says whom to answer and whether to start a
//! request. `T` is a token, `E` a failure, `W` one who waits for either.

/// Milliseconds of a token's life that are always kept in reserve.
const RESERVE: f64 = 60_000.0;
/// A request without an answer is given up for lost after so many
/// milliseconds, once somebody looks: the page was asleep.
const LOST: f64 = 30_000.0;
/// For so many milliseconds a failure without an answer is shared.
const SHARED_FAILURE: f64 = 1_000.0;

/// A moment on two clocks, in milliseconds: one that nobody sets but that may
/// stand still while the device sleeps, and one that goes on but may be set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Instant {
    /// The monotonic clock (`performance.now()`).
    pub monotonic: f64,
    /// The wall clock (`Date.now()`).
    pub wall: f64,
}

impl Instant {
    /// Milliseconds since `earlier`, by the clock that moved more.
    fn since(self, earlier: Instant) -> f64 {
        (self.monotonic - earlier.monotonic).max(self.wall - earlier.wall)
    }
}

/// What the caller would take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want<T> {
    /// Any token that lasts a while.
    Any,
    /// A token that was asked for after this call.
    Fresh,
    /// Any token but this one, which a backend refused.
    Other(T),
}

/// Why a request for a token brought none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The account's session ended: asking again would make a new guest in its
    /// place, so nobody asks again on this page.
    SessionExpired,
    /// No answer arrived.
    NoAnswer,
    /// The auth service said no for another reason.
    Refused,
}

/// What to do after [`Tokens::ask`].
#[derive(Debug, PartialEq, Eq)]
pub enum Step<T, E, W> {
    /// Answer this one now.
    Answer(W, Result<T, E>),
    /// Nothing: a request is under way.
    Wait,
    /// Start the request of this number once the callers of this moment have
    /// all asked: call [`Tokens::begin`] in a microtask.
    Start(u32),
}

struct Held<T> {
    token: T,
    received: Instant,
    life: f64,
}

struct Request<T, W> {
    number: u32,
    /// None until the callers of the same moment have joined.
    started: Option<Instant>,
    waiting: Vec<(Want<T>, W)>,
}

/// The tokens of one page. They live in memory only.
pub struct Tokens<T, E, W> {
    held: Option<Held<T>>,
    request: Option<Request<T, W>>,
    /// Those who want a token fresher than the request under way.
    queued: Vec<(Want<T>, W)>,
    expired: Option<E>,
    unanswered: Option<(Instant, E)>,
    requests: u32,
}

impl<T: Clone + PartialEq, E: Clone, W> Default for Tokens<T, E, W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone + PartialEq, E: Clone, W> Tokens<T, E, W> {
    /// No token yet, nobody waiting.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            held: None,
            request: None,
            queued: Vec::new(),
            expired: None,
            unanswered: None,
            requests: 0,
        }
    }

    /// Somebody asks for a token.
    pub fn ask(&mut self, now: Instant, want: Want<T>, who: W) -> Step<T, E, W> {
        if let Some(answer) = self.known(now, &want) {
            return Step::Answer(who, answer);
        }
        match &mut self.request {
            Some(request) if request.is_lost(now) => {
                request.waiting.push((want, who));
                Step::Start(self.restart())
            }
            Some(request) if want == Want::Fresh && request.started.is_some() => {
                self.queued.push((want, who));
                Step::Wait
            }
            Some(request) => {
                request.waiting.push((want, who));
                Step::Wait
            }
            None => Step::Start(self.open(vec![(want, who)])),
        }
    }

    /// The request of this number is sent now. False if it is no longer
    /// wanted.
    pub fn begin(&mut self, now: Instant, number: u32) -> bool {
        match &mut self.request {
            Some(request) if request.number == number => {
                request.started = Some(now);
                true
            }
            _ => false,
        }
    }

    /// The request of this number ended, with a token that lives so many
    /// milliseconds from now or with a failure. Calls `tell` for all who
    /// waited for it, and answers the number of the request to start next. A
    /// failure leaves a token that is still valid, and those who would take
    /// that one get it.
    pub fn end(
        &mut self,
        now: Instant,
        number: u32,
        outcome: Result<(T, f64), (Failure, E)>,
        tell: &mut dyn FnMut(W, Result<T, E>),
    ) -> Option<u32> {
        let mut request = self.request.take_if(|request| request.number == number)?;
        self.unanswered = None;
        let error = match outcome {
            Ok((token, life)) => {
                self.held = Some(Held { token, received: now, life });
                None
            }
            Err((failure, error)) => {
                match failure {
                    Failure::SessionExpired => {
                        self.held = None;
                        self.expired = Some(error.clone());
                        request.waiting.append(&mut self.queued);
                    }
                    Failure::NoAnswer => self.unanswered = Some((now, error.clone())),
                    Failure::Refused => {}
                }
                Some(error)
            }
        };
        for (want, who) in request.waiting {
            // A new token is used even if it already looks expired, as on a
            // device that slept while it came.
            let token = self.held.as_ref().filter(|held| error.is_none() || held.is_valid(now, &want));
            match (token, &error) {
                (Some(held), _) => tell(who, Ok(held.token.clone())),
                (None, Some(error)) => tell(who, Err(error.clone())),
                (None, None) => {}
            }
        }
        if self.queued.is_empty() {
            return None;
        }
        let waiting = core::mem::take(&mut self.queued);
        Some(self.open(waiting))
    }

    /// The page came back: it is visible again, online again, or restored from
    /// the back/forward cache, where another player may have signed in
    /// meanwhile. Answers the number of a request to start in place of one
    /// that was lost.
    pub fn wake(&mut self, now: Instant, restored: bool) -> Option<u32> {
        self.unanswered = None;
        if restored {
            self.held = None;
        }
        self.request.as_ref().is_some_and(|request| request.is_lost(now)).then(|| self.restart())
    }

    /// The player signed out: the token is no longer theirs to use.
    pub fn forget(&mut self) {
        self.held = None;
    }

    /// The answer that needs no request, if there is one.
    fn known(&self, now: Instant, want: &Want<T>) -> Option<Result<T, E>> {
        if let Some(error) = &self.expired {
            return Some(Err(error.clone()));
        }
        if let Some(held) = &self.held
            && held.suits(want)
            && held.left(now) > RESERVE.max(held.life / 10.0)
        {
            return Some(Ok(held.token.clone()));
        }
        match &self.unanswered {
            Some((when, error)) if now.since(*when) < SHARED_FAILURE && self.request.is_none() => {
                let held = self.held.as_ref().filter(|held| held.is_valid(now, want));
                Some(held.map(|held| held.token.clone()).ok_or_else(|| error.clone()))
            }
            _ => None,
        }
    }

    fn open(&mut self, waiting: Vec<(Want<T>, W)>) -> u32 {
        self.requests += 1;
        self.request = Some(Request { number: self.requests, started: None, waiting });
        self.requests
    }

    /// Gives the request up for lost and opens another for all who wait: it
    /// starts now, so it is fresh enough for everybody.
    fn restart(&mut self) -> u32 {
        let mut waiting = self.request.take().map_or_else(Vec::new, |request| request.waiting);
        waiting.append(&mut self.queued);
        self.open(waiting)
    }
}

impl<T: PartialEq> Held<T> {
    fn left(&self, now: Instant) -> f64 {
        self.life - now.since(self.received)
    }

    /// Whether it will do where no better one can be had.
    fn is_valid(&self, now: Instant, want: &Want<T>) -> bool {
        self.suits(want) && self.left(now) > 0.0
    }

    fn suits(&self, want: &Want<T>) -> bool {
        match want {
            Want::Any => true,
            Want::Fresh => false,
            Want::Other(refused) => self.token != *refused,
        }
    }
}

impl<T, W> Request<T, W> {
    fn is_lost(&self, now: Instant) -> bool {
        self.started.is_some_and(|started| now.since(started) > LOST)
    }
}
