//! What the server is like at the moment of a scrape: numbers that nobody counts in between.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::process;
use crate::app::operations::Readiness;
use crate::app::operations::readiness::Report;
use crate::app::state::AppState;
use crate::clock::Millis;
use crate::domain::key::KeyPhase;
use crate::games::catalogue::Game;
use crate::platform::metrics::names::{self, Metric};
use crate::platform::metrics::{Figures, Labels, seconds};
use crate::platform::nodes::Component;

/// How long the store and Redis may take. What they do not answer by then is left out.
const ANSWER: Duration = Duration::from_secs(2);
/// How long their answers count for everybody who asks.
const SHARED: Duration = Duration::from_millis(500);

/// A certificate that ends so soon expires soon.
const EXPIRING: Millis = 7 * 24 * 60 * 60 * 1_000;

/// All parts that can be degraded.
const COMPONENTS: [Component; 7] = [
    Component::Certificates,
    Component::Clock,
    Component::Database,
    Component::Draining,
    Component::Keys,
    Component::Redis,
    Component::S3,
];

/// Numbers, by metric.
#[derive(Debug, Default)]
pub(super) struct Now(Vec<(&'static Metric, Vec<(Labels, f64)>)>);

/// The last answers of the store and of Redis. All who ask within a moment share them, so that
/// requests to the listener do not become as many queries.
#[derive(Debug, Default)]
pub(in crate::app::operations) struct Slow(Mutex<Option<(Instant, Answers)>>);

/// What takes a query.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    playing: Option<usize>,
    deployed: Option<u64>,
}

impl Slow {
    async fn ask(&self, state: &AppState) -> Answers {
        let mut last = self.0.lock().await;
        if let Some((_, answers)) = last.filter(|(at, _)| at.elapsed() < SHARED) {
            return answers;
        }
        let (playing, deployed) = tokio::join!(
            tokio::time::timeout(ANSWER, playing(state)),
            tokio::time::timeout(ANSWER, state.platform.store.total_room()),
        );
        let answers = Answers {
            playing: playing.ok().flatten(),
            deployed: deployed.ok().and_then(Result::ok),
        };
        *last = Some((Instant::now(), answers));
        answers
    }
}

/// Returns how many play published games, on all nodes.
async fn playing(state: &AppState) -> Option<usize> {
    let games: Vec<Arc<Game>> = state.games.catalogue.playable();
    let audiences: Vec<&str> = games.iter().map(|game| &*game.audience).collect();
    let now = state.platform.clock.now();
    let playing = state.games.presence.playing_each(&audiences, now).await;
    playing.into_iter().sum()
}

impl Now {
    /// Looks at everything.
    pub(super) async fn look(
        state: &AppState,
        readiness: &Readiness,
        slow: &Slow,
        figures: &Figures,
    ) -> Self {
        let (report, answers, process) =
            tokio::join!(readiness.report(), slow.ask(state), process::look());
        let mut now = Self::default();
        now.connections(state, figures);
        now.keys(state);
        now.certificates(state, figures);
        now.backups(state, figures);
        now.node(state, &report);
        now.games(state, answers);
        now.telemetry(state);
        now.one(&names::BUILD, [("version", env!("CARGO_PKG_VERSION"))], 1.0);
        for (metric, number) in process {
            now.one(metric, [], number);
        }
        now
    }

    /// Returns the numbers by metric, each metric once.
    pub(super) fn samples(&self) -> impl Iterator<Item = (&'static Metric, &[(Labels, f64)])> {
        let samples = self.0.iter();
        samples.map(|(metric, samples)| (*metric, samples.as_slice()))
    }

    fn one<const N: usize>(
        &mut self,
        metric: &'static Metric,
        labels: [(&'static str, &str); N],
        number: f64,
    ) {
        let labels = labels.map(|(name, value)| (name, value.to_owned()));
        let sample = (Labels::from(labels), number);
        match self
            .0
            .iter_mut()
            .find(|(known, _)| known.name == metric.name)
        {
            Some((_, samples)) => samples.push(sample),
            None => self.0.push((metric, vec![sample])),
        }
    }

    fn connections(&mut self, state: &AppState, figures: &Figures) {
        if let Some(open) = figures.connections.get() {
            self.one(&names::CONNECTIONS, [], number(open.count()));
            self.one(&names::CONNECTIONS_LIMIT, [], number(open.limit()));
        }
        for database in state.platform.store.figures() {
            let of = ("database", database.name);
            self.one(&names::WRITES_WAITING, [of], number(database.waiting));
            let Some(pool) = database.pool else { continue };
            for (state, count) in [("idle", pool.idle), ("in_use", pool.in_use)] {
                self.one(&names::POOL, [of, ("state", state)], number(count));
            }
            self.one(&names::POOL_LIMIT, [of], number(pool.most));
            self.one(&names::POOL_WAITING, [of], number(pool.waiting));
            self.one(&names::UNANSWERED, [of], number(pool.unanswered));
        }
    }

    fn keys(&mut self, state: &AppState) {
        let (keys, now) = (state.auth.keys.list(), state.platform.clock.now());
        for (phase, name) in [
            (KeyPhase::Published, "published"),
            (KeyPhase::Signing, "signing"),
            (KeyPhase::Retiring, "retiring"),
        ] {
            let of_phase = || keys.iter().filter(|key| key.phase == phase);
            self.one(&names::KEYS, [("phase", name)], number(of_phase().count()));
            if let Some(key) = of_phase().next().filter(|_| phase == KeyPhase::Signing) {
                self.one(&names::KEY_AGE, [], seconds(now - key.created_at));
            }
        }
        let read = seconds(now - state.auth.keys.read_at());
        self.one(&names::KEYS_READ_AGE, [], read);
    }

    fn certificates(&mut self, state: &AppState, figures: &Figures) {
        let missing = figures.certificates_missing.lock();
        if let Some(missing) = *missing.unwrap_or_else(PoisonError::into_inner) {
            self.one(&names::CERTIFICATES_MISSING, [], number(missing));
        }
        let ends = figures.certificate_ends.lock();
        let ends = ends.unwrap_or_else(PoisonError::into_inner).clone();
        let Some(ends) = ends else { return };
        let now = state.platform.clock.now();
        let expiring = ends.iter().filter(|end| **end - now <= EXPIRING).count();
        self.one(&names::CERTIFICATES, [], number(ends.len()));
        self.one(&names::CERTIFICATES_EXPIRING, [], number(expiring));
        if let Some(first) = ends.into_iter().min() {
            self.one(&names::CERTIFICATE_LEFT, [], seconds(first - now));
        }
    }

    fn backups(&mut self, state: &AppState, figures: &Figures) {
        let times = figures.backups.lock();
        let Some(times) = *times.unwrap_or_else(PoisonError::into_inner) else {
            return;
        };
        if let Some(newest) = times.newest {
            self.one(&names::BACKUP_NEWEST, [], seconds(newest));
        }
        let overdue = state.platform.clock.now() - times.next;
        self.one(&names::BACKUP_OVERDUE, [], seconds(overdue.max(0)));
    }

    fn node(&mut self, state: &AppState, report: &Report) {
        self.one(&names::READY, [], flag(report.ready));
        let degraded = report.degraded.as_deref().unwrap_or_default();
        for component in COMPONENTS {
            let is_off = report.because.contains(&component) || degraded.contains(&component);
            let labels = [("component", <&str>::from(component))];
            self.one(&names::DEGRADED, labels, flag(is_off));
        }
        let platform = &state.platform;
        if let Some(offset) = platform.nodes.clock_offset() {
            self.one(&names::CLOCK_OFFSET, [], seconds(offset));
        }
        for (folder, free) in ["data", "files"].into_iter().zip(platform.disk.free()) {
            if let Some(free) = free {
                self.one(&names::DISK_FREE, [("folder", folder)], bytes(free));
            }
        }
        self.one(&names::DISK_FLOOR, [], bytes(platform.disk.floor()));
    }

    fn games(&mut self, state: &AppState, answers: Answers) {
        let games = state.games.catalogue.playable().len();
        self.one(&names::GAMES, [], number(games));
        if let Some(playing) = answers.playing {
            self.one(&names::PLAYING, [], number(playing));
        }
        if let Some(deployed) = answers.deployed {
            self.one(&names::DEPLOYED_BYTES, [], bytes(deployed));
        }
    }

    fn telemetry(&mut self, state: &AppState) {
        for figures in state.platform.telemetry.figures() {
            let of = ("signal", figures.signal);
            for (outcome, count) in [
                ("sent", figures.sent),
                ("dropped", figures.dropped),
                ("failed", figures.failed),
            ] {
                let labels = [of, ("outcome", outcome)];
                self.one(&names::TELEMETRY, labels, bytes(count));
            }
        }
    }
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

fn number(count: usize) -> f64 {
    bytes(count as u64)
}

/// Returns a number as the text format has it.
#[expect(
    clippy::cast_precision_loss,
    reason = "nobody reads more than 52 bits of it"
)]
pub(super) fn bytes(count: u64) -> f64 {
    count as f64
}
