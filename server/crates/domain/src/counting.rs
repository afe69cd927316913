//! Players over time: how many at once, how many different ones, and how long
//! each played.

use std::fmt;

use datasketches::common::NumStdDev;
use datasketches::hll::{HllSketch, HllType};
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

/// What a player must have played within a day to count in the ranking, in
/// milliseconds: a page that was only opened does not.
pub const RANKED_PLAY: Millis = MINUTE;

/// Two to this is the number of a sketch's registers.
const PRECISION: u8 = 12;
/// One standard deviation of a sketch's number, by its true one: 1.04 by the
/// root of the number of registers.
pub const DISTINCT_ERROR: f64 = 1.04 / 64.0;

/// How long one count of players stands for.
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

    /// The start of the one that `time` is in.
    #[must_use]
    pub const fn start(self, time: Millis) -> Millis {
        time - time.rem_euclid(self.millis())
    }
}

/// How many played in one span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerCount {
    /// When the span began.
    pub start: Millis,
    /// The most at one time.
    pub peak: u32,
    /// What all of them played together, in milliseconds.
    pub player_millis: i64,
}

/// What is added for one environment: a minute, and who was there.
#[derive(Clone, Debug)]
pub struct NewCounts {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// Whole minutes or parts of them, each with somebody in it.
    pub minutes: Vec<PlayerCount>,
    /// The days and months of which more is known.
    pub distinct: Vec<DistinctSketch>,
}

/// Who was there in one period.
#[derive(Clone, Debug)]
pub struct DistinctSketch {
    /// `2026-11-21` or `2026-11`, in UTC.
    pub period: String,
    /// Who.
    pub players: Distinct,
}

/// How many different players there were in one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistinctCount {
    /// `2026-11-21` or `2026-11`, in UTC.
    pub period: String,
    /// How many, within [`DISTINCT_ERROR`].
    pub players: u64,
}

/// A sketch of an environment's period that has not ended.
#[derive(Clone, Debug)]
pub struct StoredSketch {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// Whose it is.
    pub sketch: DistinctSketch,
}

/// What one player played within one hour, to be added to what is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPlayTime {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// Who.
    pub player: Uuid,
    /// When the hour began.
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

/// A set of players of which only the size can be told, in 4 KiB at most
/// (`HyperLogLog`). Few are told exactly.
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
    /// Adds a player, who may be in it already.
    pub fn add(&mut self, player: Uuid) {
        self.0.update(player.as_u128());
    }

    /// How many there are, within [`DISTINCT_ERROR`] as one standard deviation.
    #[must_use]
    pub fn count(&self) -> u64 {
        // Never negative, and far from where a float has gaps.
        self.0.estimate().round() as u64
    }

    /// The bounds that hold in 19 of 20 cases.
    #[must_use]
    pub fn bounds(&self) -> (u64, u64) {
        let low = self.0.lower_bound(NumStdDev::Two).floor() as u64;
        (low, self.0.upper_bound(NumStdDev::Two).ceil() as u64)
    }

    /// As bytes, in the format that Apache DataSketches share across languages.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.serialize()
    }

    /// Reads what [`Distinct::to_bytes`] wrote; nothing of anything else.
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
    fn a_million_players_are_counted_within_the_stated_error() {
        let mut players = Distinct::default();
        let mut id = 0x0198_c2d4_0000_7000_8000_0000_0000_0000_u128;
        for _ in 0..1_000_000 {
            // As ids of version 7 are: a time that goes on, and something random.
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
