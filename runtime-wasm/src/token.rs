//! When a token is requested, shared, kept and dropped.
//!
//! [`Tokens`] is a state machine without a browser. Its inputs are the callers, the time and how a
//! request ended; its outputs are which callers to answer and whether to start a request. `T` is a
//! token, `E` a failure, `W` a caller that waits for either.

/// Milliseconds of a token's life that are always kept in reserve.
const RESERVE: f64 = 60_000.0;
/// A request without a response counts as lost after this many milliseconds, at the next look: the
/// page was asleep.
const LOST: f64 = 30_000.0;
/// A time that a response names is not waited out if it is longer than this many milliseconds.
const LONGEST_WAIT: f64 = 30_000.0;
/// A player who comes back to the page after this many milliseconds may have signed in or out
/// elsewhere.
const NEW: f64 = 10_000.0;
/// For this many milliseconds a failure without a response is shared.
const SHARED_FAILURE: f64 = 1_000.0;

/// A moment on two clocks, in milliseconds: a monotonic one that may stand still while the device
/// sleeps, and a wall clock that goes on but may be set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Instant {
    /// The monotonic clock (`performance.now()`).
    pub monotonic: f64,
    /// The wall clock (`Date.now()`).
    pub wall: f64,
}

impl Instant {
    /// Milliseconds since `earlier`, by the clock that advanced more.
    fn since(self, earlier: Instant) -> f64 {
        (self.monotonic - earlier.monotonic).max(self.wall - earlier.wall)
    }
}

/// Which token the caller accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want<T> {
    /// Any token that is valid for a while.
    Any,
    /// A token that was requested after this call.
    Fresh,
    /// Any token but this one, which a backend refused.
    Other(T),
}

/// Why a request for a token failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failure {
    /// The account's session ended. Another request would make a new guest in its place, so this
    /// page makes none.
    SessionExpired,
    /// No response arrived.
    NoAnswer,
    /// Too many new players, or too many requests, at this moment: ask again after this many
    /// milliseconds, or not at all if it is 0.
    Busy(f64),
    /// The auth service refused for another reason.
    Refused,
}

impl Failure {
    /// What a response without a token means. `status` is 0 if none arrived, or if it claims to be a
    /// token and has none; `wait` is the time in milliseconds that it names, if it names one. Up to
    /// half as long again is added by `chance`, any byte, so that pages that were refused together do
    /// not come back together.
    #[must_use]
    pub fn of(status: u16, is_expired: bool, wait: f64, chance: u8) -> Self {
        match status {
            _ if is_expired => Self::SessionExpired,
            0 => Self::NoAnswer,
            // The edge limit on guest creation, or an overload. The problem document of a 429 names no
            // time here.
            429 | 503 if wait > 0.0 && wait <= LONGEST_WAIT => {
                Self::Busy(wait * (1.0 + f64::from(chance) / 512.0))
            }
            429 | 503 => Self::Busy(0.0),
            _ => Self::Refused,
        }
    }
}

/// What to do after [`Tokens::ask`].
#[derive(Debug, PartialEq, Eq)]
pub enum Step<T, E, W> {
    /// Answer this caller now.
    Answer(W, Result<T, E>),
    /// Nothing: a request is under way.
    Wait,
    /// Start the request of this number once all callers of this moment have joined: call
    /// [`Tokens::begin`] in a microtask.
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
    /// Since when the request waits, or has waited, to be repeated, and for how many milliseconds.
    pause: Option<(Instant, f64)>,
    waiting: Vec<(Want<T>, W)>,
}

/// The tokens of one page. They live in memory only.
pub struct Tokens<T, E, W> {
    held: Option<Held<T>>,
    request: Option<Request<T, W>>,
    /// Callers that want a token fresher than the request under way.
    queued: Vec<(Want<T>, W)>,
    expired: Option<E>,
    unanswered: Option<(Instant, E)>,
    requests: u32,
    newness: Newness,
}

/// Whether the page's player is a guest who has just begun. Such a guest counts as a player once the
/// browser has sent its cookie back, so one more token is requested before the first heartbeat, and
/// never a third: a browser without cookies would be another guest each time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Newness {
    /// No response has begun a guest yet.
    Unknown,
    /// The last response has.
    New,
    /// Another response came after that one.
    Settled,
}

