//! Constants with names that do not say what they are: times, bounds, and units of time that are defined once more.

use super::definitions::{Definition, DefinitionKind, words};

/// What is wrong with a constant's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameFault {
    /// It is a time, and its name does not end as those of times do.
    Time,
    /// It is a bound, and its name says so in another way.
    Bound,
    /// It is a unit of time.
    Unit,
}

/// The file that defines the units.
const UNITS_FILE: &str = "server/crates/domain/src/time.rs";
/// The units that are defined there.
const UNITS: &[&str] = &["second", "minute", "hour", "day"];
/// The last word of a time's name. A bound on a time may be named as a bound.
const TIMES: &[&str] = &["timeout", "interval", "age", "period", "limit"];
/// A number of one of these is a time; the word stands behind that of [`TIMES`].
const COUNTED_UNITS: &[&str] = &[
    "days",
    "hours",
    "minutes",
    "seconds",
    "secs",
    "millis",
    "milliseconds",
    "ms",
    "micros",
    "nanos",
];
/// Other words for a bound. Bounds that are named by the thing alone, such as `LINES`, cannot be told from
/// other numbers.
const SUPERLATIVES: &[&str] = &["most", "longest", "largest", "highest", "maximum", "max"];
/// A literal with so many digits is a moment since 1970, not a time.
const DIGITS_OF_MOMENT: usize = 12;

/// What is wrong with the name of a constant of Rust.
pub(super) fn fault(path: &str, definition: &Definition<'_>) -> Option<NameFault> {
    if definition.kind != DefinitionKind::Constant || !path.ends_with(".rs") || path == UNITS_FILE {
        return None;
    }
    let (type_name, value) = definition.rest.strip_prefix(':')?.split_once('=')?;
    let type_name = type_name.trim().rsplit("::").next()?;
    let is_number = type_name.len() <= "usize".len()
        && type_name.starts_with(['i', 'u', 'f'])
        && type_name.ends_with(|c: char| c.is_ascii_digit() || c == 'e');
    if !is_number && !matches!(type_name, "Millis" | "Duration") {
        return None;
    }
    let words = words(definition.name);
    let is_unit_word = |word: &String| COUNTED_UNITS.contains(&word.as_str());
    let counts_unit = words.last().is_some_and(is_unit_word);
    let words = &words[..words.len() - usize::from(counts_unit)];
    if let [word] = words
        && UNITS.contains(&word.as_str())
    {
        return Some(NameFault::Unit);
    }
    let begins_as_bound = words.first().is_some_and(|word| word == "max");
    let is_time = match type_name {
        "Duration" => true,
        "Millis" => !is_moment(words, value),
        _ => counts_unit && !is_moment(words, value),
    };
    if is_time {
        let ends_as_time = words
            .last()
            .is_some_and(|word| TIMES.contains(&word.as_str()));
        return (!ends_as_time && !begins_as_bound).then_some(NameFault::Time);
    }
    let is_bound = words
        .iter()
        .any(|word| SUPERLATIVES.contains(&word.as_str()));
    let ends_as_bound = words.last().is_some_and(|word| word == "limit");
    (is_bound && !begins_as_bound && !ends_as_bound).then_some(NameFault::Bound)
}

/// Whether a number of time units is a moment of a calendar.
fn is_moment(words: &[String], value: &str) -> bool {
    let digits = value
        .chars()
        .take_while(|c| !matches!(c, '*' | ';'))
        .filter(char::is_ascii_digit)
        .count();
    words.iter().any(|word| word == "now") || digits >= DIGITS_OF_MOMENT
}

#[cfg(test)]
mod tests {
    use super::super::definitions::definitions;
    use super::*;

    fn fault_of(line: &str) -> Option<NameFault> {
        fault("a.rs", &definitions("a.rs", line)[0])
    }

    #[test]
    fn a_time_says_that_it_is_one() {
        for line in [
            "const CONNECT: Duration = Duration::from_secs(5);",
            "const LINES: std::time::Duration = A;",
            "const TOKEN_SECONDS: u64 = 900;",
            "pub const LEASE_MILLIS: Millis = 15_000;",
            "const LEASE: Millis = 15_000;",
            "const TIMEOUT_OF_READS: Duration =",
            "const DAYS: i64 = 90;",
        ] {
            assert_eq!(fault_of(line), Some(NameFault::Time), "{line}");
        }
        for line in [
            "const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);",
            "const TIMEOUT: Duration =",
            "const TOKEN_AGE_SECONDS: u64 = 900;",
            "const MAX_WAIT: Duration =",
            "const CLOCK_LIMIT: Millis = 30_000;",
            "const NOW: Millis = 3 * HOUR;",
            "const START: Millis = 1_800_000_000_000;",
            "const BACKOFF: [Duration; 3] =",
            "const KEY_SECONDS: &str = \"seconds\";",
            "const ROUNDS: usize = 3;",
        ] {
            assert_eq!(fault_of(line), None, "{line}");
        }
    }

    #[test]
    fn a_bound_says_that_it_is_one() {
        for line in [
            "const MOST: usize = 40;",
            "const LONGEST_NAME: usize = 253;",
            "const NAME_MAX: usize = 253;",
        ] {
            assert_eq!(fault_of(line), Some(NameFault::Bound), "{line}");
        }
        for line in [
            "const MAX_NAME_CHARS: usize = 64;",
            "const LARGEST_LOG_LIMIT: u64 = 64;",
            "const LARGEST: &str = \"a\";",
        ] {
            assert_eq!(fault_of(line), None, "{line}");
        }
    }

    #[test]
    fn units_of_time_are_defined_in_one_file() {
        for line in [
            "const DAY: i64 = 24 * HOUR;",
            "const HOUR: Duration = A;",
            "const DAY_MILLIS: Millis = 86_400_000;",
        ] {
            assert_eq!(fault_of(line), Some(NameFault::Unit), "{line}");
            assert_eq!(fault(UNITS_FILE, &definitions("a.rs", line)[0]), None);
        }
        assert_eq!(fault_of("const DAY_LINES: u8 = 24;"), None);
    }
}
