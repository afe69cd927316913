//! How many requests of each kind were sent, how long they took, and what became of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

/// The longest time that is told apart, in microseconds.
const LONGEST: u64 = 60_000_000;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Page,
    Runtime,
    NewGuest,
    KnownGuest,
    Heartbeat,
    Leave,
    Logs,
    Deploy,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Page => "page of a game",
            Self::Runtime => "runtime.js",
            Self::NewGuest => "token, new guest",
            Self::KnownGuest => "token, known guest",
            Self::Heartbeat => "heartbeat",
            Self::Leave => "last heartbeat",
            Self::Logs => "log records",
            Self::Deploy => "deploy",
        }
    }
}

/// What was measured of one kind.
#[derive(Debug)]
struct Times {
    sent: u64,
    /// Of the requests that passed, from the moment at which each was to be sent.
    micros: Histogram<u64>,
}

/// A part of the run, by the moments at which requests were to be sent.
#[derive(Debug, Default)]
struct Part {
    kinds: BTreeMap<Kind, Times>,
    failures: BTreeMap<(Kind, String), u64>,
}

/// What was measured so far: while players arrive, and then while they play.
#[derive(Debug)]
pub(super) struct Measure {
    all_there: Instant,
    parts: [Mutex<Part>; 2],
}

impl Measure {
    /// Creates one; from `all_there` on no more players arrive than leave.
    pub(super) fn new(all_there: Instant) -> Self {
        Self {
            all_there,
            parts: Default::default(),
        }
    }

    /// Records a response, or what came in its place, of a request that was to be sent at
    /// `intended`.
    pub(super) fn record(&self, kind: Kind, intended: Instant, outcome: Result<(), String>) {
        let took = intended.elapsed();
        let part = usize::from(intended >= self.all_there);
        let mut part = self.parts[part]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let times = part.kinds.entry(kind).or_insert_with(|| Times {
            sent: 0,
            micros: Histogram::new_with_bounds(1, LONGEST, 3).expect("valid bounds"),
        });
        times.sent += 1;
        match outcome {
            Ok(()) => {
                let micros = u64::try_from(took.as_micros()).unwrap_or(LONGEST);
                times.micros.saturating_record(micros);
            }
            Err(what) => *part.failures.entry((kind, what)).or_default() += 1,
        }
    }

    /// Returns how many requests of each kind passed while everybody was there.
    pub(super) fn passed(&self) -> BTreeMap<Kind, u64> {
        let [_, playing] = &self.parts;
        let playing = playing.lock().unwrap_or_else(PoisonError::into_inner);
        let kinds = playing.kinds.iter();
        kinds
            .map(|(kind, times)| (*kind, times.micros.len()))
            .collect()
    }

    /// Returns how many requests failed.
    pub(super) fn failed(&self) -> u64 {
        let parts = self.parts.iter();
        let parts = parts.map(|part| part.lock().unwrap_or_else(PoisonError::into_inner));
        parts.map(|part| part.failures.values().sum::<u64>()).sum()
    }

    /// Returns both parts as tables. They lasted so long.
    pub(super) fn tables(&self, arriving: Duration, playing: Duration) -> String {
        let mut text = String::new();
        for ((name, lasted), part) in [("players arrive", arriving), ("players play", playing)]
            .into_iter()
            .zip(&self.parts)
        {
            let part = part.lock().unwrap_or_else(PoisonError::into_inner);
            // Writing into a string cannot fail.
            let _ = write!(text, "{}", part.table(name, lasted));
        }
        text
    }
}

impl Part {
    fn table(&self, name: &str, lasted: Duration) -> String {
        let seconds = lasted.as_secs_f64();
        let mut text = format!(
            "\n{name}, {seconds:.0} s        offered/s  achieved/s    p50 ms    p99 ms  p99.9 ms    max ms   failed\n"
        );
        for (kind, Times { sent, micros }) in &self.kinds {
            let millis = |of: f64| micros.value_at_quantile(of) as f64 / 1_000.0;
            let _ = writeln!(
                text,
                "  {:22} {:9.1}   {:9.1} {:9.1} {:9.1} {:9.1} {:9.1} {:8}",
                kind.name(),
                *sent as f64 / seconds,
                micros.len() as f64 / seconds,
                millis(0.5),
                millis(0.99),
                millis(0.999),
                micros.max() as f64 / 1_000.0,
                sent - micros.len(),
            );
        }
        for ((kind, what), count) in &self.failures {
            let _ = writeln!(text, "  failed: {count} x {}: {what}", kind.name());
        }
        text
    }
}