impl<T: Clone + PartialEq, E: Clone, W> Default for Tokens<T, E, W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone + PartialEq, E: Clone, W> Tokens<T, E, W> {
    /// No token yet, no caller waiting.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            held: None,
            request: None,
            queued: Vec::new(),
            expired: None,
            unanswered: None,
            requests: 0,
            newness: Newness::Unknown,
        }
    }

    /// Which token a heartbeat is sent with.
    #[must_use]
    pub fn want_to_play(&self) -> Want<T> {
        if self.newness == Newness::New {
            Want::Fresh
        } else {
            Want::Any
        }
    }

    /// The request of this number brought a token; `is_new` if its response begins a guest. False if
    /// the page has no use for the token: it is the second new guest in a row, as in a browser without
    /// cookies, and the page stays the first one as long as it can. Then `tell` is called for all
    /// callers that waited.
    pub fn take(
        &mut self,
        now: Instant,
        is_new: bool,
        tell: &mut dyn FnMut(W, Result<T, E>),
    ) -> bool {
        let was_new = self.newness == Newness::New;
        if is_new && self.newness == Newness::Unknown {
            self.newness = Newness::New;
        } else if was_new {
            self.newness = Newness::Settled;
        }
        let Some(held) = self.held.as_ref().filter(|held| held.left(now) > 0.0) else {
            return true;
        };
        let request = self.request.take_if(|request| {
            let mut waiting = request.waiting.iter();
            is_new
                && was_new
                && self.queued.is_empty()
                && waiting.all(|(want, _)| *want == Want::Fresh)
        });
        let Some(request) = request else {
            return true;
        };
        for (_, who) in request.waiting {
            tell(who, Ok(held.token.clone()));
        }
        false
    }

    /// A caller asks for a token.
    pub fn ask(&mut self, now: Instant, want: Want<T>, who: W) -> Step<T, E, W> {
        if let Some(answer) = self.known(now, &want) {
            return Step::Answer(who, answer);
        }
        match &mut self.request {
            Some(request) if request.is_over(now) => {
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
            None => Step::Start(self.open(vec![(want, who)], None)),
        }
    }

    /// The request of this number is sent now. False if it is no longer wanted.
    pub fn begin(&mut self, now: Instant, number: u32) -> bool {
        match &mut self.request {
            Some(request) if request.number == number => {
                request.started = Some(now);
                true
            }
            _ => false,
        }
    }

    /// Whether anybody still wants the outcome of this request.
    #[must_use]
    pub fn is_wanted(&self, number: u32) -> bool {
        let current = self.request.as_ref();
        current.is_some_and(|request| request.number == number)
    }

    /// The request of this number ended, with a token that is valid for this many milliseconds from
    /// now, or with a failure. Calls `tell` for all callers that waited for it, and returns the
    /// number of the request to start next. A failure keeps a token that is still valid, and
    /// callers that accept that one get it.
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
                self.held = Some(Held {
                    token,
                    received: now,
                    life,
                });
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
                    // No caller waits that accepts the current token.
                    Failure::Busy(wait)
                        if wait > 0.0 && request.pause.is_none() && self.held(now).is_none() =>
                    {
                        request.pause = Some((now, wait));
                        request.started = None;
                        request.waiting.append(&mut self.queued);
                        self.request = Some(request);
                        return None;
                    }
                    Failure::Busy(_) | Failure::Refused => {}
                }
                Some(error)
            }
        };
        for (want, who) in request.waiting {
            // A new token is used even if it already looks expired, as on a device that slept while
            // it arrived.
            let token = self
                .held
                .as_ref()
                .filter(|held| error.is_none() || held.is_valid(now, &want));
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
        Some(self.open(waiting, None))
    }

    /// The page came back: it is visible again, online again, or restored from the back/forward
    /// cache, where another player may have signed in meanwhile. With `doubt` a token that is not
    /// new is checked now. Returns the number of a request to start, which may replace a lost one.
    pub fn wake(&mut self, now: Instant, restored: bool, doubt: bool) -> Option<u32> {
        self.unanswered = None;
        if restored {
            self.held = None;
        }
        let wanted = match (&self.request, &self.held) {
            (Some(request), _) => request.is_over(now) || restored && request.started.is_some(),
            (None, Some(held)) => doubt && now.since(held.received) >= NEW,
            (None, None) => false,
        };
        wanted.then(|| self.restart())
    }

    /// Time has passed. Returns the number of a request to start, if one has waited long enough to
    /// be repeated.
    pub fn go_on(&mut self, now: Instant) -> Option<u32> {
        self.request
            .as_ref()
            .is_some_and(|request| request.started.is_none() && request.is_over(now))
            .then(|| self.restart())
    }

    /// The player signed out: the token must not be used any more.
    pub fn forget(&mut self) {
        self.held = None;
    }

    /// The current token, if it has not expired.
    #[must_use]
    pub fn held(&self, now: Instant) -> Option<&T> {
        self.held
            .as_ref()
            .filter(|held| held.left(now) > 0.0)
            .map(|held| &held.token)
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
                Some(
                    held.map(|held| held.token.clone())
                        .ok_or_else(|| error.clone()),
                )
            }
            _ => None,
        }
    }

    fn open(&mut self, waiting: Vec<(Want<T>, W)>, pause: Option<(Instant, f64)>) -> u32 {
        self.requests += 1;
        self.request = Some(Request {
            number: self.requests,
            started: None,
            pause,
            waiting,
        });
        self.requests
    }

    /// Treats the current request, if any, as lost and opens another for all that wait: it starts
    /// now, so it is fresh enough for every caller.
    fn restart(&mut self) -> u32 {
        let (mut waiting, pause) = self
            .request
            .take()
            .map_or_else(Default::default, |request| (request.waiting, request.pause));
        waiting.append(&mut self.queued);
        self.open(waiting, pause)
    }
}

