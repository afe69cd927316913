//! Admission control: if more requests arrive than can be answered, some are refused at once, so that
//! the others are answered in time. What matters least to players is refused first.
//!
//! What is measured is how long a task waits until a thread of the runtime takes it. Every request
//! waits that long at least once, whatever it needs afterwards. Only a wait that no moment of a tenth
//! of a second falls below counts, as in CoDel (RFC 8289 §3): a short burst is no overload. And only if
//! there are many requests: on a machine that other programs keep busy, refusing them would not help.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::http::{HeaderValue, header};
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;
use tokio::runtime::Handle;
use tokio::task::JoinError;
use tokio::time::Instant;

use crate::games::hosts::Site;
use crate::platform::metrics::{Metrics, Tally};
use crate::web::api_error::ApiError;

/// How often the wait is measured.
const EVERY: Duration = Duration::from_millis(20);
/// The measurements whose shortest wait counts: those of a tenth of a second.
const WINDOW: usize = 5;
/// The fewest requests of a window that can be an overload: 1,000 a second.
const BUSY: u32 = 100;
/// How much the pressure grows with each measurement, for each multiple of the limit, up to this
/// number of multiples.
const GROWTH: f32 = 0.02;
const MULTIPLES: f32 = 5.0;
/// How much it falls with each measurement without overload: all of it within two seconds.
const FALL: f32 = 0.03;
/// Shares are counted in this many parts.
const PARTS: u32 = 1_024;
/// The largest share of the most important requests that is refused: some always get through.
const MOST: f32 = 0.95;
/// The detail of a refusal.
const REFUSED: &str = "The platform has more requests at the moment than it can answer. Please try again in a moment.";

/// How much a request matters to players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Logs and charts: a page sends its records again, and a chart is there for people who can wait.
    Deferrable,
    /// Pages, files, heartbeats and everything else.
    Ordinary,
    /// Tokens and signing in: without them nobody plays.
    Essential,
}

impl Class {
    /// Returns the class of a request for `path` of a site.
    #[must_use]
    pub fn of(site: &Site, path: &str) -> Self {
        match site {
            Site::Auth => Self::Essential,
            Site::Game(_) if matches!(path, paths::GAME_TOKEN | paths::GAME_CONTINUE) => {
                Self::Essential
            }
            Site::Game(_) | Site::Pane(_) if path == paths::LOGS => Self::Deferrable,
            Site::Console if is_report(path) => Self::Deferrable,
            Site::Game(_) | Site::Pane(_) | Site::Console => Self::Ordinary,
        }
    }

    /// The pressure from which requests of this class are refused.
    const fn from(self) -> f32 {
        match self {
            Self::Deferrable => 0.0,
            Self::Ordinary => 1.0,
            Self::Essential => 2.0,
        }
    }
}

/// Whether a call of the API reads logs, errors or counts.
fn is_report(path: &str) -> bool {
    path.starts_with("/api/")
        && path
            .split('/')
            .any(|part| matches!(part, "logs" | "errors" | "charts" | "players"))
}

/// Decides which requests are refused.
#[derive(Debug)]
pub struct Overload {
    /// The wait from which on the server is overloaded; zero if nothing is ever refused.
    limit: Duration,
    /// Requests since the last measurement.
    begun: AtomicU32,
    /// The share of each class that is refused, in [`PARTS`].
    shares: [AtomicU32; 3],
    /// What the shares have added up to, by class.
    turns: [AtomicU32; 3],
    /// Counts the refusals, by class.
    refusals: [Tally; 3],
}

impl Overload {
    /// Creates it for waits from `limit` on; with zero, nothing is ever refused.
    #[must_use]
    pub fn new(limit: Duration, metrics: &Metrics) -> Self {
        Self {
            limit,
            begun: AtomicU32::new(0),
            shares: Default::default(),
            turns: Default::default(),
            refusals: [
                "overload-deferrable",
                "overload-ordinary",
                "overload-essential",
            ]
            .map(|name| metrics.refusals(name)),
        }
    }

