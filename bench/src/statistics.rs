//! What the values of several rounds say: a quantile with its interval, which makes no assumption
//! about how the values are spread, and whether a goal is met.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

/// How often an interval may lie wholly below the true value, and how often wholly above it:
/// together, it holds the true value in 95 of 100 runs.
const TAIL: f64 = 0.025;

/// A figure with the interval that holds its true value in 95 of 100 runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    /// What was measured.
    pub(super) value: f64,
    /// The lower end; -∞ if there were too few rounds for one.
    pub(super) low: f64,
    /// The upper end; ∞ if there were too few rounds for one.
    pub(super) high: f64,
}

/// A limit of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit {
    AtLeast(f64),
    AtMost(f64),
}

/// What an interval says of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// The whole interval keeps the limit.
    Met,
    /// No part of it does.
    Missed,
    /// Only a part does, or there is no interval.
    Unclear,
}

impl Default for Estimate {
    /// Of nothing.
    fn default() -> Self {
        Self {
            value: f64::NAN,
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
        }
    }
}

impl Serialize for Estimate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // An open end is null: JSON has no infinity.
        let finite = |end: f64| end.is_finite().then_some(end);
        let mut object = serializer.serialize_struct("Estimate", 3)?;
        object.serialize_field("value", &finite(self.value))?;
        object.serialize_field("low", &finite(self.low))?;
        object.serialize_field("high", &finite(self.high))?;
        object.end()
    }
}

impl Estimate {
    /// A figure that every run would measure alike, such as a file's size.
    pub(super) const fn certain(value: f64) -> Self {
        Self {
            value,
            low: value,
            high: value,
        }
    }

    /// The largest of several figures: each end of its interval is the largest of theirs.
    pub(super) fn largest(figures: impl Iterator<Item = Self>) -> Self {
        figures
            .reduce(|one, other| Self {
                value: one.value.max(other.value),
                low: one.low.max(other.low),
                high: one.high.max(other.high),
            })
            .unwrap_or_default()
    }

    /// The same in another unit.
    pub(super) fn times(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            low: self.low * factor,
            high: self.high * factor,
        }
    }

    /// Whether it keeps a limit, as far as the interval says.
    pub(super) fn verdict(&self, limit: Limit) -> Verdict {
        let (all, some) = match limit {
            Limit::AtLeast(least) => (self.low >= least, self.high >= least),
            Limit::AtMost(most) => (self.high <= most, self.low <= most),
        };
        match (all, some) {
            (true, _) => Verdict::Met,
            (false, true) => Verdict::Unclear,
            (false, false) => Verdict::Missed,
        }
    }

    /// The interval for people, with this many decimals.
    pub(super) fn interval(&self, decimals: usize) -> String {
        match (self.low.is_finite(), self.high.is_finite()) {
            (true, true) if self.low.total_cmp(&self.high).is_eq() => "exact".to_owned(),
            (true, true) => format!("{:.decimals$}–{:.decimals$}", self.low, self.high),
            (true, false) => format!("≥ {:.decimals$}", self.low),
            (false, true) => format!("≤ {:.decimals$}", self.high),
            (false, false) => "unknown".to_owned(),
        }
    }

    /// The figure with its interval, for a table's cell.
    pub(super) fn cell(&self, decimals: usize) -> String {
        if self.value.is_nan() {
            return "not measured".to_owned();
        }
        format!("{:.decimals$} ({})", self.value, self.interval(decimals))
    }
}

/// The median of the values of the rounds.
pub(super) fn median(values: &[f64]) -> Estimate {
    let Estimate { low, high, .. } = quantile(values, 0.5);
    Estimate {
        value: middle(values),
        low,
        high,
    }
}

/// The median of one figure of the rounds.
pub(super) fn median_of<Round>(rounds: &[Round], figure: impl Fn(&Round) -> f64) -> Estimate {
    median(&rounds.iter().map(figure).collect::<Vec<_>>())
}

/// The value that 99 of 100 values do not exceed. Its interval has an upper end only from 368
/// values on.
pub(super) fn percentile_99(values: &[f64]) -> Estimate {
    quantile(values, 0.99)
}

/// A quantile with its interval between two of the sorted values: how many values are below the
/// true quantile is binomial, whatever their distribution.
fn quantile(values: &[f64], part: f64) -> Estimate {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |place: usize| place.checked_sub(1).and_then(|place| sorted.get(place));
    let (lower, upper) = places(sorted.len(), part);
    let place = (sorted.len() as f64 * part).ceil() as usize;
    Estimate {
        value: at(place.max(1)).copied().unwrap_or(f64::NAN),
        low: at(lower).copied().unwrap_or(f64::NEG_INFINITY),
        high: at(upper).copied().unwrap_or(f64::INFINITY),
    }
}

/// The places, from 1, of the sorted values that the interval of a quantile lies between; 0 and
/// `count` + 1 where no value is an end.
fn places(count: usize, part: f64) -> (usize, usize) {
    let (mut lower, mut upper) = (0, count + 1);
    let mut below = 0.0;
    for (number, chance) in binomial(count, part).into_iter().enumerate() {
        // `below` is the chance that fewer than `number` values are below the true quantile.
        if below <= TAIL {
            lower = number;
        }
        if 1.0 - below <= TAIL {
            upper = upper.min(number);
        }
        below += chance;
    }
    (lower, upper)
}

