//! The crowd: every player's next action has a time, which no response delays.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::Instant;
use uuid::Uuid;

use super::Plan;
use super::browser::{Browser, News, Visit};
use super::truth::Truth;

/// How often players who play now are counted.
const SAMPLE: Duration = Duration::from_secs(5);
/// So many of those who leave do so without a word, and so many of those who arrive were here
/// before.
const HALF: f64 = 0.5;

/// What a player does next, in the order in which it is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Arrive,
    Beat,
    Refresh,
    Log,
    /// Somebody leaves, and somebody else arrives.
    Change,
    /// Somebody loads the page again.
    Reload,
    Sample,
}

/// An action, when it is due, and the visit to which it belongs.
type Due = Reverse<(Instant, Act, usize, u32)>;

/// One of the places in the crowd, and who has it.
#[derive(Debug, Default)]
struct Place {
    game: usize,
    cookie: Option<String>,
    knows_runtime: bool,
    /// The number of the visit; actions of an earlier one are left out.
    visit: u32,
    page: String,
    /// The token and its player, once there is one.
    token: Option<(Arc<str>, Uuid)>,
    /// Heartbeats that have no response yet.
    beats: u32,
}

/// A page that is open, for requests beside those of its player.
#[derive(Clone, Debug)]
pub(super) struct OpenPage {
    /// No visit of the crowd, so that the crowd does not take the responses for its own.
    pub(super) visit: Visit,
    pub(super) token: Arc<str>,
    pub(super) sub: Uuid,
    pub(super) cookie: String,
}

/// Returns the texts of log records.
pub(super) fn texts(number: usize, count: usize) -> Vec<String> {
    let texts =
        (0..count).map(|line| format!("the player picked up coin {number} of level {line}"));
    texts.collect()
}

/// Somebody who has left.
#[derive(Debug)]
struct Gone {
    game: usize,
    cookie: String,
}

/// The crowd.
#[derive(Debug)]
pub(super) struct Crowd {
    plan: Plan,
    browser: Arc<Browser>,
    places: Vec<Place>,
    gone: VecDeque<Gone>,
    due: BinaryHeap<Due>,
    random: fastrand::Rng,
    news: UnboundedSender<News>,
    heard: UnboundedReceiver<News>,
    requests: JoinSet<()>,
    began: Instant,
    /// What it knows.
    pub(super) truth: Truth,
}

impl Crowd {
    /// Gathers a crowd that begins to arrive at `began`.
    pub(super) fn new(plan: &Plan, browser: Arc<Browser>, began: Instant) -> Self {
        let (news, heard) = unbounded_channel();
        let mut random = fastrand::Rng::with_seed(plan.seed);
        let mut due = BinaryHeap::new();
        for player in 0..plan.players {
            let at = began + plan.arriving.mul_f64(player as f64 / plan.players as f64);
            due.push(Reverse((at, Act::Arrive, player, 0)));
        }
        let all_there = began + plan.arriving;
        for act in [Act::Change, Act::Reload] {
            due.push(Reverse((all_there, act, 0, 0)));
        }
        due.push(Reverse((began + SAMPLE, Act::Sample, 0, 0)));
        let place = |_| Place {
            // Some games have more players than others.
            game: random.usize(..plan.games).min(random.usize(..plan.games)),
            ..Place::default()
        };
        Self {
            plan: plan.clone(),
            browser,
            places: (0..plan.players).map(place).collect(),
            gone: VecDeque::new(),
            due,
            random,
            news,
            heard,
            requests: JoinSet::new(),
            began,
            truth: Truth::default(),
        }
    }

    /// Plays until `end`, and waits for the responses that are outstanding.
    pub(super) async fn play(&mut self, end: Instant) {
        let mut news = Vec::new();
        loop {
            let next = self.due.peek().map_or(end, |due| due.0.0).min(end);
            tokio::select! {
                _ = self.heard.recv_many(&mut news, 1_000) => {
                    news.drain(..).for_each(|news| self.learn(news));
                }
                () = tokio::time::sleep_until(next) => {
                    let now = Instant::now();
                    if now >= end {
                        break;
                    }
                    while self.due.peek().is_some_and(|due| due.0.0 <= now) {
                        if let Some(Reverse((at, act, player, visit))) = self.due.pop() {
                            self.act(at, act, player, visit);
                        }
                    }
                }
            }
            while self.requests.try_join_next().is_some() {}
        }
        while self.requests.join_next().await.is_some() {}
        self.learn_the_last();
    }

    /// Returns all pages that are open.
    pub(super) fn pages(&self) -> Vec<OpenPage> {
        let places = self.places.iter().enumerate();
        let pages = places.filter_map(|(player, place)| {
            let (token, sub) = place.token.clone()?;
            let visit = Visit {
                player,
                visit: u32::MAX,
                game: place.game,
                page: place.page.clone(),
            };
            Some(OpenPage {
                visit,
                token,
                sub,
                cookie: place.cookie.clone()?,
            })
        });
        pages.collect()
    }

    /// Returns where news of requests beside the players' own are sent.
    pub(super) fn news(&self) -> UnboundedSender<News> {
        self.news.clone()
    }