    /// Counts a request, and admits or refuses it.
    ///
    /// # Errors
    /// `unavailable`, with `Retry-After`.
    pub fn admit(&self, class: Class) -> Result<(), ApiError> {
        if self.limit.is_zero() {
            return Ok(());
        }
        self.begun.fetch_add(1, Ordering::Relaxed);
        let place = class as usize;
        let (share, turn) = (&self.shares[place], &self.turns[place]);
        let share = share.load(Ordering::Relaxed);
        if share == 0 {
            return Ok(());
        }
        // The share is refused evenly, and not by chance.
        let turn = turn.fetch_add(share, Ordering::Relaxed);
        if turn % PARTS + share < PARTS {
            return Ok(());
        }
        self.refusals[place].count();
        // Not all at the same moment.
        let seconds = HeaderValue::from(1 + turn / PARTS % 4);
        let refusal = ApiError::new(ProblemCode::Unavailable).with_detail(REFUSED);
        Err(refusal.with_header(header::RETRY_AFTER, seconds))
    }

    /// Returns the share of a class that is refused at the moment, from 0 to 1.
    #[must_use]
    pub fn share(&self, class: Class) -> f32 {
        self.shares[class as usize].load(Ordering::Relaxed) as f32 / PARTS as f32
    }

    /// Sets the shares for a pressure, as [`watch`](Self::watch) does for what it measures: 0 without
    /// overload, and 3 where all is refused but a part of the most important requests.
    pub fn set_pressure(&self, pressure: f32) {
        for class in [Class::Deferrable, Class::Ordinary, Class::Essential] {
            let most = if class == Class::Essential { MOST } else { 1.0 };
            let share = (pressure - class.from()).clamp(0.0, most);
            self.shares[class as usize].store((share * PARTS as f32) as u32, Ordering::Relaxed);
        }
    }

    /// Measures for as long as the server runs.
    pub async fn watch(&self) {
        if self.limit.is_zero() {
            return;
        }
        let mut judge = Judge::new(self.limit);
        let mut was_refusing = false;
        loop {
            tokio::time::sleep_until(Instant::now() + EVERY).await;
            let Ok(waited) = wait_in_queue().await else {
                return;
            };
            let pressure = judge.judge(waited, self.begun.swap(0, Ordering::Relaxed));
            self.set_pressure(pressure);
            let refuses = pressure > 0.0;
            if refuses && !was_refusing {
                tracing::warn!(
                    waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
                    "there are more requests than can be answered: some are refused, logs and charts first"
                );
            } else if was_refusing && !refuses {
                tracing::info!("all requests are answered again");
            }
            was_refusing = refuses;
        }
    }
}

/// Returns how long a new task waits in the queue that all threads of the runtime share. A task that a
/// timer wakes would go before all others.
///
/// # Errors
/// Returns an error if the runtime is about to stop.
async fn wait_in_queue() -> Result<Duration, JoinError> {
    let runtime = Handle::current();
    let begin = move || {
        let begun = Instant::now();
        runtime.spawn(async move { begun.elapsed() })
    };
    tokio::task::spawn_blocking(begin).await?.await
}

/// Turns measurements into pressure: 0 without overload, and 3 where all is refused but a part of the
/// most important requests.
#[derive(Debug)]
struct Judge {
    limit: Duration,
    /// The last waits, and how many requests began meanwhile.
    window: VecDeque<(Duration, u32)>,
    pressure: f32,
}

impl Judge {
    fn new(limit: Duration) -> Self {
        Self {
            limit,
            window: VecDeque::with_capacity(WINDOW + 1),
            pressure: 0.0,
        }
    }

