//! What a server must not gather while as many players as before play: memory, open files, and the
//! write-ahead log of SQLite.

use std::fmt::Write as _;
use std::time::Duration;

use tokio::time::Instant;

use super::Place;

/// How often it is read.
const BETWEEN: Duration = Duration::from_secs(5);
/// The fewest readings from which growth can be told: ten minutes of them. In less, caches still fill.
const ENOUGH: usize = 120;
/// By how much something may have grown from the second quarter of the readings to the last one. In
/// the first one caches fill.
const TOLERANCE: f64 = 1.05;
/// How large the write-ahead log may ever be, in MiB.
const LARGEST_LOG: f64 = 64.0;

/// One reading of all servers together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// Memory in MiB.
    pub(super) memory: f64,
    /// Open files, without sockets, whose number the crowd decides.
    pub(super) files: f64,
    /// The write-ahead log in MiB.
    pub(super) log: f64,
}

/// One figure of a reading.
type Figure = fn(&Reading) -> f64;

/// The readings of a run, from the moment at which all players are there.
#[derive(Debug, Default)]
pub(super) struct Soak {
    readings: Vec<Reading>,
}

impl Soak {
    /// Reads until `end`.
    pub(super) async fn watch(place: &Place, from: Instant, end: Instant) -> Self {
        let mut soak = Self::default();
        let mut at = from;
        while at < end {
            tokio::time::sleep_until(at).await;
            soak.readings.push(place.reading());
            at += BETWEEN;
        }
        soak
    }

    /// The median of one figure in a quarter of the readings: 0 to 3.
    fn quarter(&self, number: usize, figure: Figure) -> f64 {
        let count = self.readings.len() / 4;
        let quarter = self.readings.iter().skip(number * count).take(count);
        let mut figures: Vec<f64> = quarter.map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or_default()
    }

    fn largest_log(&self) -> f64 {
        let logs = self.readings.iter().map(|reading| reading.log);
        logs.fold(0.0, f64::max)
    }

    /// The medians of the quarters, as a table.
    pub(super) fn table(&self) -> String {
        let mut text =
            "\nservers, medians of the quarters of the time with all players\n".to_owned();
        let rows: [(&str, Figure); 3] = [
            ("memory MiB", |reading| reading.memory),
            ("open files", |reading| reading.files),
            ("write-ahead log MiB", |reading| reading.log),
        ];
        for (name, figure) in rows {
            let [a, b, c, d] = [0, 1, 2, 3].map(|number| self.quarter(number, figure));
            // Writing into a string cannot fail.
            let _ = writeln!(text, "  {name:22} {a:9.1} {b:9.1} {c:9.1} {d:9.1}");
        }
        text
    }

    /// Says what was gathered; nothing if the run was too short to tell.
    pub(super) fn gathered(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.readings.len() < ENOUGH {
            return sentences;
        }
        let rows: [(&str, Figure); 2] = [
            ("memory", |reading| reading.memory),
            ("the number of open files", |reading| reading.files),
        ];
        for (name, figure) in rows {
            let (before, after) = (self.quarter(1, figure), self.quarter(3, figure));
            if after > before * TOLERANCE {
                sentences.push(format!("{name} grew from {before:.1} to {after:.1}"));
            }
        }
        let log = self.largest_log();
        if log > LARGEST_LOG {
            sentences.push(format!("the write-ahead log had {log:.1} MiB"));
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soak(count: usize, reading: impl Fn(f64) -> Reading) -> Soak {
        let readings = (0..count).map(|index| reading(index as f64)).collect();
        Soak { readings }
    }

    #[test]
    fn what_stays_or_swings_is_not_gathered() {
        let steady = soak(200, |index| Reading {
            memory: 100.0 + (index % 7.0),
            files: 40.0,
            log: 4.0,
        });
        assert_eq!(steady.gathered(), Vec::<String>::new());
    }

    #[test]
    fn what_grows_is_named() {
        let leaking = |index: f64| Reading {
            memory: 100.0 + index,
            files: 40.0 + index / 10.0,
            log: index,
        };
        let gathered = soak(200, leaking).gathered().join(", ");
        assert!(
            gathered.contains("memory grew from 175.0 to 275.0"),
            "{gathered}"
        );
        assert!(gathered.contains("open files grew"), "{gathered}");
        assert!(gathered.contains("log had 199.0 MiB"), "{gathered}");
        assert!(soak(20, leaking).gathered().is_empty(), "too few to tell");
    }
}
