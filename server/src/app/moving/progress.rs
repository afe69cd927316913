//! Says what is done, and how long the rest takes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Who hears of the progress.
pub trait Teller: Sync {
    /// How often something is told at most.
    fn period(&self) -> Duration;

    /// A line for a person. Lines of one step replace each other on a terminal; `is_last` is the
    /// last one of a step.
    fn tell(&self, line: &str, is_last: bool);
}

/// One step of a long piece of work.
pub(super) struct Progress<'a> {
    step: &'static str,
    total: u64,
    done: AtomicU64,
    begun: Instant,
    told: Mutex<Instant>,
    teller: &'a dyn Teller,
}

impl<'a> Progress<'a> {
    /// Begins a step of so many units.
    pub(super) fn new(step: &'static str, total: u64, teller: &'a dyn Teller) -> Self {
        let now = Instant::now();
        Self {
            step,
            total,
            done: AtomicU64::new(0),
            begun: now,
            told: Mutex::new(now),
            teller,
        }
    }

    /// Notes what an earlier run has done: it says nothing about the speed of this one.
    pub(super) fn skip(&mut self, units: u64) {
        self.total = self.total.saturating_sub(units);
    }

    /// Notes that so many units more are done, which belong to `what`.
    pub(super) fn advance(&self, units: u64, what: &str) {
        let done = self.done.fetch_add(units, Ordering::Relaxed) + units;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.elapsed() >= self.teller.period() {
            *told = Instant::now();
            let line = line(self.step, what, done, self.total, self.begun.elapsed());
            self.teller.tell(&line, false);
        }
    }

    /// Ends the step.
    pub(super) fn end(&self, what: &str) {
        let seconds = self.begun.elapsed().as_secs_f64();
        let line = format!("{}: {what} in {seconds:.1} s", self.step);
        self.teller.tell(&line, true);
    }
}

/// Returns the line for a step in progress.
fn line(step: &str, what: &str, done: u64, total: u64, took: Duration) -> String {
    let percent = done.min(total) * 100 / total.max(1);
    let left = left(done, total, took);
    format!("{step}: {what}, {percent} %{left}")
}

/// Returns how long the rest takes if it is as fast as the beginning.
fn left(done: u64, total: u64, took: Duration) -> String {
    if done == 0 {
        return String::new();
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "nobody reads more than two of its digits"
    )]
    let seconds = took.as_secs_f64() * total.saturating_sub(done) as f64 / done as f64;
    let left = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    match left.as_secs() {
        seconds @ 0..100 => format!(", about {} s left", seconds + 1),
        seconds @ 100..6_000 => format!(", about {} min left", seconds / 60),
        seconds => format!(", about {} h left", seconds / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_done_and_how_long_the_rest_takes() {
        let told =
            |done, seconds| line("rows", "players", done, 1_000, Duration::from_secs(seconds));
        assert_eq!(told(0, 0), "rows: players, 0 %");
        assert_eq!(told(250, 10), "rows: players, 25 %, about 31 s left");
        assert_eq!(told(10, 10), "rows: players, 1 %, about 16 min left");
        assert_eq!(told(1, 3_600), "rows: players, 0 %, about 999 h left");
        // More may arrive than was counted.
        assert_eq!(told(1_001, 10), "rows: players, 100 %, about 1 s left");
    }
}
