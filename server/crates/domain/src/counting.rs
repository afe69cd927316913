//! Players over time: how many at the same time, how many different ones, and how long each played.

use std::fmt;

use datasketches::common::NumStdDev;
use datasketches::hll::{HllSketch, HllType, HllUnion};
use platform_protocol::names::Environment;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::clock::Millis;

/// A minute in milliseconds.
pub const MINUTE: Millis = 60_000;
/// An hour in milliseconds.
pub const HOUR: Millis = 60 * MINUTE;
/// A day in milliseconds.
pub const DAY: Millis = 24 * HOUR;

/// How long a player must play within a day to count in the ranking, in milliseconds: only opening
/// a page is not enough.
pub const RANKED_PLAY: Millis = MINUTE;

/// A sketch has two to the power of this registers.
const PRECISION: u8 = 12;
/// One standard deviation of a sketch's estimate, relative to the true number: 1.04 divided by the
/// square root of the number of registers.
pub const DISTINCT_ERROR: f64 = 1.04 / 64.0;

/// The period of one count of players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// A minute.
    Minute,
    /// An hour.
    Hour,
}

impl Span {
    /// Its length in milliseconds.
    #[must_use]
    pub const fn millis(self) -> Millis {
        match self {
            Span::Minute => MINUTE,
            Span::Hour => HOUR,
        }
    }

    /// The start of the period that contains `time`.
    #[must_use]
    pub const fn start(self, time: Millis) -> Millis {
        time - time.rem_euclid(self.millis())
    }
}

/// How many played in one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerCount {
    /// When the period began.
    pub start: Millis,
    /// The largest number at the same time.
    pub peak: u32,
    /// The play time of all of them together, in milliseconds.
    pub player_millis: i64,
}

/// Counts to add for one environment: minutes, and the players.
#[derive(Clone, Debug)]
pub struct NewCounts {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// Whole or partial minutes, each with at least one player.
    pub minutes: Vec<PlayerCount>,
    /// The sketches of the days and months that changed.
    pub distinct: Vec<DistinctSketch>,
}

/// Who was there in one period.
#[derive(Clone, Debug)]
pub struct DistinctSketch {
    /// `2026-11-21` or `2026-11`, in UTC.
    pub period: String,
    /// The players.
    pub players: Distinct,
}

/// The number of different players in one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistinctCount {
    /// `2026-11-21` or `2026-11`, in UTC.
    pub period: String,
    /// The number, within [`DISTINCT_ERROR`].
    pub players: u64,
}

/// A sketch of an environment for a period that has not ended.
#[derive(Clone, Debug)]
pub struct StoredSketch {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// The sketch.
    pub sketch: DistinctSketch,
}

/// The play time of one player within one hour, to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPlayTime {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// The player.
    pub player: Uuid,
    /// The start of the hour.
    pub hour: Millis,
    /// Milliseconds.
    pub millis: i64,
}

/// How many players a game had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankedProject {
    /// The project.
    pub slug: String,
    /// Different players who played for [`RANKED_PLAY`] at least.
    pub players: u64,
}

/// A set of players with an estimated size, in 4 KiB at most (`HyperLogLog`). Small sets are
/// counted exactly.
#[derive(Clone)]
pub struct Distinct(HllSketch);

impl fmt::Debug for Distinct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Distinct").field(&self.count()).finish()
    }
}

impl Default for Distinct {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "the precision is one that there is")]
        Self(HllSketch::new(PRECISION, HllType::Hll8).expect("a sketch can be made"))
    }
}

impl Distinct {
    /// Adds a player. Adding a player again changes nothing.
    pub fn add(&mut self, player: Uuid) {
        self.0.update(player.as_u128());
    }

    /// Adds all players of another set. Adding the same players again changes nothing. A set that
    /// contains the other one stays as it is: its estimate is better than that of a union.
    pub fn unite(&mut self, other: &Self) {
        let union = |sets: &[&Self]| {
            #[expect(clippy::expect_used, reason = "the precision is one that there is")]
            let mut union = HllUnion::new(PRECISION).expect("a union can be made");
            sets.iter().for_each(|set| union.update(&set.0));
            Self(union.to_sketch(HllType::Hll8))
        };
        let both = union(&[self, other]);
        let bytes = both.to_bytes();
        if union(&[self]).to_bytes() == bytes {
            return;
        }
        *self = if union(&[other]).to_bytes() == bytes {
            other.clone()
        } else {
            both
        };
    }