    /// Returns the pressure after a measurement.
    fn judge(&mut self, waited: Duration, begun: u32) -> f32 {
        self.window.push_back((waited, begun));
        if self.window.len() > WINDOW {
            self.window.pop_front();
        }
        let shortest = self.window.iter().map(|(waited, _)| *waited).min();
        let shortest = shortest.unwrap_or_default();
        let requests: u32 = self.window.iter().map(|(_, begun)| *begun).sum();
        let is_overload = self.window.len() == WINDOW && requests >= BUSY && shortest >= self.limit;
        if is_overload {
            let multiples = shortest.as_secs_f32() / self.limit.as_secs_f32();
            self.pressure = (self.pressure + GROWTH * multiples.min(MULTIPLES)).min(3.0);
        } else {
            self.pressure = (self.pressure - FALL).max(0.0);
        }
        self.pressure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(10);

    fn judge(waits: &[u64], begun: u32) -> f32 {
        let mut judge = Judge::new(LIMIT);
        let waits = waits.iter().map(|wait| Duration::from_millis(*wait));
        waits.fold(0.0, |_, wait| judge.judge(wait, begun))
    }

    fn refused(overload: &Overload, class: Class, of: usize) -> usize {
        (0..of).filter(|_| overload.admit(class).is_err()).count()
    }

    #[test]
    fn a_burst_is_no_overload_and_neither_is_a_busy_machine() {
        assert_eq!(judge(&[50, 50, 50, 50], 100), 0.0, "too short");
        assert_eq!(judge(&[50, 50, 0, 50, 50, 50], 100), 0.0, "with a pause");
        assert_eq!(judge(&[50; 20], 1), 0.0, "hardly any requests");
        assert!(judge(&[50; 20], 100) > 0.0);
        assert!(judge(&[9; 100], 100) <= 0.0, "below the limit");
    }

    #[test]
    fn pressure_grows_with_the_wait_and_is_gone_within_three_seconds() {
        assert!(judge(&[50; 20], 100) > judge(&[11; 20], 100));
        let mut judge = Judge::new(LIMIT);
        for _ in 0..1_000 {
            judge.judge(Duration::from_millis(500), 1_000);
        }
        assert!(judge.pressure >= 3.0);
        let steps = (0..).take_while(|_| judge.judge(Duration::ZERO, 1_000) > 0.0);
        let seconds = steps.count() as f32 * EVERY.as_secs_f32();
        assert!(seconds < 3.0, "{seconds} s");
    }

    #[test]
    fn what_matters_least_is_refused_first_and_tokens_are_never_all_refused() {
        let overload = Overload::new(LIMIT, &Metrics::default());
        let all = [Class::Deferrable, Class::Ordinary, Class::Essential];
        let refused = |pressure| {
            overload.set_pressure(pressure);
            all.map(|class| refused(&overload, class, 1_000))
        };
        assert_eq!(refused(0.0), [0, 0, 0]);
        assert_eq!(refused(0.5), [500, 0, 0]);
        assert_eq!(refused(1.25), [1_000, 250, 0]);
        let [deferrable, ordinary, essential] = refused(3.0);
        assert_eq!([deferrable, ordinary], [1_000, 1_000]);
        assert!((940..=950).contains(&essential), "{essential}");
    }

    #[test]
    fn a_refusal_says_when_to_come_again_and_not_to_all_the_same() {
        let overload = Overload::new(LIMIT, &Metrics::default());
        overload.set_pressure(1.0);
        let seconds = (0..8).map(|_| {
            let refusal = overload.admit(Class::Deferrable).unwrap_err();
            assert_eq!(refusal.slug(), ProblemCode::Unavailable);
            let response = axum::response::IntoResponse::into_response(refusal);
            let seconds = response.headers()[header::RETRY_AFTER].to_str().unwrap();
            seconds.parse::<u32>().unwrap()
        });
        let seconds: Vec<u32> = seconds.collect();
        assert_eq!(seconds, [1, 2, 3, 4, 1, 2, 3, 4]);
    }

    #[test]
    fn logs_and_charts_can_wait_and_tokens_cannot() {
        assert_eq!(Class::of(&Site::Auth, "/token"), Class::Essential);
        assert_eq!(Class::of(&Site::Console, "/"), Class::Ordinary);
        let logs = "/api/projects/demo/environments/dev/logs";
        assert_eq!(Class::of(&Site::Console, logs), Class::Deferrable);
        assert_eq!(Class::of(&Site::Console, "/docs/logs"), Class::Ordinary);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_nothing_is_watched() {
        Overload::new(Duration::ZERO, &Metrics::default())
            .watch()
            .await;
    }
}
