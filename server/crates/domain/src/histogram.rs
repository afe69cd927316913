//! How long things took, counted in buckets. Counting takes no lock and no memory.
//!
//! There are two sets of buckets, as Prometheus has them: a few of round numbers, and many whose bounds
//! grow by a fifth each ("native"). Each duration is counted once, in a cell that is in one bucket of
//! either set, so that what is read at one moment always has the same number of durations in both.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets in microseconds: from half a millisecond, which a request from
/// memory takes, to ten seconds, after which nobody waits any more.
const BOUNDS: [u64; 14] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];
/// The resolution of the native buckets (`schema` of Prometheus): the bound of each is 2^(2^-2), or 1.19, times
/// that of the one before.
pub const SCHEMA: i32 = 2;
/// The number of native buckets from a power of two to the next.
const IN_A_DOUBLING: i32 = 1 << SCHEMA;
/// The native bucket whose upper bound is 61 µs, or 2^-14 s. What is shorter is counted as nothing.
const SHORTEST: i32 = -14 * IN_A_DOUBLING;
/// The native bucket whose upper bound is 4,096 s, or 2^12 s: longer than a backend may take. What is
/// longer is counted there.
const LONGEST: i32 = 12 * IN_A_DOUBLING;
/// The most cells that there are: one for each bound, and one for what is longer.
const MOST_CELLS: usize = BOUNDS.len() + LONGEST.abs_diff(SHORTEST) as usize + 2;

/// The cells, in order.
static CELLS: LazyLock<Vec<Cell>> = LazyLock::new(cells);

/// Where durations are counted that are in the same buckets.
#[derive(Debug)]
struct Cell {
    /// The longest duration in it, in nanoseconds.
    bound: u64,
    /// The index of its bucket of a round number.
    bucket: usize,
    /// The index of its native bucket (Prometheus: index i has durations over 2^((i-1)/4) s, up to
    /// 2^(i/4) s).
    native: i32,
}

fn cells() -> Vec<Cell> {
    let round = BOUNDS.map(|micros| micros * 1_000);
    let native: Vec<(i32, u64)> = (SHORTEST..=LONGEST).map(|at| (at, bound_of(at))).collect();
    let mut bounds: Vec<u64> = native.iter().map(|(_, bound)| *bound).collect();
    bounds.extend(round);
    bounds.sort_unstable();
    bounds.dedup();
    // The last cell is for what is longer than all.
    bounds.push(u64::MAX);
    let cell = |bound: u64| Cell {
        bound,
        bucket: round.partition_point(|other| *other < bound),
        native: native
            .iter()
            .find(|(_, other)| *other >= bound)
            .map_or(LONGEST, |(index, _)| *index),
    };
    bounds.into_iter().map(cell).collect()
}

/// Returns the upper bound of a native bucket in nanoseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is a positive number of nanoseconds below 2^42"
)]
fn bound_of(index: i32) -> u64 {
    (f64::exp2(f64::from(index) / f64::from(IN_A_DOUBLING)) * 1e9) as u64
}

/// Counts durations.
#[derive(Debug)]
pub struct Histogram {
    cells: [AtomicU64; MOST_CELLS],
    nanos: AtomicU64,
}

/// What a histogram has counted until a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// The upper bound of each bucket in seconds, and how many durations are in this bucket alone.
    pub buckets: Vec<(f64, u64)>,
    /// The same durations in native buckets.
    pub native: Native,
    /// How many durations there were.
    pub count: u64,
    /// Their sum in seconds.
    pub seconds: f64,
}

/// Native buckets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Native {
    /// How many durations were not longer than [`Native::THRESHOLD`].
    pub shortest: u64,
    /// The index of each bucket that is not empty, in order, and how many durations are in it.
    pub buckets: Vec<(i32, u64)>,
}

impl Native {
    /// The longest duration that is counted as nothing, in seconds: 2^-14.
    pub const THRESHOLD: f64 = 1.0 / 16_384.0;

    fn add(&mut self, index: i32, count: u64) {
        match self.buckets.last_mut() {
            _ if index == SHORTEST => self.shortest += count,
            Some((last, counted)) if *last == index => *counted += count,
            _ => self.buckets.push((index, count)),
        }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            cells: std::array::from_fn(|_| AtomicU64::new(0)),
            nanos: AtomicU64::new(0),
        }
    }
}

impl Histogram {
    /// Counts a duration.
    pub fn count(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let cell = CELLS.partition_point(|cell| cell.bound < nanos);
        if let Some(cell) = self.cells.get(cell) {
            cell.fetch_add(1, Ordering::Relaxed);
        }
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Returns what was counted.
    #[must_use]
    pub fn read(&self) -> Counted {
        let bounds = BOUNDS.iter().map(|micros| seconds(*micros, 1e6));
        let mut counted = Counted {
            buckets: bounds
                .chain([f64::INFINITY])
                .map(|bound| (bound, 0))
                .collect(),
            native: Native::default(),
            count: 0,
            seconds: seconds(self.nanos.load(Ordering::Relaxed), 1e9),
        };
        for (cell, count) in CELLS.iter().zip(&self.cells) {
            let count = count.load(Ordering::Relaxed);
            if count == 0 {
                continue;
            }
            if let Some((_, bucket)) = counted.buckets.get_mut(cell.bucket) {
                *bucket += count;
            }
            counted.native.add(cell.native, count);
            counted.count += count;
        }
        counted
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

    fn counted(durations: impl IntoIterator<Item = Duration>) -> Counted {
        let histogram = Histogram::default();
        durations.into_iter().for_each(|took| histogram.count(took));
        histogram.read()
    }

    #[test]
    fn a_duration_is_in_the_first_bucket_that_is_long_enough() {
        let micros = [0, 500, 501, 1_000, 9_999_999, 10_000_000, 10_000_001];
        let read = counted(micros.map(Duration::from_micros));
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
    fn a_native_bucket_has_what_is_longer_than_the_one_before() {
        let nanos = [0, 61_035, 61_036, 999_999_999, 1_000_000_000, 1_000_000_001];
        let read = counted(nanos.map(Duration::from_nanos));
        assert_eq!(read.native.shortest, 2);
        // The bucket of index 0 ends at one second, that of -55 begins at 2^-14 s.
        assert_eq!(read.native.buckets, [(-55, 1), (0, 2), (1, 1)]);
        let long = counted([Duration::from_secs(4_096), Duration::from_secs(90_000)]);
        assert_eq!(long.native.buckets, [(LONGEST, 2)]);
    }

    #[test]
    fn every_duration_is_in_one_bucket_of_either_set() {
        let durations = (0..4_000).map(|step| Duration::from_nanos(1_009_u64.pow(2) * step * step));
        let read = counted(durations);
        let round: u64 = read.buckets.iter().map(|(_, count)| count).sum();
        let native: u64 = read.native.buckets.iter().map(|(_, count)| count).sum();
        assert_eq!((round, native + read.native.shortest), (4_000, 4_000));
        assert_eq!(read.count, 4_000);
        assert!(read.native.buckets.is_sorted_by_key(|(index, _)| *index));
        assert!(CELLS.len() <= MOST_CELLS);
    }

    #[test]
    fn a_duration_without_end_is_counted() {
        assert_eq!(counted([Duration::MAX]).count, 1);
    }
}