    /// The size, within [`DISTINCT_ERROR`] as one standard deviation.
    #[must_use]
    pub fn count(&self) -> u64 {
        // Never negative, and small enough for an exact float.
        self.0.estimate().round() as u64
    }

    /// Bounds of the size with a confidence of 95 %.
    #[must_use]
    pub fn bounds(&self) -> (u64, u64) {
        let low = self.0.lower_bound(NumStdDev::Two).floor() as u64;
        (low, self.0.upper_bound(NumStdDev::Two).ceil() as u64)
    }

    /// The bytes, in the format of Apache DataSketches, which other languages can read.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.serialize()
    }

    /// Reads the bytes from [`Distinct::to_bytes`]; `None` if they are not valid.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        HllSketch::deserialize(bytes).ok().map(Self)
    }
}

/// The day and the month of `time`, as periods are named.
#[must_use]
pub fn periods(time: Millis) -> [String; 2] {
    let date = OffsetDateTime::from_unix_timestamp(time.div_euclid(1_000))
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
        .date();
    let (year, month, day) = (date.year(), u8::from(date.month()), date.day());
    [
        format!("{year:04}-{month:02}-{day:02}"),
        format!("{year:04}-{month:02}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_players_are_counted_exactly() {
        let mut players = Distinct::default();
        for number in 0..100_u128 {
            players.add(Uuid::from_u128(number << 64));
            players.add(Uuid::from_u128(number << 64));
        }
        assert_eq!(players.count(), 100);
    }

    #[test]
    fn sets_are_united_without_counting_a_player_twice() {
        for size in [3_u128, 40_000] {
            let set = |from: u128, to: u128| {
                let mut players = Distinct::default();
                (from..to).for_each(|number| players.add(Uuid::from_u128(number << 64)));
                players
            };
            let mut united = set(0, 2 * size);
            united.unite(&set(size, 3 * size));
            let (least, most) = united.bounds();
            let true_size = u64::try_from(3 * size).unwrap();
            assert!((least..=most).contains(&true_size), "{least} to {most}");
            let before = united.count();
            united.unite(&set(size, 2 * size));
            united.unite(&Distinct::default());
            assert_eq!(united.count(), before);
            let read = Distinct::from_bytes(&united.to_bytes()).unwrap();
            assert_eq!(read.count(), before);
            // The estimate of a set that contains the other one stays.
            for (from, with) in [(size, 2), (2, size)] {
                let mut whole = set(0, from);
                whole.unite(&set(0, with));
                assert_eq!(whole.count(), set(0, size).count());
            }
        }
    }

    #[test]
    fn a_million_players_are_counted_within_the_stated_error() {
        let mut players = Distinct::default();
        let mut id = 0x0198_c2d4_0000_7000_8000_0000_0000_0000_u128;
        for _ in 0..1_000_000 {
            // Like ids of version 7: an increasing time, and random bits.
            id = id.wrapping_add(1 << 80) ^ (id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 66);
            players.add(Uuid::from_u128(id));
        }
        let error = (players.count() as f64 - 1e6).abs() / 1e6;
        assert!(error <= 2.0 * DISTINCT_ERROR, "{error}");
        let (low, high) = players.bounds();
        assert!(low <= 1_000_000 && 1_000_000 <= high, "{low} to {high}");
        assert!(players.to_bytes().len() <= 4_200);
    }

    #[test]
    fn a_sketch_comes_back_as_it_was() {
        let mut players = Distinct::default();
        for size in [0, 1, 7, 200, 10_000_u128] {
            for number in 0..size {
                players.add(Uuid::from_u128(number));
            }
            let back = Distinct::from_bytes(&players.to_bytes()).unwrap();
            assert_eq!(back.count(), players.count(), "{size}");
        }
        assert!(Distinct::from_bytes(b"").is_none());
        assert!(Distinct::from_bytes(&[7; 40]).is_none());
    }

    #[test]
    fn periods_are_those_of_utc() {
        assert_eq!(periods(0), ["1970-01-01", "1970-01"]);
        assert_eq!(periods(1_795_305_599_999), ["2026-11-21", "2026-11"]);
        assert_eq!(periods(1_795_305_600_000), ["2026-11-22", "2026-11"]);
        assert_eq!(periods(-1), ["1969-12-31", "1969-12"]);
    }

    #[test]
    fn a_span_starts_at_its_whole_number() {
        assert_eq!(Span::Minute.start(119_999), 60_000);
        assert_eq!(Span::Hour.start(HOUR), HOUR);
        assert_eq!(Span::Minute.start(-1), -60_000);
    }
}
