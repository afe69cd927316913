//! Load on nodes: at a steady rate, which does not wait for responses, or as much as they carry.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_protocol::heartbeat::Heartbeat;
use platform_protocol::paths;
use reqwest::{Method, StatusCode};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use uuid::Uuid;

use crate::person::{GAME, Person};
use crate::platform::Site;
use crate::poll;
use crate::visitor::{Minted, NotMinted, Visitor};

/// What is wrong, if something is.
pub type Outcome = Result<(), String>;

/// A request that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// When it began, since the load began.
    pub began: Duration,
    /// How long it took.
    pub took: Duration,
    /// What happened, for people.
    pub what: String,
}

/// What the load has seen so far.
#[derive(Debug, Default)]
pub struct Seen {
    /// The guests whose cookie was acknowledged.
    guests: Mutex<Vec<Minted>>,
    failures: Mutex<Vec<Failure>>,
    /// Acknowledged cookies that became another player.
    strangers: AtomicUsize,
    passed: AtomicUsize,
    /// When each request began, since the load began, and how long it took.
    times: Mutex<Vec<(Duration, Duration)>>,
    stopped: AtomicBool,
}

impl Seen {
    /// Returns the guests whose cookie was acknowledged so far.
    #[must_use]
    pub fn guests(&self) -> Vec<Minted> {
        lock(&self.guests).clone()
    }

    /// Adds a guest whose cookie was acknowledged.
    pub fn add(&self, guest: Minted) {
        lock(&self.guests).push(guest);
    }

    /// Returns one of them, another one for each number; `None` if there is none yet.
    #[must_use]
    pub fn guest(&self, number: usize) -> Option<Minted> {
        let guests = lock(&self.guests);
        let place = (number * 7_919).checked_rem(guests.len())?;
        guests.get(place).cloned()
    }

    /// Returns the requests that failed so far.
    #[must_use]
    pub fn failures(&self) -> Vec<Failure> {
        lock(&self.failures).clone()
    }

