//! How long things took, counted in buckets. Counting takes no lock and no memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets in microseconds: from half a millisecond, which a request from
/// memory takes, to ten seconds, after which nobody waits any more.
const BOUNDS: [u64; 14] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];

/// Counts durations.
#[derive(Debug, Default)]
pub struct Histogram {
    /// One for each bound, and one for what took longer.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

/// What a histogram has counted until a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// The upper bound of each bucket in seconds, and how many durations are in this bucket alone.
    pub buckets: Vec<(f64, u64)>,
    /// How many durations there were.
    pub count: u64,
    /// Their sum in seconds.
    pub seconds: f64,
}

impl Histogram {
    /// Counts a duration.
    pub fn count(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.iter().position(|bound| micros <= *bound);
        // The last bucket has no bound.
        if let Some(bucket) = self.buckets.get(bucket.unwrap_or(BOUNDS.len())) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Returns what was counted.
    #[must_use]
    pub fn read(&self) -> Counted {
        let bounds = BOUNDS.iter().map(|micros| seconds(*micros, 1e6));
        let counts = self
            .buckets
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<_> = bounds.chain([f64::INFINITY]).zip(counts).collect();
        Counted {
            count: buckets.iter().map(|(_, count)| count).sum(),
            seconds: seconds(self.nanos.load(Ordering::Relaxed), 1e9),
            buckets,
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nobody reads more than 52 bits of a duration"
)]
fn seconds(parts: u64, of_a_second: f64) -> f64 {
    parts as f64 / of_a_second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_first_bucket_that_is_long_enough() {
        let histogram = Histogram::default();
        for micros in [0, 500, 501, 1_000, 9_999_999, 10_000_000, 10_000_001] {
            histogram.count(Duration::from_micros(micros));
        }
        let read = histogram.read();
        let filled: Vec<_> = read
            .buckets
            .iter()
            .filter(|(_, count)| *count > 0)
            .collect();
        let expected = [&(0.0005, 2), &(0.001, 2), &(10.0, 2), &(f64::INFINITY, 1)];
        assert_eq!(filled, expected);
        assert_eq!(read.count, 7);
        assert!((read.seconds - 30.002_001).abs() < 1e-6, "{}", read.seconds);
    }

    #[test]
    fn a_duration_without_end_is_counted() {
        let histogram = Histogram::default();
        histogram.count(Duration::MAX);
        assert_eq!(histogram.read().count, 1);
    }
}
