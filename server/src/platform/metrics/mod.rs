//! What the server counts for those who operate it. The operator's listener exports it; without that
//! listener nothing is counted.
//!
//! | module | contents |
//! |---|---|
//! | [`names`] | the table of all metrics |
//! | [`requests`] | requests by host, route and status |

pub mod names;
pub mod requests;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::Instant;

use self::requests::{Requests, RouteId};
use crate::clock::Millis;
use crate::web::serve::OpenConnections;

/// Names and values of labels. No value is ever chosen by a visitor.
pub type Labels = Vec<(&'static str, String)>;
/// Counters that differ in their labels.
pub type Counters = Family<Labels, Counter>;
/// The same for fractions.
pub type Sums = Family<Labels, Counter<f64, AtomicU64>>;
/// Numbers that differ in their labels.
pub type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

/// Counts what happens, or nothing.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Option<Arc<Figures>>);

/// What was counted.
#[derive(Debug)]
pub struct Figures {
    /// Requests.
    pub requests: Requests,
    /// The connections of visitors, once the server accepts them.
    pub connections: OnceLock<OpenConnections>,
    /// Signed tokens.
    pub tokens: Counters,
    /// New guests.
    pub guests: Counters,
    /// Browsers that returned from a provider.
    pub sign_ins: Counters,
    /// What rate limits refused.
    pub limit_refusals: Counters,
    /// Deploys.
    pub deploys: Counters,
    /// Frontend log records.
    pub log_records: Counters,
    /// Orders of certificates.
    pub certificate_orders: Counters,
    /// When the certificates end, once it is known.
    pub certificate_ends: Mutex<Option<Vec<Millis>>>,
    /// How many certificates are missing that every platform needs, once it is known.
    pub certificates_missing: Mutex<Option<usize>>,
    /// The backups that the server makes by itself, once it has looked for them.
    pub backups: Mutex<Option<BackupTimes>>,
    /// Runs of jobs.
    pub job_runs: Counters,
    /// How long they took in total.
    pub job_seconds: Sums,
    /// When they were last done.
    pub job_done: Gauges,
    /// The counters on the way of every token, so that nothing has to be looked up.
    game_tokens: Counter,
    console_tokens: Counter,
}

/// When backups were made, and when the next one must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupTimes {
    /// When the newest one was begun; `None` if there is none.
    pub newest: Option<Millis>,
    /// From when on the next one is due.
    pub next: Millis,
}

/// A counter of something that happens, or nothing.
#[derive(Clone, Debug, Default)]
pub struct Tally(Option<Counter>);

impl Tally {
    /// Counts one.
    pub fn count(&self) {
        if let Some(counter) = &self.0 {
            counter.inc();
        }
    }

    /// Counts a refusal, and returns what it was asked about.
    pub fn refusal<T, E>(&self, decided: Result<T, E>) -> Result<T, E> {
        if decided.is_err() {
            self.count();
        }
        decided
    }
}

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A game.
    Game,
    /// The console or the command line.
    Console,
}

/// How a guest came into being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestKind {
    /// It is new.
    New,
    /// Its browser had its cookie.
    Restored,
}

/// How a deploy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeployOutcome {
    /// It is shown.
    Published,
    /// Its contents, its sender or the limits do not allow it.
    Refused,
    /// The platform could not do it.
    Failed,
}

impl DeployOutcome {
    const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// How an order of a certificate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderOutcome {
    /// The certificate is there.
    Obtained,
    /// The ACME server refused, or did not answer.
    Failed,
    /// It did not begin, because of limits or earlier failures.
    HeldBack,
}

impl OrderOutcome {
    const fn name(self) -> &'static str {
        match self {
            Self::Obtained => "obtained",
            Self::Failed => "failed",
            Self::HeldBack => "held-back",
        }
    }
}