    /// Returns how many requests passed so far.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.passed.load(Ordering::SeqCst)
    }

    /// Returns how many acknowledged cookies became another player. A guest that was lost and added
    /// again from its cookie is not among them: only the database knows.
    #[must_use]
    pub fn strangers(&self) -> usize {
        self.strangers.load(Ordering::SeqCst)
    }

    /// Waits until so many more requests have passed.
    ///
    /// # Panics
    /// Panics if they take too long.
    pub async fn until_more_passed(&self, more: usize) {
        let wanted = self.passed() + more;
        poll::until("the load to pass", async || {
            (self.passed() >= wanted).then_some(())
        })
        .await;
    }

    /// Returns the longest time that any request took.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.percentile(100, Duration::ZERO)
    }

    /// Returns the time that so many of a hundred requests did not exceed, of those that began at
    /// `from` or later, since the load began.
    #[must_use]
    pub fn percentile(&self, percent: usize, from: Duration) -> Duration {
        let times = lock(&self.times);
        let of_these = times.iter().filter(|(began, _)| *began >= from);
        let mut times: Vec<_> = of_these.map(|(_, took)| *took).collect();
        times.sort_unstable();
        let place = (times.len() * percent).div_ceil(100).saturating_sub(1);
        times.get(place).copied().unwrap_or_default()
    }

    /// Waits for a request, and records how it went.
    async fn record(&self, began: Duration, request: impl Future<Output = Outcome>) {
        let start = Instant::now();
        let outcome = request.await;
        let took = start.elapsed();
        lock(&self.times).push((began, took));
        match outcome {
            Ok(()) => {
                self.passed.fetch_add(1, Ordering::SeqCst);
            }
            Err(what) => lock(&self.failures).push(Failure { began, took, what }),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Load, until it is ended.
#[derive(Debug)]
pub struct Load {
    /// What it has seen.
    pub seen: Arc<Seen>,
    /// When it began.
    pub began: Instant,
    task: JoinHandle<()>,
}

impl Load {
    /// Mints tokens `rate` times a second: every second time for a new guest, otherwise with a
    /// cookie that was acknowledged.
    #[must_use]
    pub fn of_guests(visitor: &Visitor, rate: u32) -> Self {
        let visitor = visitor.clone();
        Self::steady(rate, move |seen, number| {
            mint(visitor.clone(), seen, number)
        })
    }

    /// Gets the path on the address `label` `rate` times a second.
    #[must_use]
    pub fn of_gets(visitor: &Visitor, label: &'static str, path: &'static str, rate: u32) -> Self {
        let visitor = visitor.clone();
        Self::steady(rate, move |_, _| get(visitor.clone(), label, path))
    }

    /// Sends a heartbeat `rate` times a second: of one page of each of these players in turn.
    #[must_use]
    pub fn of_heartbeats(visitor: &Visitor, players: Vec<Minted>, rate: u32) -> Self {
        let visitor = visitor.clone();
        Self::steady(rate, move |_, number| {
            let (player, visitor) = (players[number % players.len()].clone(), visitor.clone());
            async move { heartbeat(&visitor, &player).await }
        })
    }

    /// Starts a sign-in of somebody new `rate` times a second, at one of these sites.
    #[must_use]
    pub fn of_sign_ins(sites: Vec<Site>, rate: u32) -> Self {
        Self::steady(rate, move |_, number| {
            sign_in(sites[number % sites.len()].clone())
        })
    }

    /// Mints tokens like [`Load::of_guests`], so many at once and without a pause.
    #[must_use]
    pub fn of_guests_at_once(visitor: &Visitor, at_once: usize) -> Self {
        let visitor = visitor.clone();
        Self::at_once(at_once, move |seen, number| {
            mint(visitor.clone(), seen, number)
        })
    }

    /// Mints tokens, sends heartbeats with tokens that were minted before, and gets the game's page,
    /// so many at once and without a pause.
    #[must_use]
    pub fn of_players_at_once(visitor: &Visitor, at_once: usize) -> Self {
        let visitor = visitor.clone();
        Self::at_once(at_once, move |seen, number| {
            let visitor = visitor.clone();
            async move {
                match (number % 4, seen.guest(number)) {
                    (2, Some(guest)) => heartbeat(&visitor, &guest).await,
                    (3, _) => get(visitor, GAME, "/").await,
                    _ => mint(visitor, seen, number).await,
                }
            }
        })
    }

    /// Sends requests `rate` times a second. `one` makes the request with this number.
    #[must_use]
    pub fn steady<F>(rate: u32, one: impl Fn(Arc<Seen>, usize) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        Self::start(async move |seen: Arc<Seen>, start: Instant| {
            let mut ticks = tokio::time::interval(Duration::from_secs(1) / rate);
            let mut requests = JoinSet::new();
            let mut number = 0;
            while !seen.stopped.load(Ordering::SeqCst) {
                ticks.tick().await;
                let (request, began) = (one(Arc::clone(&seen), number), start.elapsed());
                let seen = Arc::clone(&seen);
                requests.spawn(async move { seen.record(began, request).await });
                number += 1;
                while requests.try_join_next().is_some() {}
            }
            requests.join_all().await;
        })
    }

    /// Sends so many requests at once, each as soon as the one before has ended.
    #[must_use]
    pub fn at_once<F>(
        at_once: usize,
        one: impl Fn(Arc<Seen>, usize) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let one = Arc::new(one);
        Self::start(async move |seen: Arc<Seen>, start: Instant| {
            let mut workers = JoinSet::new();
            for worker in 0..at_once {
                let (seen, one) = (Arc::clone(&seen), Arc::clone(&one));
                workers.spawn(async move {
                    for number in (worker..).step_by(at_once) {
                        if seen.stopped.load(Ordering::SeqCst) {
                            break;
                        }
                        let request = one(Arc::clone(&seen), number);
                        seen.record(start.elapsed(), request).await;
                    }
                });
            }
            workers.join_all().await;
        })
    }

    fn start<F>(run: impl FnOnce(Arc<Seen>, Instant) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (seen, began) = (Arc::new(Seen::default()), Instant::now());
        let task = tokio::spawn(run(Arc::clone(&seen), began));
        Self { seen, began, task }
    }

    /// Ends it, and waits for the responses that are outstanding.
    ///
    /// # Panics
    /// Panics if a request did.
    pub async fn end(self) -> Arc<Seen> {
        self.seen.stopped.store(true, Ordering::SeqCst);
        self.task.await.expect("the load does not panic");
        self.seen
    }
}

async fn mint(visitor: Visitor, seen: Arc<Seen>, number: usize) -> Outcome {
    let known = if number % 2 == 1 {
        seen.guest(number / 2)
    } else {
        None
    };
    let cookie = known.as_ref().map(|known| &*known.cookie);
    let minted = visitor.mint(GAME, cookie).await.map_err(told)?;
    match known {
        None => seen.add(minted),
        Some(known) if known.claims.sub == minted.claims.sub => {}
        Some(_) => {
            seen.strangers.fetch_add(1, Ordering::SeqCst);
        }
    }
    Ok(())
}

/// Says for people why there is no token.
#[must_use]
pub fn told(error: NotMinted) -> String {
    match error {
        NotMinted::Lost(error) => lost(&error),
        NotMinted::Refused { status, body } => format!("{status}: {body}"),
    }
}

fn lost(error: &reqwest::Error) -> String {
    format!("lost: {error:?}")
}

async fn get(visitor: Visitor, label: &'static str, path: &'static str) -> Outcome {
    let answer = visitor.request(Method::GET, label, path).send().await;
    let answer = answer.map_err(|error| lost(&error))?;
    let status = answer.status();
    // The connection is used again after the whole response.
    answer.bytes().await.map_err(|error| lost(&error))?;
    is_right(status, status.is_success())
}

/// Sends a heartbeat of the one page that this player has open.
///
/// # Errors
/// The token was rejected, or the response lost.
pub async fn heartbeat(visitor: &Visitor, player: &Minted) -> Outcome {
    // A page's id has as many bytes as a player's.
    let page: Uuid = player.claims.sub.parse().map_err(|_| "no player's id")?;
    let page = URL_SAFE_NO_PAD.encode(page);
    let leaving = None;
    let request = visitor
        .request(Method::POST, GAME, paths::HEARTBEAT)
        .bearer_auth(&player.token)
        .json(&Heartbeat { page, leaving });
    let answer = request.send().await.map_err(|error| lost(&error))?;
    is_right(answer.status(), answer.status() == StatusCode::NO_CONTENT)
}

fn is_right(status: StatusCode, right: bool) -> Outcome {
    if right {
        Ok(())
    } else {
        Err(status.to_string())
    }
}

async fn sign_in(site: Site) -> Outcome {
    // A step that fails panics.
    let signed_in = tokio::spawn(async move {
        let mut person = Person::new(&site);
        let game = person.game();
        person.begin("demo", &game).await;
    });
    signed_in.await.map_err(|error| error.to_string())
}
