//! Both programs in turns, each time another one first, until the intervals are narrow enough or
//! the time is used up. Rounds are short: what else the machine does then meets both alike.

use std::time::Duration;

use anyhow::Result;
use xtask::terminal::{self, Stopwatch};

use super::verdict::{Pair, ratio};

/// Turns that are measured at least: the interval then leaves out the two highest and the two lowest.
const MIN_TURNS: usize = 12;
/// An interval is narrow enough if its ends are this far apart: half of what is tolerated on each
/// side of a ratio.
const MAX_WIDTH: f64 = 0.05;

/// One of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The program of the other commit.
    Old,
    /// That of the working tree.
    New,
}

/// Measures both in turns for at most this time. `measure` returns the same figures in the same
/// order each time; the first round warms up and does not count. Returns the turns of each figure.
pub(super) fn in_turns<const FIGURES: usize>(
    what: &str,
    most: Duration,
    mut measure: impl FnMut(Side) -> Result<[f64; FIGURES]>,
) -> Result<[Vec<Pair>; FIGURES]> {
    let stopwatch = Stopwatch::start();
    let mut turns: [Vec<Pair>; FIGURES] = std::array::from_fn(|_| Vec::new());
    for round in 0.. {
        let (old, new) = if round % 2 == 0 {
            let old = measure(Side::Old)?;
            (old, measure(Side::New)?)
        } else {
            let new = measure(Side::New)?;
            (measure(Side::Old)?, new)
        };
        if round > 0 {
            for (turns, (old, new)) in turns.iter_mut().zip(old.into_iter().zip(new)) {
                turns.push(Pair { old, new });
            }
        }
        let is_narrow = is_checked(round) && turns.iter().all(|turns| is_narrow(turns));
        if is_narrow || stopwatch.elapsed() > most {
            terminal::note(&format!("compare: {what}: {round} rounds in {stopwatch}"));
            break;
        }
        if round % 10 == 0 {
            terminal::note(&format!("compare: {what}, round {round}"));
        }
    }
    Ok(turns)
}

/// Whether the intervals are looked at after this round: after 12, 24, 48 and so on. An interval that ends the
/// measurement whenever it is narrow by chance would hold the true value less often than it says.
const fn is_checked(round: usize) -> bool {
    round.is_multiple_of(MIN_TURNS) && (round / MIN_TURNS).is_power_of_two()
}

/// Whether more turns would say little more.
fn is_narrow(turns: &[Pair]) -> bool {
    let ratio = ratio(turns);
    ratio.high - ratio.low <= MAX_WIDTH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_first_in_turn_and_the_first_round_does_not_count() {
        let mut order = Vec::new();
        let turns = in_turns("a test", Duration::MAX, |side| {
            order.push(side);
            let place = order.len() as f64;
            // The first round is far off.
            Ok([if order.len() <= 2 { 900.0 * place } else { 7.0 }])
        });
        let [turns] = turns.unwrap();
        assert_eq!(order[..4], [Side::Old, Side::New, Side::New, Side::Old]);
        assert_eq!(turns, vec![Pair { old: 7.0, new: 7.0 }; MIN_TURNS]);
    }

    #[test]
    fn a_noisy_figure_is_measured_more_often() {
        let mut calls = 0_u32;
        let [turns] = in_turns("a test", Duration::MAX, |side| {
            calls += 1;
            // Each ratio is 0.9 or 1.1 for a long time, and then 1.
            let sway = if calls < 60 && calls % 4 == 2 {
                0.1
            } else {
                -0.1
            };
            let sway = if calls < 60 { sway } else { 0.0 };
            Ok([if side == Side::New { 1.0 + sway } else { 1.0 }])
        })
        .unwrap();
        assert!(turns.len() > MIN_TURNS, "{}", turns.len());
    }

    #[test]
    fn it_ends_when_the_time_is_used_up() {
        let mut calls = 0;
        let [turns] = in_turns("a test", Duration::ZERO, |_| {
            calls += 1;
            Ok([f64::from(calls)])
        })
        .unwrap();
        assert!(turns.is_empty() && calls == 2, "{turns:?}");
    }

    #[test]
    fn a_failure_ends_the_measurement() {
        let failed = in_turns("a test", Duration::MAX, |side| {
            anyhow::ensure!(side == Side::Old, "the new one has ended");
            Ok([1.0])
        });
        assert_eq!(failed.unwrap_err().to_string(), "the new one has ended");
    }
}