/// The chances of 0, 1, … `count` hits in `count` attempts.
fn binomial(count: usize, chance: f64) -> Vec<f64> {
    // As logarithms: the chance of no hit at all may be too small for a float.
    let odds = chance.ln() - (1.0 - chance).ln();
    let mut logarithm = count as f64 * (1.0 - chance).ln();
    let mut chances = vec![logarithm.exp()];
    for hits in 1..=count {
        logarithm += odds + ((count - hits + 1) as f64 / hits as f64).ln();
        chances.push(logarithm.exp());
    }
    chances
}

/// The middle value; for an even count the mean of the two middle ones; NaN without values.
fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, low: f64, high: f64) -> Estimate {
        Estimate { value, low, high }
    }

    /// Numbers that look random but are the same in every run, from 0 to 1.
    fn numbers() -> impl FnMut() -> f64 {
        let mut state = 1_u64;
        move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]).value, 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]).value, 2.5);
        assert!(median(&[]).value.is_nan());
    }

    #[test]
    fn the_interval_of_a_median_is_that_of_the_tables() {
        // The places that tables of the sign test give for 95 %.
        for (count, wanted) in [
            (5, (0, 6)),
            (6, (1, 6)),
            (8, (1, 8)),
            (9, (2, 8)),
            (20, (6, 15)),
            (100, (40, 61)),
        ] {
            assert_eq!(places(count, 0.5), wanted, "{count} values");
        }
    }

    #[test]
    fn the_99th_percentile_of_few_values_has_no_upper_end() {
        let values = |count: usize| (1..=count).map(|value| value as f64).collect::<Vec<_>>();
        let few = percentile_99(&values(367));
        assert!(few.high.is_infinite() && few.low.is_finite(), "{few:?}");
        let enough = percentile_99(&values(368));
        assert_eq!((enough.value, enough.high), (365.0, 368.0));
    }

    #[test]
    fn the_interval_holds_the_true_median_as_often_as_it_says() {
        let mut number = numbers();
        let held = (0..4_000).filter(|_| {
            // Far from symmetric, as times are; the true median is the logarithm of 2.
            let values: Vec<f64> = (0..9).map(|_| -(1.0 - number()).ln()).collect();
            let Estimate { low, high, .. } = median(&values);
            (low..=high).contains(&std::f64::consts::LN_2)
        });
        // 96.1 % by computation.
        let held = held.count();
        assert!((3_780..=3_900).contains(&held), "{held} of 4000");
    }

    #[test]
    fn a_goal_is_met_only_if_the_whole_interval_keeps_it() {
        use Limit::{AtLeast, AtMost};
        let figure = estimate(0.8, 0.7, 0.9);
        for (limit, wanted) in [
            (AtLeast(0.7), Verdict::Met),
            (AtLeast(0.75), Verdict::Unclear),
            (AtLeast(0.85), Verdict::Unclear),
            (AtLeast(0.91), Verdict::Missed),
            (AtMost(0.9), Verdict::Met),
            (AtMost(0.85), Verdict::Unclear),
            (AtMost(0.69), Verdict::Missed),
        ] {
            assert_eq!(figure.verdict(limit), wanted, "{limit:?}");
        }
    }

    #[test]
    fn what_was_not_measured_or_too_seldom_is_unclear() {
        for figure in [Estimate::default(), median(&[1.0, 1.0]), median(&[])] {
            assert_eq!(figure.verdict(Limit::AtLeast(0.5)), Verdict::Unclear);
            assert_eq!(figure.verdict(Limit::AtMost(2.0)), Verdict::Unclear);
        }
    }

    #[test]
    fn a_figure_without_noise_is_its_own_interval() {
        let figure = Estimate::certain(40.0);
        assert_eq!(figure.verdict(Limit::AtMost(40.0)), Verdict::Met);
        assert_eq!(figure.verdict(Limit::AtMost(39.0)), Verdict::Missed);
        assert_eq!(figure.cell(0), "40 (exact)");
    }

    #[test]
    fn the_largest_is_at_least_as_large_as_each() {
        let figures = [estimate(3.0, 1.0, 9.0), estimate(4.0, 2.0, 5.0)];
        let largest = Estimate::largest(figures.into_iter());
        assert_eq!(largest, estimate(4.0, 2.0, 9.0));
    }

    #[test]
    fn intervals_are_printed_and_written() {
        let figure = estimate(0.75, 0.5, 0.9);
        assert_eq!(figure.cell(2), "0.75 (0.50–0.90)");
        let open = estimate(0.75, 0.5, f64::INFINITY);
        assert_eq!(open.cell(1), "0.8 (≥ 0.5)");
        assert_eq!(Estimate::default().cell(1), "not measured");
        let json = serde_json::to_string(&open).unwrap();
        assert_eq!(json, r#"{"value":0.75,"low":0.5,"high":null}"#);
    }
}