    /// Learns what comes of requests beside the players' own, until `work` has ended.
    pub(super) async fn listen<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut samples = tokio::time::interval(SAMPLE);
        let mut news = Vec::new();
        loop {
            tokio::select! {
                _ = self.heard.recv_many(&mut news, 1_000) => {
                    news.drain(..).for_each(|news| self.learn(news));
                }
                _ = samples.tick() => self.truth.sample(self.began),
                done = &mut work => {
                    self.learn_the_last();
                    return done;
                }
            }
        }
    }

    fn learn_the_last(&mut self) {
        while let Ok(news) = self.heard.try_recv() {
            self.learn(news);
        }
        self.truth.sample(self.began);
    }

    fn later(&mut self, at: Instant, act: Act, player: usize) {
        let visit = self.places[player].visit;
        self.due.push(Reverse((at, act, player, visit)));
    }

    fn act(&mut self, at: Instant, act: Act, player: usize, visit: u32) {
        match act {
            Act::Change | Act::Reload => {
                let one = self.random.usize(..self.places.len());
                self.leave(at, one, act == Act::Change);
                self.due
                    .push(Reverse((at + self.plan.between_changes(), act, 0, 0)));
                return;
            }
            Act::Sample => {
                self.truth.sample(self.began);
                self.due.push(Reverse((at + SAMPLE, act, 0, 0)));
                return;
            }
            Act::Arrive => {
                self.arrive(at, player);
                return;
            }
            Act::Beat | Act::Refresh | Act::Log => {}
        }
        let place = &mut self.places[player];
        let Some((token, sub)) = place.token.clone().filter(|_| place.visit == visit) else {
            return;
        };
        let visit = Visit {
            player,
            visit,
            game: place.game,
            page: place.page.clone(),
        };
        let (browser, news) = (Arc::clone(&self.browser), self.news.clone());
        let next = match act {
            Act::Beat => {
                place.beats += 1;
                let beat = async move { browser.beat(&news, visit, at, &token, sub).await };
                self.requests.spawn(beat);
                // The page looks once a second whether a heartbeat is due.
                self.plan.beats() + Duration::from_secs(1).mul_f64(self.random.f64())
            }
            Act::Refresh => {
                let cookie = place.cookie.clone();
                self.requests
                    .spawn(async move { browser.token(&news, visit, at, cookie).await });
                self.plan.token_age()
            }
            _ => {
                let texts = texts(self.random.usize(..), self.random.usize(1..=3));
                self.requests
                    .spawn(async move { browser.log(&news, visit, at, &token, texts).await });
                self.plan.between_logs()
            }
        };
        self.later(at + next, act, player);
    }

    fn arrive(&mut self, at: Instant, player: usize) {
        let page = super::browser::page_id(&mut self.random);
        let place = &mut self.places[player];
        place.visit += 1;
        place.page = page;
        place.token = None;
        place.beats = 0;
        let visit = Visit {
            player,
            visit: place.visit,
            game: place.game,
            page: place.page.clone(),
        };
        let (cookie, knows_runtime) = (place.cookie.clone(), place.knows_runtime);
        place.knows_runtime = true;
        let (browser, news) = (Arc::clone(&self.browser), self.news.clone());
        self.requests
            .spawn(async move { browser.open(&news, visit, at, cookie, knows_runtime).await });
    }

    /// A player's page goes away, and another one comes in its place: of somebody else, or the same
    /// page again.
    fn leave(&mut self, at: Instant, player: usize, for_good: bool) {
        let silent = for_good && self.random.f64() < HALF;
        let place = &mut self.places[player];
        // A heartbeat may arrive after the last one of its page; so such a page closes in silence.
        if let Some((token, _)) = place.token.clone().filter(|_| !silent && place.beats == 0) {
            let visit = Visit {
                player,
                visit: place.visit,
                game: place.game,
                page: place.page.clone(),
            };
            let (browser, news) = (Arc::clone(&self.browser), self.news.clone());
            self.requests
                .spawn(async move { browser.leave(&news, visit, at, &token).await });
        }
        if for_good {
            if let Some(cookie) = place.cookie.take() {
                let game = place.game;
                self.gone.push_back(Gone { game, cookie });
            }
            place.knows_runtime = false;
            let known = self.gone.len() > 20 && self.random.f64() < HALF;
            if let Some(gone) = known.then(|| self.gone.pop_front()).flatten() {
                place.game = gone.game;
                place.cookie = Some(gone.cookie);
                place.knows_runtime = true;
            }
        }
        self.arrive(at, player);
    }

    fn learn(&mut self, news: News) {
        match news {
            News::Token {
                visit,
                cookie,
                token,
                sub,
            } => self.has_token(&visit, cookie, token, sub),
            News::Beat {
                visit,
                sub,
                is_sure,
            } => {
                self.truth.beat(&visit.page, sub, is_sure);
                let place = &mut self.places[visit.player];
                if place.visit == visit.visit {
                    place.beats = place.beats.saturating_sub(1);
                }
            }
            News::Unbeaten { visit } => {
                let place = &mut self.places[visit.player];
                if place.visit == visit.visit {
                    place.beats = place.beats.saturating_sub(1);
                }
            }
            News::Left { visit, is_sure } => self.truth.left(&visit.page, is_sure),
            News::Logged { texts, is_sure } => self.truth.logged(&texts, is_sure),
        }
    }

    fn has_token(&mut self, visit: &Visit, cookie: String, token: Arc<str>, sub: Uuid) {
        let player = visit.player;
        let place = &mut self.places[player];
        if place.visit != visit.visit {
            // Whoever had this place has left before the response. A new guest is never seen again.
            return;
        }
        place.cookie = Some(cookie);
        let is_first = place.token.replace((token, sub)).is_none();
        if is_first {
            let now = Instant::now();
            self.later(now + self.plan.first_beat(), Act::Beat, player);
            for (act, time) in [
                (Act::Refresh, self.plan.token_age()),
                (Act::Log, self.plan.between_logs()),
            ] {
                let at = now + time.mul_f64(self.random.f64());
                self.later(at, act, player);
            }
        }
    }
}
