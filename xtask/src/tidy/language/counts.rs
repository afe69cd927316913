//! How often each word of the rules occurs in each crate, and the file that says how often it may.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result};

use super::{FILE, FIX};

/// The key of the number that all rows of a word sum to.
const TOTAL: &str = "total";

/// What the file says above its rows.
const HEADER: &str = "\
# How often the words that xtask/src/tidy/language.rs reads for may occur in each crate. `cargo xtask tidy` fails
# if one occurs more often; `cargo xtask tidy --fix` lowers the numbers, and never raises one.
#
# Code that moves between crates takes its number along by hand: lower one row, raise another; the total stays.
# After a merge, delete this file and run `cargo xtask tidy --fix`, which writes it anew; it refuses totals that rise.
";

/// By the key of a word and by row, how often it occurs.
pub(super) type WordCounts = BTreeMap<String, BTreeMap<String, usize>>;

/// What the file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AllowedCounts {
    pub(super) counts: WordCounts,
    totals: BTreeMap<String, usize>,
}

impl AllowedCounts {
    /// Allows what there is.
    pub(super) fn new(found: &WordCounts) -> Self {
        let sum = |(word, rows): (&String, &BTreeMap<String, usize>)| {
            let total = rows.values().sum();
            (word.clone(), total)
        };
        Self {
            counts: found.clone(),
            totals: found.iter().map(sum).collect(),
        }
    }

    /// Reads the file's text.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut counts: WordCounts = toml::from_str(text).with_context(|| {
            format!(
                "the counts cannot be read: delete {FILE} and run `{FIX}`, which writes it anew"
            )
        })?;
        let mut totals = BTreeMap::new();
        for (word, rows) in &mut counts {
            totals.insert(word.clone(), rows.remove(TOTAL).unwrap_or(0));
        }
        Ok(Self { counts, totals })
    }

    /// The file's text.
    pub(super) fn text(&self) -> String {
        let mut text = HEADER.to_owned();
        for (word, rows) in &self.counts {
            let total = self.totals.get(word).copied().unwrap_or(0);
            // Writing to a string cannot fail.
            let _ = write!(text, "\n[\"{word}\"]\n{TOTAL} = {total}\n");
            for (row, count) in rows {
                let _ = writeln!(text, "\"{row}\" = {count}");
            }
        }
        text
    }

    /// The words but `exempt` that occur more often than before in all rows together, with both numbers.
    pub(super) fn risen(&self, before: &Self, exempt: &str) -> Vec<String> {
        let totals = self.totals.iter().filter(|(word, _)| *word != exempt);
        let risen = totals.filter_map(|(word, total)| {
            let allowed = before.totals.get(word).copied().unwrap_or(0);
            (*total > allowed).then(|| format!("`{word}` ({total}, allowed {allowed})"))
        });
        risen.collect()
    }

    /// How often a word may occur in a row.
    pub(super) fn count(&self, word: &str, row: &str) -> usize {
        let rows = self.counts.get(word);
        rows.and_then(|rows| rows.get(row)).copied().unwrap_or(0)
    }

    /// The words with a total that is not the sum of their rows: the word, its total, the sum.
    pub(super) fn wrong_totals(&self) -> impl Iterator<Item = (&str, usize, usize)> {
        self.totals.iter().filter_map(|(word, total)| {
            let sum = self.counts.get(word).map_or(0, |rows| rows.values().sum());
            (*total != sum).then_some((word.as_str(), *total, sum))
        })
    }

    /// The same with every count lowered to what there is. A word that occurs too often, in a row or in all,
    /// keeps its counts: it may have moved, which is written by hand.
    pub(super) fn lowered(&self, found: &WordCounts) -> Self {
        let none = BTreeMap::new();
        let mut lowered = Self::default();
        for (word, rows) in &self.counts {
            let found = found.get(word).unwrap_or(&none);
            let total = self.totals.get(word).copied().unwrap_or(0);
            let is_higher = |(row, count): (&String, &usize)| *count > self.count(word, row);
            let sum: usize = found.values().sum();
            let (rows, total) = if sum > total || found.iter().any(is_higher) {
                (rows, total)
            } else {
                (found, sum)
            };
            if total > 0 {
                lowered.counts.insert(word.clone(), rows.clone());
                lowered.totals.insert(word.clone(), total);
            }
        }
        lowered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(rows: &[(&str, &str, usize)]) -> WordCounts {
        let mut counts = WordCounts::new();
        for (word, row, count) in rows {
            let rows = counts.entry((*word).into()).or_default();
            rows.insert((*row).into(), *count);
        }
        counts
    }

    #[test]
    fn the_file_is_read_as_it_was_written() {
        let allowed = AllowedCounts::new(&counts(&[
            ("name Place", "server/crates/web", 2),
            ("name Place", "cli", 1),
            ("prose of which", "docs", 3),
        ]));
        let text = allowed.text();
        assert!(
            text.contains("[\"name Place\"]\ntotal = 3\n\"cli\" = 1\n\"server/crates/web\" = 2\n")
        );
        assert_eq!(AllowedCounts::parse(&text).unwrap(), allowed);
        assert_eq!(allowed.wrong_totals().count(), 0);
        assert_eq!(allowed.count("name Place", "cli"), 1);
        assert_eq!(allowed.count("name Place", "docs"), 0);
    }

    #[test]
    fn a_total_that_is_not_the_sum_of_its_rows_is_found() {
        let allowed = AllowedCounts::parse("[\"a\"]\ntotal = 3\n\"x\" = 2\n\"y\" = 2\n").unwrap();
        assert_eq!(allowed.wrong_totals().collect::<Vec<_>>(), [("a", 3, 4)]);
        assert!(AllowedCounts::parse("<<<<<<<\n").is_err());
    }

    #[test]
    fn counts_are_lowered_and_never_raised() {
        let allowed = AllowedCounts::new(&counts(&[
            ("a", "x", 5),
            ("a", "y", 1),
            ("b", "x", 2),
            ("b", "y", 2),
            ("gone", "x", 1),
        ]));
        let found = counts(&[("a", "x", 3), ("b", "x", 3), ("new", "x", 1)]);
        let expected = counts(&[("a", "x", 3), ("b", "x", 2), ("b", "y", 2)]);
        assert_eq!(allowed.lowered(&found), AllowedCounts::new(&expected));
    }

    #[test]
    fn a_row_that_was_raised_by_hand_does_not_raise_the_total() {
        let text = "[\"a\"]\ntotal = 1\n\"x\" = 1\n\"y\" = 1\n";
        let allowed = AllowedCounts::parse(text).unwrap();
        let both = counts(&[("a", "x", 1), ("a", "y", 1)]);
        assert_eq!(allowed.lowered(&both), allowed);
        let one = counts(&[("a", "y", 1)]);
        assert_eq!(allowed.lowered(&one), AllowedCounts::new(&one));
    }
}