fn of<const N: usize>(labels: [(&'static str, &str); N]) -> Labels {
    let owned = labels.map(|(name, value)| (name, value.to_owned()));
    owned.into()
}

impl Default for Figures {
    fn default() -> Self {
        let tokens = Counters::default();
        let figures = Self {
            game_tokens: tokens.get_or_create_owned(&of([("kind", "game")])),
            console_tokens: tokens.get_or_create_owned(&of([("kind", "console")])),
            tokens,
            requests: Requests::default(),
            connections: OnceLock::new(),
            guests: Counters::default(),
            sign_ins: Counters::default(),
            limit_refusals: Counters::default(),
            deploys: Counters::default(),
            log_records: Counters::default(),
            certificate_orders: Counters::default(),
            certificate_ends: Mutex::default(),
            certificates_missing: Mutex::default(),
            backups: Mutex::default(),
            job_runs: Counters::default(),
            job_seconds: Sums::default(),
            job_done: Gauges::default(),
        };
        // A counter that is there from the start shows its first event as growth.
        for (family, name, values) in [
            (&figures.guests, "kind", &["new", "restored"][..]),
            (
                &figures.deploys,
                "outcome",
                &["published", "refused", "failed"],
            ),
            (&figures.log_records, "outcome", &["accepted", "refused"]),
            (
                &figures.certificate_orders,
                "outcome",
                &["obtained", "failed", "held-back"],
            ),
        ] {
            for value in values {
                drop(family.get_or_create(&of([(name, value)])));
            }
        }
        figures
    }
}

impl Metrics {
    /// Counts from now on.
    #[must_use]
    pub fn on() -> Self {
        Self(Some(Arc::default()))
    }

    /// Returns what was counted; `None` if nothing is.
    #[must_use]
    pub fn figures(&self) -> Option<Arc<Figures>> {
        self.0.clone()
    }

    /// Returns the counters of requests.
    #[must_use]
    pub fn requests(&self) -> Option<&Requests> {
        self.0.as_deref().map(|figures| &figures.requests)
    }

    /// Counts a request that began at `started` and is answered now.
    pub fn answered(&self, route: RouteId, status: u16, started: Instant) {
        if let Some(figures) = &self.0 {
            figures.requests.count(route, status, started.elapsed());
        }
    }

    /// Counts an order of a certificate.
    pub fn ordered_certificate(&self, outcome: OrderOutcome) {
        if let Some(figures) = &self.0 {
            let labels = of([("outcome", outcome.name())]);
            figures.certificate_orders.get_or_create(&labels).inc();
        }
    }

    /// Notes when the certificates end.
    pub fn set_certificate_ends(&self, ends: Vec<Millis>) {
        if let Some(figures) = &self.0 {
            let known = figures.certificate_ends.lock();
            *known.unwrap_or_else(PoisonError::into_inner) = Some(ends);
        }
    }

    /// Notes how many certificates are missing that every platform needs.
    pub fn set_certificates_missing(&self, count: usize) {
        if let Some(figures) = &self.0 {
            let known = figures.certificates_missing.lock();
            *known.unwrap_or_else(PoisonError::into_inner) = Some(count);
        }
    }

    /// Notes when backups were made, and when the next one must be.
    pub fn set_backups(&self, times: BackupTimes) {
        if let Some(figures) = &self.0 {
            let known = figures.backups.lock();
            *known.unwrap_or_else(PoisonError::into_inner) = Some(times);
        }
    }

    /// Reads the number of open connections here from now on.
    pub fn count_connections(&self, open: OpenConnections) {
        if let Some(figures) = &self.0 {
            let _ = figures.connections.set(open);
        }
    }

    /// Counts a token that was signed.
    pub fn token(&self, kind: TokenKind) {
        if let Some(figures) = &self.0 {
            match kind {
                TokenKind::Game => figures.game_tokens.inc(),
                TokenKind::Console => figures.console_tokens.inc(),
            };
        }
    }

    /// Counts a guest that was created.
    pub fn guest(&self, kind: GuestKind) {
        let kind = match kind {
            GuestKind::New => "new",
            GuestKind::Restored => "restored",
        };
        self.add(|figures| &figures.guests, [("kind", kind)], 1);
    }

    /// Counts a browser that returned from `provider`, which the settings name.
    pub fn sign_in(&self, provider: &str, outcome: &'static str) {
        let labels = [("provider", provider), ("outcome", outcome)];
        self.add(|figures| &figures.sign_ins, labels, 1);
    }

    /// Counts a deploy.
    pub fn deploy(&self, outcome: DeployOutcome) {
        let outcome = outcome.name();
        self.add(|figures| &figures.deploys, [("outcome", outcome)], 1);
    }

    /// Counts log records that were accepted or refused.
    pub fn log_records(&self, accepted: bool, many: usize) {
        let outcome = if accepted { "accepted" } else { "refused" };
        let labels = [("outcome", outcome)];
        self.add(|figures| &figures.log_records, labels, many as u64);
    }

    /// Returns what counts the refusals of the limit `name`.
    #[must_use]
    pub fn refusals(&self, name: &'static str) -> Tally {
        let figures = self.0.as_ref();
        Tally(figures.map(|figures| {
            let labels = of([("limit", name)]);
            figures.limit_refusals.get_or_create_owned(&labels)
        }))
    }

    /// Begins to measure a run of the job `name`.
    #[must_use]
    pub fn job(&self, name: &'static str) -> JobRun {
        JobRun {
            metrics: self.clone(),
            name,
            begun: Instant::now(),
            ended: false,
        }
    }

    fn add<const N: usize>(
        &self,
        family: impl FnOnce(&Figures) -> &Counters,
        labels: [(&'static str, &str); N],
        many: u64,
    ) {
        if let Some(figures) = &self.0 {
            family(figures).get_or_create(&of(labels)).inc_by(many);
        }
    }
}

/// A run of a job. If it is dropped before it has ended, it was interrupted.
#[derive(Debug)]
pub struct JobRun {
    metrics: Metrics,
    name: &'static str,
    begun: Instant,
    ended: bool,
}

impl JobRun {
    /// The run has ended at `now`, or failed.
    pub fn end(mut self, done: bool, now: Millis) {
        self.ended = true;
        self.count(if done { "done" } else { "failed" });
        if let Some(figures) = self.metrics.0.as_ref().filter(|_| done) {
            let seconds = seconds(now);
            let gauge = figures.job_done.get_or_create(&of([("task", self.name)]));
            gauge.set(seconds);
        }
    }

    fn count(&self, outcome: &'static str) {
        let Some(figures) = &self.metrics.0 else {
            return;
        };
        let labels = of([("task", self.name), ("outcome", outcome)]);
        figures.job_runs.get_or_create(&labels).inc();
        let took: Duration = self.begun.elapsed();
        let sum = figures
            .job_seconds
            .get_or_create(&of([("task", self.name)]));
        sum.inc_by(took.as_secs_f64());
    }
}

impl Drop for JobRun {
    fn drop(&mut self) {
        if !self.ended {
            self.count("interrupted");
        }
    }
}

/// Returns a time or a span in seconds.
#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds since 1970 have 41 bits"
)]
#[must_use]
pub fn seconds(millis: Millis) -> f64 {
    millis as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_counted_without_a_listener_for_it() {
        let metrics = Metrics::default();
        metrics.token(TokenKind::Game);
        metrics.sign_in("google", "linked");
        metrics.job("sweep").end(true, 0);
        let refused: Result<(), ()> = metrics.refusals("guests").refusal(Err(()));
        assert!(refused.is_err() && metrics.figures().is_none());
    }

    #[test]
    fn a_run_that_does_not_end_was_interrupted() {
        let metrics = Metrics::on();
        metrics.job("sweep").end(true, 1_500);
        metrics.job("sweep").end(false, 2_500);
        drop(metrics.job("sweep"));
        let figures = metrics.figures().unwrap();
        for outcome in ["done", "failed", "interrupted"] {
            let labels = of([("task", "sweep"), ("outcome", outcome)]);
            assert_eq!(
                figures.job_runs.get_or_create(&labels).get(),
                1,
                "{outcome}"
            );
        }
        let done = figures
            .job_done
            .get_or_create(&of([("task", "sweep")]))
            .get();
        assert!((done - 1.5).abs() < 1e-9, "{done}");
    }
}