impl<T: PartialEq> Held<T> {
    fn left(&self, now: Instant) -> f64 {
        self.life - now.since(self.received)
    }

    /// Whether the token is acceptable if no better one can be had.
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
    /// Whether the request was lost, or has waited long enough to be repeated.
    fn is_over(&self, now: Instant) -> bool {
        match (self.started, self.pause) {
            (Some(started), _) => now.since(started) > LOST,
            (None, Some((paused, wait))) => now.since(paused) >= wait,
            (None, None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Machine = Tokens<&'static str, &'static str, u32>;

    const LIFE: f64 = 900_000.0;

    /// The moment this many seconds after the page was opened, on both clocks.
    fn at(seconds: f64) -> Instant {
        Instant {
            monotonic: seconds * 1_000.0,
            wall: 1.7e12 + seconds * 1_000.0,
        }
    }

    fn start(step: Step<&'static str, &'static str, u32>) -> u32 {
        match step {
            Step::Start(number) => number,
            other => panic!("no request was started: {other:?}"),
        }
    }

    /// Ends a request; returns what each caller was told, and the next request.
    #[expect(clippy::type_complexity, reason = "it is what the machine says")]
    fn end(
        tokens: &mut Machine,
        now: Instant,
        number: u32,
        outcome: Result<(&'static str, f64), (Failure, &'static str)>,
    ) -> (Vec<(u32, Result<&'static str, &'static str>)>, Option<u32>) {
        let mut told = Vec::new();
        let next = tokens.end(now, number, outcome, &mut |who, answer| {
            told.push((who, answer));
        });
        (told, next)
    }

    /// A machine that holds `token`, received after this many seconds.
    fn holding(token: &'static str, seconds: f64) -> Machine {
        let mut tokens = Machine::new();
        let number = start(tokens.ask(at(seconds), Want::Any, 0));
        assert!(tokens.begin(at(seconds), number));
        end(&mut tokens, at(seconds), number, Ok((token, LIFE)));
        tokens
    }

    #[test]
    fn callers_of_one_moment_share_one_request() {
        let mut tokens = Machine::new();
        let number = start(tokens.ask(at(0.0), Want::Any, 1));
        assert_eq!(tokens.ask(at(0.0), Want::Any, 2), Step::Wait);
        assert!(tokens.begin(at(0.0), number));
        assert_eq!(tokens.ask(at(0.1), Want::Any, 3), Step::Wait);
        let (told, next) = end(&mut tokens, at(0.2), number, Ok(("a", LIFE)));
        assert_eq!(told, [(1, Ok("a")), (2, Ok("a")), (3, Ok("a"))]);
        assert_eq!(next, None);
        assert_eq!(tokens.ask(at(0.3), Want::Any, 4), Step::Answer(4, Ok("a")));
    }

    #[test]
    fn a_forced_caller_queues_behind_the_request_under_way() {
        let mut tokens = Machine::new();
        let first = start(tokens.ask(at(0.0), Want::Any, 1));
        assert!(tokens.begin(at(0.0), first));
        assert_eq!(tokens.ask(at(0.1), Want::Fresh, 2), Step::Wait);
        assert_eq!(tokens.ask(at(0.1), Want::Fresh, 3), Step::Wait);
        let (told, next) = end(&mut tokens, at(0.2), first, Ok(("old", LIFE)));
        assert_eq!(told, [(1, Ok("old"))]);
        let second = next.expect("the forced callers get a request of their own");
        assert!(tokens.begin(at(0.2), second));
        let (told, next) = end(&mut tokens, at(0.3), second, Ok(("new", LIFE)));
        assert_eq!(told, [(2, Ok("new")), (3, Ok("new"))]);
        assert_eq!(next, None);
    }

    #[test]
    fn forced_callers_of_one_moment_share_a_request() {
        let mut tokens = holding("a", 0.0);
        let number = start(tokens.ask(at(1.0), Want::Fresh, 1));
        assert_eq!(tokens.ask(at(1.0), Want::Fresh, 2), Step::Wait);
        assert_eq!(tokens.ask(at(1.0), Want::Any, 3), Step::Answer(3, Ok("a")));
        assert!(tokens.begin(at(1.0), number));
        let (told, next) = end(&mut tokens, at(1.1), number, Ok(("b", LIFE)));
        assert_eq!(told, [(1, Ok("b")), (2, Ok("b"))]);
        assert_eq!(next, None);
    }

    #[test]
    fn a_refused_token_is_replaced_once_for_all_who_were_refused() {
        let mut tokens = holding("a", 0.0);
        let number = start(tokens.ask(at(1.0), Want::Other("a"), 1));
        assert!(tokens.begin(at(1.0), number));
        assert_eq!(tokens.ask(at(1.1), Want::Other("a"), 2), Step::Wait);
        let (told, _) = end(&mut tokens, at(1.2), number, Ok(("b", LIFE)));
        assert_eq!(told, [(1, Ok("b")), (2, Ok("b"))]);
        assert_eq!(
            tokens.ask(at(1.3), Want::Other("a"), 3),
            Step::Answer(3, Ok("b"))
        );
    }

    #[test]
    fn a_token_is_renewed_when_a_minute_or_a_tenth_of_its_life_is_left() {
        for (life, renewed_after) in [(900.0, 810.0), (300.0, 240.0), (7_200.0, 6_480.0)] {
            let mut tokens = Machine::new();
            let number = start(tokens.ask(at(0.0), Want::Any, 0));
            assert!(tokens.begin(at(0.0), number));
            end(&mut tokens, at(0.0), number, Ok(("a", life * 1_000.0)));
            let before = tokens.ask(at(renewed_after - 0.1), Want::Any, 1);
            assert_eq!(before, Step::Answer(1, Ok("a")), "life {life}");
            start(tokens.ask(at(renewed_after), Want::Any, 2));
        }
    }

    #[test]
    fn the_clock_that_moved_more_counts() {
        let slept = Instant {
            monotonic: 1_000.0,
            wall: at(850.0).wall,
        };
        start(holding("a", 0.0).ask(slept, Want::Any, 1));
        let set_back = Instant {
            monotonic: at(850.0).monotonic,
            wall: 0.0,
        };
        start(holding("a", 0.0).ask(set_back, Want::Any, 1));
        let set_back_early = Instant {
            monotonic: at(10.0).monotonic,
            wall: 0.0,
        };
        let step = holding("a", 0.0).ask(set_back_early, Want::Any, 1);
        assert_eq!(step, Step::Answer(1, Ok("a")));
    }

    #[test]
    fn a_failed_refresh_leaves_the_token_that_is_still_valid() {
        let mut tokens = holding("a", 0.0);
        let number = start(tokens.ask(at(850.0), Want::Any, 1));
        assert!(tokens.begin(at(850.0), number));
        assert_eq!(tokens.ask(at(850.0), Want::Other("a"), 2), Step::Wait);
        let (told, _) = end(
            &mut tokens,
            at(851.0),
            number,
            Err((Failure::Refused, "429")),
        );
        assert_eq!(told, [(1, Ok("a")), (2, Err("429"))]);
        let number = start(tokens.ask(at(901.0), Want::Any, 3));
        assert!(tokens.begin(at(901.0), number));
        let (told, _) = end(
            &mut tokens,
            at(901.1),
            number,
            Err((Failure::Refused, "429")),
        );
        assert_eq!(told, [(3, Err("429"))]);
    }

    #[test]
    fn a_failure_without_an_answer_is_shared_for_a_second() {
        let mut tokens = Machine::new();
        let number = start(tokens.ask(at(0.0), Want::Any, 1));
        assert!(tokens.begin(at(0.0), number));
        end(
            &mut tokens,
            at(5.0),
            number,
            Err((Failure::NoAnswer, "offline")),
        );
        assert_eq!(
            tokens.ask(at(5.9), Want::Any, 2),
            Step::Answer(2, Err("offline"))
        );
        assert_eq!(
            tokens.ask(at(5.9), Want::Fresh, 3),
            Step::Answer(3, Err("offline"))
        );
        start(tokens.ask(at(6.0), Want::Any, 4));
    }

    #[test]
    fn coming_online_ends_the_shared_failure() {
        let mut tokens = Machine::new();
        let number = start(tokens.ask(at(0.0), Want::Any, 1));
        assert!(tokens.begin(at(0.0), number));
        end(
            &mut tokens,
            at(5.0),
            number,
            Err((Failure::NoAnswer, "offline")),
        );
        assert_eq!(tokens.wake(at(5.1), false, false), None);
        start(tokens.ask(at(5.2), Want::Any, 2));
    }

    #[test]
    fn after_session_expired_nobody_asks_again() {
        let mut tokens = holding("a", 0.0);
        let number = start(tokens.ask(at(1.0), Want::Fresh, 1));
        assert!(tokens.begin(at(1.0), number));
        assert_eq!(tokens.ask(at(1.1), Want::Fresh, 2), Step::Wait);
        let outcome = Err((Failure::SessionExpired, "expired"));
        let (told, next) = end(&mut tokens, at(1.2), number, outcome);
        assert_eq!(told, [(1, Err("expired")), (2, Err("expired"))]);
        assert_eq!(next, None);
        assert_eq!(tokens.wake(at(99.0), true, false), None);
        for want in [Want::Any, Want::Fresh, Want::Other("a")] {
            assert_eq!(
                tokens.ask(at(9_999.0), want, 3),
                Step::Answer(3, Err("expired"))
            );
        }
    }

    #[test]
    fn a_request_that_was_lost_in_sleep_is_made_again_for_all_who_wait() {
        let mut tokens = Machine::new();
        let lost = start(tokens.ask(at(0.0), Want::Any, 1));
        assert!(tokens.begin(at(0.0), lost));
        assert_eq!(tokens.ask(at(0.1), Want::Fresh, 2), Step::Wait);
        assert_eq!(tokens.wake(at(29.0), false, false), None);
        let again = tokens
            .wake(at(31.0), false, false)
            .expect("another request");
        assert!(tokens.begin(at(31.0), again));
        assert!(!tokens.is_wanted(lost) && tokens.is_wanted(again));
        let (told, _) = end(&mut tokens, at(31.1), lost, Ok(("late", LIFE)));
        assert_eq!(told, [], "nobody waits for the lost request any more");
        let (told, next) = end(&mut tokens, at(31.2), again, Ok(("a", LIFE)));
        assert_eq!(told, [(1, Ok("a")), (2, Ok("a"))]);
        assert_eq!(next, None);
    }

    #[test]
    fn a_caller_finds_a_lost_request_without_any_event() {
        let mut tokens = Machine::new();
        let lost = start(tokens.ask(at(0.0), Want::Any, 1));
        assert!(tokens.begin(at(0.0), lost));
        let again = start(tokens.ask(at(31.0), Want::Any, 2));
        assert!(
            !tokens.begin(at(31.0), lost),
            "the lost request is not sent any more"
        );
        assert!(tokens.begin(at(31.0), again));
        let (told, _) = end(&mut tokens, at(31.1), again, Ok(("a", LIFE)));
        assert_eq!(told, [(1, Ok("a")), (2, Ok("a"))]);
    }

    #[test]
    fn a_page_restored_from_the_cache_looks_at_the_identity_again() {
        let mut tokens = holding("a", 0.0);
        assert_eq!(tokens.wake(at(1.0), false, false), None);
        assert_eq!(tokens.ask(at(1.0), Want::Any, 1), Step::Answer(1, Ok("a")));
        assert_eq!(tokens.wake(at(2.0), true, false), None);
        let before = start(tokens.ask(at(2.0), Want::Any, 2));
        assert!(tokens.begin(at(2.0), before));
        let after = tokens
            .wake(at(3.0), true, false)
            .expect("a request under way is made again, too");
        assert!(tokens.begin(at(3.0), after));
        let (told, _) = end(&mut tokens, at(3.1), after, Ok(("b", LIFE)));
        assert_eq!(told, [(2, Ok("b"))]);
    }

    #[test]
    fn a_new_token_that_already_looks_expired_is_used_anyway() {
        let mut tokens = Machine::new();
        let number = start(tokens.ask(at(0.0), Want::Any, 1));
        assert!(tokens.begin(at(0.0), number));
        let (told, _) = end(&mut tokens, at(0.1), number, Ok(("a", -5.0)));
        assert_eq!(told, [(1, Ok("a"))]);
    }

    /// Which callers got what.
    type Told = Vec<(u32, Result<&'static str, &'static str>)>;

    /// A machine whose one request, of caller 1, was told after this many seconds to try again
    /// later.
    fn busy(seconds: f64, wait: f64) -> (Machine, Told) {
        busy_by_chance(seconds, wait, 0)
    }

    fn busy_by_chance(seconds: f64, wait: f64, chance: u8) -> (Machine, Told) {
        let mut tokens = Machine::new();
        let number = start(tokens.ask(at(seconds), Want::Any, 1));
        assert!(tokens.begin(at(seconds), number));
        let outcome = Err((Failure::of(429, false, wait, chance), "429"));
        let (told, next) = end(&mut tokens, at(seconds), number, outcome);
        assert_eq!(next, None);
        (tokens, told)
    }

    #[test]
    fn a_busy_auth_service_is_asked_again_once_after_the_time_that_it_named() {
        let (mut tokens, told) = busy(1.0, 7_000.0);
        assert_eq!(told, [], "who asked waits");
        assert_eq!(tokens.ask(at(2.0), Want::Any, 2), Step::Wait);
        assert_eq!(tokens.ask(at(2.0), Want::Fresh, 3), Step::Wait);
        assert_eq!(tokens.go_on(at(7.9)), None);
        let again = tokens.go_on(at(8.0)).expect("it has waited long enough");
        assert!(tokens.begin(at(8.0), again));
        assert_eq!(tokens.go_on(at(9.0)), None, "it is on its way");
        let (told, next) = end(&mut tokens, at(9.0), again, Ok(("a", LIFE)));
        assert_eq!(told, [(1, Ok("a")), (2, Ok("a")), (3, Ok("a"))]);
        assert_eq!((next, tokens.go_on(at(99.0))), (None, None));
    }

    #[test]
    fn an_auth_service_that_is_busy_twice_is_not_asked_a_third_time() {
        let (mut tokens, _) = busy(0.0, 2_000.0);
        let again = tokens.go_on(at(2.0)).expect("it has waited long enough");
        assert!(tokens.begin(at(2.0), again));
        let outcome = Err((Failure::Busy(2_000.0), "429"));
        let (told, next) = end(&mut tokens, at(2.1), again, outcome);
        assert_eq!(told, [(1, Err("429"))]);
        assert_eq!((next, tokens.go_on(at(99.0))), (None, None));
        let later = start(tokens.ask(at(100.0), Want::Any, 2));
        assert!(tokens.begin(at(100.0), later));
        let outcome = Err((Failure::Busy(2_000.0), "429"));
        let (told, _) = end(&mut tokens, at(100.0), later, outcome);
        assert_eq!(told, [], "another request is another matter");
    }

    #[test]
    fn pages_that_were_refused_together_come_back_at_times_that_differ() {
        for (chance, seconds) in [(0, 30.0), (128, 37.5), (255, 44.95)] {
            let (mut tokens, told) = busy_by_chance(0.0, 30_000.0, chance);
            assert_eq!(told, [], "who asked waits");
            assert_eq!(tokens.go_on(at(seconds - 0.1)), None, "{chance}");
            assert!(tokens.go_on(at(seconds)).is_some(), "{chance}");
        }
    }

    #[test]
    fn who_asks_after_the_pause_needs_no_timer() {
        let (mut tokens, _) = busy(0.0, 30_000.0);
        let again = start(tokens.ask(at(30.0), Want::Any, 2));
        assert!(tokens.begin(at(30.0), again));
        let (told, _) = end(&mut tokens, at(30.1), again, Ok(("a", LIFE)));
        assert_eq!(told, [(1, Ok("a")), (2, Ok("a"))]);
    }

    #[test]
    fn a_busy_auth_service_that_names_no_time_or_too_long_a_one_is_not_waited_for() {
        for wait in [f64::NAN, 0.0, -1.0, 30_001.0, f64::INFINITY] {
            let (mut tokens, told) = busy(0.0, wait);
            assert_eq!(told, [(1, Err("429"))], "{wait}");
            assert_eq!(tokens.go_on(at(99.0)), None);
        }
    }

    #[test]
    fn who_has_a_token_that_will_do_does_not_wait_for_a_busy_auth_service() {
        let mut tokens = holding("a", 0.0);
        let number = start(tokens.ask(at(850.0), Want::Any, 1));
        assert!(tokens.begin(at(850.0), number));
        let outcome = Err((Failure::Busy(5_000.0), "429"));
        let (told, _) = end(&mut tokens, at(850.1), number, outcome);
        assert_eq!(told, [(1, Ok("a"))]);
    }

    #[test]
    fn whoever_comes_back_is_looked_at_again_beside_the_token_in_hand() {
        let mut tokens = holding("a", 0.0);
        assert_eq!(tokens.wake(at(9.9), false, true), None, "it is new");
        assert_eq!(tokens.wake(at(60.0), false, false), None);
        let look = tokens.wake(at(60.0), false, true).expect("a request");
        assert_eq!(tokens.ask(at(60.0), Want::Any, 1), Step::Answer(1, Ok("a")));
        assert!(tokens.begin(at(60.0), look));
        assert_eq!(tokens.wake(at(61.0), false, true), None, "it is under way");
        end(&mut tokens, at(61.0), look, Ok(("b", LIFE)));
        assert_eq!(tokens.ask(at(61.0), Want::Any, 2), Step::Answer(2, Ok("b")));
        let nobody = Machine::new().wake(at(60.0), false, true);
        assert_eq!(nobody, None, "nobody has asked on this page yet");
    }

    #[test]
    fn a_look_that_fails_leaves_the_token_in_hand() {
        let mut tokens = holding("a", 0.0);
        let look = tokens.wake(at(60.0), false, true).expect("a request");
        assert!(tokens.begin(at(60.0), look));
        let outcome = Err((Failure::NoAnswer, "offline"));
        assert_eq!(end(&mut tokens, at(61.0), look, outcome), (vec![], None));
        assert_eq!(tokens.ask(at(61.0), Want::Any, 1), Step::Answer(1, Ok("a")));
    }

    #[test]
    fn a_response_without_a_token_means_what_its_status_says() {
        for (status, is_expired, failure) in [
            (401, true, Failure::SessionExpired),
            (401, false, Failure::Refused),
            (0, false, Failure::NoAnswer),
            (429, false, Failure::Busy(7.0)),
            (403, false, Failure::Refused),
            (500, false, Failure::Refused),
            (503, false, Failure::Busy(7.0)),
        ] {
            assert_eq!(Failure::of(status, is_expired, 7.0, 0), failure, "{status}");
        }
    }

    #[test]
    fn the_page_knows_an_ended_session_by_the_name_that_the_platform_gives_it() {
        let slug = platform_protocol::problem::ProblemCode::SessionExpired.as_str();
        let page = include_str!("web/page.js");
        assert!(page.contains(&format!("hasType(error, \"{slug}\")")));
    }

    /// Lets a request end with a token of a guest who is new, or not. Returns what callers were told.
    fn brings(
        tokens: &mut Machine,
        seconds: f64,
        number: u32,
        (token, is_new): (&'static str, bool),
    ) -> Told {
        assert!(tokens.begin(at(seconds), number));
        let mut told = Told::new();
        let is_used = tokens.take(at(seconds), is_new, &mut |who, answer| {
            told.push((who, answer));
        });
        if is_used {
            told = end(tokens, at(seconds), number, Ok((token, LIFE))).0;
        }
        told
    }

    #[test]
    fn a_new_guest_asks_once_more_before_its_first_heartbeat() {
        let mut tokens = Machine::new();
        assert_eq!(tokens.want_to_play(), Want::Any);
        let first = start(tokens.ask(at(0.0), Want::Any, 1));
        brings(&mut tokens, 0.0, first, ("a", true));
        assert_eq!(tokens.ask(at(4.0), Want::Any, 2), Step::Answer(2, Ok("a")));
        assert_eq!(tokens.want_to_play(), Want::Fresh);
        let again = start(tokens.ask(at(5.0), tokens.want_to_play(), 3));
        assert!(tokens.begin(at(5.0), again));
        let outcome = Err((Failure::NoAnswer, "offline"));
        end(&mut tokens, at(5.0), again, outcome);
        assert_eq!(
            tokens.want_to_play(),
            Want::Fresh,
            "it is still to be asked"
        );
        let again = start(tokens.ask(at(35.0), tokens.want_to_play(), 4));
        let told = brings(&mut tokens, 35.0, again, ("b", false));
        assert_eq!(told, [(4, Ok("b"))]);
        assert_eq!(tokens.want_to_play(), Want::Any);
    }

    #[test]
    fn a_player_who_comes_back_asks_once() {
        let mut tokens = Machine::new();
        let first = start(tokens.ask(at(0.0), Want::Any, 1));
        brings(&mut tokens, 0.0, first, ("a", false));
        assert_eq!(tokens.want_to_play(), Want::Any);
    }

    #[test]
    fn a_browser_without_cookies_asks_once_more_and_stays_the_first_guest() {
        let mut tokens = Machine::new();
        let first = start(tokens.ask(at(0.0), Want::Any, 1));
        brings(&mut tokens, 0.0, first, ("a", true));
        let again = start(tokens.ask(at(5.0), tokens.want_to_play(), 2));
        let told = brings(&mut tokens, 5.0, again, ("b", true));
        assert_eq!(told, [(2, Ok("a"))]);
        assert_eq!(tokens.want_to_play(), Want::Any, "never a third time");
        // A token that a backend refused is still replaced.
        let other = start(tokens.ask(at(6.0), Want::Other("a"), 3));
        let told = brings(&mut tokens, 6.0, other, ("c", true));
        assert_eq!(told, [(3, Ok("c"))]);
    }

    #[test]
    fn signing_out_forgets_the_token() {
        let mut tokens = holding("a", 0.0);
        tokens.forget();
        start(tokens.ask(at(1.0), Want::Any, 1));
    }
}
