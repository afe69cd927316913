//! What a figure of two programs says: the ratio of new to old with its interval, whether it is a
//! loss, and how all of that is printed.

use crate::statistics::{Estimate, Limit, Verdict, median, median_of};

/// How much worse a figure may become: one part in twenty.
const LOSS_LIMIT: f64 = 0.05;

/// One turn of both programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    /// What the old program gave.
    pub(super) old: f64,
    /// What the new program gave.
    pub(super) new: f64,
}

/// Which direction of a figure is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    /// More, as for rates.
    More,
    /// Less, as for times and sizes.
    Less,
}

/// A figure of both programs.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    name: String,
    better: Better,
    old: f64,
    new: f64,
    /// New divided by old.
    ratio: Estimate,
}

impl Figure {
    /// A figure that was measured in turns: the ratio is taken within each turn.
    pub(super) fn measured(name: impl Into<String>, better: Better, pairs: &[Pair]) -> Self {
        Self {
            name: name.into(),
            better,
            old: median_of(pairs, |pair| pair.old).value,
            new: median_of(pairs, |pair| pair.new).value,
            ratio: ratio(pairs),
        }
    }

    /// A figure that is counted, and the same each time.
    pub(super) fn counted(name: impl Into<String>, better: Better, pair: Pair) -> Self {
        Self {
            name: name.into(),
            better,
            old: pair.old,
            new: pair.new,
            ratio: Estimate::certain(divided(pair)),
        }
    }

    /// Whether the new program keeps what the old one did, as far as the interval says.
    pub(super) fn verdict(&self) -> Verdict {
        self.ratio.verdict(match self.better {
            Better::More => Limit::AtLeast(1.0 - LOSS_LIMIT),
            Better::Less => Limit::AtMost(1.0 + LOSS_LIMIT),
        })
    }

    /// The verdict for people. Within what is tolerated, it says the direction if the whole interval
    /// shows it.
    fn word(&self) -> &'static str {
        let Estimate { low, high, .. } = self.ratio;
        let (all_better, all_worse) = match self.better {
            Better::More => (low > 1.0, high < 1.0),
            Better::Less => (high < 1.0, low > 1.0),
        };
        match self.verdict() {
            Verdict::Missed => "**worse**",
            Verdict::Unclear => "cannot be told",
            Verdict::Met if all_better => "better",
            Verdict::Met if all_worse => "worse, within 5 %",
            Verdict::Met => "equal",
        }
    }
}

/// The median of the ratios of the turns.
pub(super) fn ratio(pairs: &[Pair]) -> Estimate {
    median(&pairs.iter().copied().map(divided).collect::<Vec<_>>())
}

/// New divided by old; 1 if both are nothing.
fn divided(Pair { old, new }: Pair) -> f64 {
    if old.total_cmp(&new).is_eq() {
        1.0
    } else {
        new / old
    }
}

/// The figures as the lines of a Markdown table.
pub(super) fn table(part: &str, figures: &[Figure]) -> Vec<String> {
    let mut lines = vec![
        String::new(),
        format!("| {part} | old | new | better is | new / old | in 95 of 100 runs | |"),
        "|---|---:|---:|---|---:|---:|---|".to_owned(),
    ];
    lines.extend(figures.iter().map(|figure| {
        let better = match figure.better {
            Better::More => "more",
            Better::Less => "less",
        };
        format!(
            "| {} | {} | {} | {better} | {:.3} | {} | {} |",
            figure.name,
            number(figure.old),
            number(figure.new),
            figure.ratio.value,
            figure.ratio.interval(3),
            figure.word(),
        )
    }));
    lines
}

/// A number with as many decimals as say something.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        value if value >= 100.0 || value.fract() == 0.0 => 0,
        value if value >= 1.0 => 2,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns in which the new program gave this part of what the old one did; the machine becomes
    /// slower meanwhile.
    fn pairs(ratios: &[f64]) -> Vec<Pair> {
        let turns = ratios.iter().zip(1..);
        turns
            .map(|(ratio, turn)| {
                let old = 9_000.0 / f64::from(turn);
                Pair {
                    old,
                    new: old * ratio,
                }
            })
            .collect()
    }

    fn rate(ratios: &[f64]) -> Figure {
        Figure::measured("tokens/s", Better::More, &pairs(ratios))
    }

    fn time(ratios: &[f64]) -> Figure {
        Figure::measured("ms", Better::Less, &pairs(ratios))
    }

    #[test]
    fn a_loss_is_one_if_the_whole_interval_shows_it() {
        let lost = [0.90, 0.91, 0.89, 0.92, 0.90, 0.94];
        assert_eq!(rate(&lost).verdict(), Verdict::Missed);
        assert_eq!(rate(&lost).word(), "**worse**");
        let slower = [1.10, 1.09, 1.11, 1.08, 1.10, 1.06];
        assert_eq!(time(&slower).verdict(), Verdict::Missed);
        assert_eq!(time(&slower).word(), "**worse**");
    }

    #[test]
    fn a_loss_that_only_a_part_of_the_interval_shows_cannot_be_told() {
        let noisy = [0.90, 1.02, 0.93, 0.99, 0.91, 1.04];
        assert_eq!(rate(&noisy).verdict(), Verdict::Unclear);
        assert_eq!(rate(&noisy).word(), "cannot be told");
        assert_eq!(
            time(&[1.10, 0.98, 1.07, 1.01, 1.09, 0.96]).word(),
            "cannot be told"
        );
        // Five turns give no interval, however clear they look.
        assert_eq!(rate(&[1.0; 5]).verdict(), Verdict::Unclear);
        assert_eq!(rate(&[]).verdict(), Verdict::Unclear);
    }

    #[test]
    fn small_losses_and_every_gain_pass_with_their_direction() {
        assert_eq!(rate(&[0.97; 6]).word(), "worse, within 5 %");
        assert_eq!(time(&[1.03; 6]).word(), "worse, within 5 %");
        assert_eq!(rate(&[1.5; 6]).word(), "better");
        assert_eq!(time(&[0.5; 6]).word(), "better");
        let equal = [0.99, 1.01, 1.0, 0.98, 1.02, 1.0];
        assert_eq!(rate(&equal).word(), "equal");
        assert_eq!(time(&equal).word(), "equal");
    }

    #[test]
    fn what_is_counted_is_compared_exactly() {
        let bytes = |old, new| Figure::counted("bytes", Better::Less, Pair { old, new });
        assert_eq!(bytes(10_000.0, 10_500.0).verdict(), Verdict::Met);
        assert_eq!(bytes(10_000.0, 10_501.0).verdict(), Verdict::Missed);
        assert_eq!(bytes(10_000.0, 10_001.0).word(), "worse, within 5 %");
        assert_eq!(bytes(0.0, 0.0).word(), "equal");
        assert_eq!(bytes(0.0, 1.0).word(), "**worse**");
        assert_eq!(bytes(1.0, 0.0).word(), "better");
    }

    #[test]
    fn the_ratio_is_taken_within_a_turn() {
        // The rates of the turns differ ninefold, their ratios do not.
        let ratio = ratio(&pairs(&[0.98; 9]));
        assert!(
            (ratio.value - 0.98).abs() < 1e-9 && ratio.low > 0.979,
            "{ratio:?}"
        );
    }

    #[test]
    fn the_table_says_which_direction_is_better() {
        let pair = Pair {
            old: 2_000.0,
            new: 1_800.0,
        };
        let figure = |name, better| Figure::counted(name, better, pair);
        let figures = [figure("tokens/s", Better::More), figure("ms", Better::Less)];
        let text = table("tokens", &figures).join("\n");
        for line in [
            "| tokens/s | 2000 | 1800 | more | 0.900 | exact | **worse** |",
            "| ms | 2000 | 1800 | less | 0.900 | exact | better |",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
